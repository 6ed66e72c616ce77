/**
 * The web portal, under `/portal` of the public listener. Its pages read custody data, webhooks, events and deliveries
 * through the API itself: `/portal/api/v1/…` runs the API's own app, handlers and access rules, with a session instead of
 * a key. The portal's own routes are beside it: sign-in, keys, accounts, additional data for lists. Changes are only
 * accepted from the portal's own pages; every other path returns the pages. Decision D-42.
 */

import type { HttpApp, HttpRouter } from "@effect/platform"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Context, Effect, Either, Layer, Option, Schema } from "effect"
import { Confirmation as ConfirmAct, SignedIn } from "../../access/credentials/Principal.ts"
import { ApiKeys } from "../../access/keys/ApiKeys.ts"
import { KeysRepo } from "../../access/keys/KeysRepo.ts"
import { CredentialRepo } from "../../access/visibility/CredentialRepo.ts"
import { StatementsRepo } from "../../custody/statements/StatementsRepo.ts"
import { DeliveriesRepo } from "../../delivery/deliveries/DeliveriesRepo.ts"
import { DeliveryCommands } from "../../delivery/deliveries/DeliveryCommands.ts"
import { RequestPreview } from "../../delivery/deliveries/RequestPreview.ts"
import { WaitingDeliveries } from "../../delivery/deliveries/WaitingDeliveries.ts"
import { Mailer } from "../../delivery/notices/Mailer.ts"
import { RecoveriesRepo } from "../../delivery/recoveries/RecoveriesRepo.ts"
import { WebhooksRepo } from "../../delivery/webhooks/WebhooksRepo.ts"
import { EventsRepo } from "../../events/log/EventsRepo.ts"
import { errorBoundary, methodsIn, pathOf } from "../../http/errorBoundary.ts"
import { codes, type Problem } from "../../http/Problem.ts"
import { currentRequest, type RequestContext } from "../../http/RequestContext.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import * as account from "../signIn/accountRoutes.ts"
import { Confirmation } from "../signIn/confirmation.ts"
import { confirm } from "../signIn/confirmSecondFactor.ts"
import { Identity } from "../signIn/Identity.ts"
import { Invitations } from "../signIn/Invitations.ts"
import { Members } from "../signIn/Members.ts"
import * as members from "../signIn/memberRoutes.ts"
import { Passkeys } from "../signIn/Passkeys.ts"
import { Passwords } from "../signIn/Passwords.ts"
import { PasswordWork } from "../signIn/PasswordWork.ts"
import { SecondFactor } from "../signIn/SecondFactor.ts"
import { principalOf, Sessions } from "../signIn/Sessions.ts"
import { SignIn } from "../signIn/SignIn.ts"
import * as signIn from "../signIn/signInRoutes.ts"
import * as keys from "./keyRoutes.ts"
import { Overview } from "./Overview.ts"
import { PATH, requireOrigin, requireOwnPage } from "./origin.ts"
import * as overview from "./overviewRoutes.ts"
import { API, PortalApi } from "./PortalApi.ts"
import { Search } from "./Search.ts"
import { WebAssets } from "./WebAssets.ts"

const THROUGH = `${API}/v1/`

const isPortal = (url: string) => /^\/portal(?:[/?]|$)/.test(url)

/** On every response over TLS: browsers return over TLS only. */
const overTls = { "strict-transport-security": "max-age=31536000" }

/** On every response of the portal: no caching, framing, content sniffing or referrers. */
const guards = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY"
}

/** The app of the portal's own routes, with an error boundary of its own. */
class OwnRoutes extends Context.Tag("custody/portal/OwnRoutes")<
  OwnRoutes,
  HttpApp.Default<never, HttpRouter.HttpRouter.DefaultServices>
>() {
  // Fresh, because the API has a router and middleware of its own.
  static readonly layer = Layer.effect(
    this,
    Effect.gen(function* () {
      const { router } = yield* HttpApiBuilder.Router
      const { add } = yield* HttpApiBuilder.Middleware
      yield* add(errorBoundary({ isPublic: () => true, methods: methodsIn((yield* router).routes), authenticate: Effect.void }))
      return yield* HttpApiBuilder.httpApp
    })
  ).pipe(
    Layer.provide(HttpApiBuilder.api(PortalApi)),
    Layer.provide(Layer.mergeAll(signIn.layer, keys.layer, members.layer, account.layer, overview.layer)),
    Layer.provide(Layer.mergeAll(HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer)),
    Layer.fresh
  )
}

const isRead = (method: string) => method === "GET" || method === "HEAD"

/**
 * Proof of the second factor for an action of the API: JSON in a header, because the API's bodies belong to its contract.
 * An invalid value counts as absent.
 */
