/**
 * The web portal, under `/portal` of the public listener. Its pages read custody data, webhooks, events and deliveries
 * through the API itself: `/portal/api/v1/…` is the API's own app, handlers and access rules, with a session in the
 * place of a key. Beside it are the portal's own paths: signing in, keys, accounts, what lists show in addition. A
 * request that changes something is taken from the portal's own pages only; everything else that is asked for is the
 * pages themselves. Decision D-42.
 */
import { type HttpApp, HttpRouter, HttpServerRequest } from "@effect/platform"
import { Effect, Layer } from "effect"
import { ApiKeys } from "../credentials/ApiKeys.ts"
import { SignedIn } from "../credentials/Principal.ts"
import { DeliveriesRepo } from "../deliveries/DeliveriesRepo.ts"
import { Nudges } from "../deliveries/Nudges.ts"
import { Samples } from "../deliveries/Samples.ts"
import { EventsRepo } from "../events/EventsRepo.ts"
import { door, methodsIn, pathOf } from "../http/door.ts"
import { currentExchange } from "../http/Exchange.ts"
import { Settings } from "../settings/Settings.ts"
import { WebhooksRepo } from "../webhooks/WebhooksRepo.ts"
import { accountRoutes } from "./accountRoutes.ts"
import { Identity } from "./Identity.ts"
import { Invitations } from "./Invitations.ts"
import { keyRoutes } from "./keyRoutes.ts"
import { Overview } from "./Overview.ts"
import { PATH, requireOrigin, requireOwnPage } from "./origin.ts"
import { Pages } from "./Pages.ts"
import { Passkeys } from "./Passkeys.ts"
import { SecondFactor } from "./SecondFactor.ts"
import { principalOf, Sessions } from "./Sessions.ts"
import { SignIn } from "./SignIn.ts"
import { signInRoutes } from "./signInRoutes.ts"
import { workRoutes } from "./workRoutes.ts"

const API = `${PATH}/api`
const THROUGH = `${API}/v1/`

const isPortal = (url: string) => /^\/portal(?:[/?]|$)/.test(url)

/** On every answer of a portal that is reached over TLS: browsers come back over TLS only. */
const overTls = { "strict-transport-security": "max-age=31536000" }

/** On every answer of the portal: nothing is kept, framed, guessed at or told to other sites. */
const guards = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY"
}

const own = HttpRouter.concatAll(signInRoutes, keyRoutes, accountRoutes, workRoutes).pipe(HttpRouter.prefixAll(API))

const isRead = (method: string) => method === "GET" || method === "HEAD"

/** The API's app with the session in the place of a key. */
const through = <E, R>(api: HttpApp.Default<E, R>) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const session = yield* (yield* Sessions).complete
    return yield* Effect.provideService(api, SignedIn, principalOf(session)).pipe(
      Effect.provideService(HttpServerRequest.HttpServerRequest, request.modify({ url: request.url.slice(API.length) }))
    )
  })

/** Takes the requests under {@link PATH} and hands every other one to the API. */
export const withPortal = <E, R>(api: HttpApp.Default<E, R>) => {
  const asked = Effect.gen(function* () {
    const { method, url } = yield* HttpServerRequest.HttpServerRequest
    const origin = yield* requireOrigin
    if (!isRead(method)) yield* requireOwnPage(origin)
    if (url.startsWith(THROUGH)) return yield* through(api)
    if (pathOf(url).startsWith(`${API}/`) || pathOf(url) === API) return yield* own
    return yield* (yield* Pages).answer(method, pathOf(url))
  })
  const guarded = door({ isPublic: () => true, methods: methodsIn(own), authenticate: Effect.void })(asked)
  const portal = Effect.gen(function* () {
    const { portalBaseUrl, tlsCertFile } = yield* Settings
    const { headers } = yield* currentExchange
    Object.assign(headers, guards, portalBaseUrl?.startsWith("https:") === true || tlsCertFile !== undefined ? overTls : {})
    return yield* guarded
  })
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) =>
    Effect.if(isPortal(url), { onTrue: () => portal, onFalse: () => api })
  )
}

/** The rooms that the portal's paths ask. */
export const layer = Layer.mergeAll(SignIn.layer, Overview.layer, Nudges.layer, Samples.layer, ApiKeys.layer, Pages.layer).pipe(
  Layer.provideMerge(Layer.mergeAll(Sessions.layer, SecondFactor.layer, Passkeys.layer, Invitations.layer)),
  Layer.provideMerge(Identity.layer),
  Layer.provide([WebhooksRepo.layer, EventsRepo.layer, DeliveriesRepo.layer])
)