const confirmationIn = (header: string | undefined) =>
  Option.getOrElse(Schema.decodeUnknownOption(Schema.parseJson(Confirmation))(header), (): Confirmation => ({}))

/** The API's app with the session instead of a key. */
const through = <E, R>(api: HttpApp.Default<E, R>) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const session = yield* (yield* Sessions).complete
    const services = yield* Effect.context<
      Passkeys | SecondFactor | Sessions | Settings | HttpServerRequest.HttpServerRequest | RequestContext
    >()
    const confirmed = confirm(session, confirmationIn(request.headers["x-portal-confirmation"])).pipe(
      Effect.catchAll(Effect.die),
      Effect.provide(services)
    )
    return yield* Effect.provideService(api, SignedIn, principalOf(session)).pipe(
      Effect.provideService(ConfirmAct, confirmed),
      Effect.provideService(HttpServerRequest.HttpServerRequest, request.modify({ url: request.url.slice(API.length) }))
    )
  })

/** Requests that browsers send to the root of the service: the first page, when somebody enters the address, and the icon. */
const isEntrance = ({ headers, method, url }: HttpServerRequest.HttpServerRequest): boolean =>
  (url === "/favicon.ico" || (url === "/" && (headers["accept"] ?? "").includes("text/html"))) && isRead(method)

/** The icon; or a redirect to the portal if it is served under that name, otherwise to the documentation. */
const entrance = Effect.gen(function* () {
  const { url } = yield* HttpServerRequest.HttpServerRequest
  if (url === "/favicon.ico") {
    Object.assign((yield* currentRequest).headers, guards)
    return yield* (yield* WebAssets).icon
  }
  const location = yield* Effect.orElseSucceed(Effect.as(requireOrigin, `${PATH}/`), () => "/v1/docs")
  return HttpServerResponse.empty({ status: 302, headers: { location, "cache-control": "no-store", vary: "accept" } })
})

/** What a browser shows at an address where the portal is not served. */
const elsewhere = ({ code, detail }: Problem) =>
  HttpServerResponse.raw(
    `<!doctype html><html lang="en"><title>${codes[code][1]}</title><h1>${codes[code][1]}</h1><p>${Bun.escapeHTML(detail)}</p></html>`,
    { status: codes[code][0], contentType: "text/html; charset=utf-8" }
  )

/** Handles requests under {@link PATH} and passes every other one to the API. */
export const withPortal = <E, R>(api: HttpApp.Default<E, R>) => {
  const asked = Effect.gen(function* () {
    const { headers, method, url } = yield* HttpServerRequest.HttpServerRequest
    const isApi = pathOf(url).startsWith(`${API}/`) || pathOf(url) === API
    const origin = yield* Effect.either(requireOrigin)
    if (Either.isLeft(origin)) {
      const isPage = isRead(method) && !isApi && (headers["accept"] ?? "").includes("text/html")
      return isPage ? elsewhere(origin.left) : yield* origin.left
    }
    if (!isRead(method)) yield* requireOwnPage(origin.right)
    if (url.startsWith(THROUGH)) return yield* through(api)
    if (isApi) return yield* yield* OwnRoutes
    return yield* (yield* WebAssets).answer(method, pathOf(url))
  })
  const guarded = errorBoundary({ isPublic: () => true, methods: () => [], authenticate: Effect.void })(asked)
  const portal = Effect.gen(function* () {
    const { portalBaseUrl, tlsCertFile } = yield* Settings
    const { headers } = yield* currentRequest
    Object.assign(headers, guards, portalBaseUrl?.startsWith("https:") === true || tlsCertFile !== undefined ? overTls : {})
    return yield* guarded
  })
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    Effect.if(isPortal(request.url), {
      onTrue: () => portal,
      onFalse: () => Effect.if(isEntrance(request), { onTrue: () => entrance, onFalse: () => api })
    })
  )
}

/** The portal's own routes, and the services that they and its pages use. */
export const layer = OwnRoutes.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      SignIn.layer,
      Members.layer,
      Overview.layer,
      Search.layer,
      DeliveryCommands.layer,
      WaitingDeliveries.layer,
      RecoveriesRepo.layer,
      RequestPreview.layer,
      StatementsRepo.layer,
      ApiKeys.layer,
      KeysRepo.layer,
      CredentialRepo.layer,
      WebAssets.layer
    )
  ),
  Layer.provideMerge(Layer.mergeAll(SecondFactor.layer, Passkeys.layer, Invitations.layer, Passwords.layer)),
  Layer.provideMerge(Layer.mergeAll(Sessions.layer, PasswordWork.layer)),
  Layer.provideMerge(Layer.mergeAll(Identity.layer, Mailer.layer)),
  Layer.provide([WebhooksRepo.layer, EventsRepo.layer, DeliveriesRepo.layer])
)
