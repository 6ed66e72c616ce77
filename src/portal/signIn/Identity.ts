/**
 * The portal's interface to the sign-in library. An instance is created when somebody first needs it, so an unused portal costs
 * nothing. The origin of each request is checked beforehand (origin.ts); the library works with one origin,
 * whichever loopback name a developer uses. Its responses contain session tokens, so they are read here and never passed
 * on as a whole.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as SqlClient from "@effect/sql/SqlClient"
import { Data, Effect, identity, Redacted, Runtime, Schema } from "effect"
import { problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { addressOf, requireOrigin } from "../server/origin.ts"
import { PortalPool } from "../server/PortalPool.ts"
import type { Auth, Claims } from "./auth.ts"
import { followAddress } from "./followAddress.ts"

/** Id of the identity provider in accounts, and in its redirect URI. */
const PROVIDER = "oidc"

/** What an instance of the library does. That of the identity provider answers nothing before the provider has answered. */
type Task = "sessions" | "provider"
/** Longest time of a sign-in at the identity provider between two redirects. */
const PROVIDER_TIME = "10 seconds"

const decodeAccounts = decodeRows(Schema.Struct({ id: Schema.String }))

/** A response of the library. */
export interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  readonly cookies: ReadonlyArray<string>
  readonly location: string | null
}

/** The response to a redirect of the identity provider that signs nobody in. */
export const refused: Answer = { status: 400, body: {}, cookies: [], location: null }

/** The library's name of the cookie, with the prefix that it adds over https. */
const STATE_COOKIE = /(?:^|;\s*)(?:__Secure-)?custody\.state=/

/** The sign-in library failed, or responded with 5xx. */
class LibraryFailed extends Data.TaggedError("LibraryFailed")<{ readonly cause: unknown }> {}

const unavailable = () =>
  problem("service_unavailable", "Sign-in is temporarily unavailable. Try again.", { headers: { "retry-after": "1" } })

export class Identity extends Effect.Service<Identity>()("custody/portal/Identity", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const pool = yield* PortalPool
    const settings = yield* Settings
    const master = yield* MasterKey
    const runtime = yield* Effect.runtime<never>()
    const log = Runtime.runFork(runtime)
    const instances: Partial<Record<Task, Promise<Auth>>> = {}
    const address = addressOf(settings)
    /** The origin that the library works with; the identity provider sends browsers back to it. */
    const origin = URL.canParse(address) ? new URL(address).origin : "http://localhost"

    const { portalOidcClientId, portalOidcClientSecret, portalOidcIssuer } = settings
    const provider =
      portalOidcIssuer === undefined || portalOidcClientId === undefined || portalOidcClientSecret === undefined
        ? undefined
        : { id: PROVIDER, issuer: portalOidcIssuer, clientId: portalOidcClientId, clientSecret: Redacted.value(portalOidcClientSecret) }

    /**
     * Whether to trust the identity provider's claims for a sign-in, checked each time, even for a linked identity: the
     * address must be verified and be the current one in the record feed for an account, to which the identity belongs from then on. Of its
     * letters, only those of ASCII may differ in case: another, such as the Kelvin sign, can have the lower case of one.
     */
    const vouched = ({ email, subject, verified }: Claims) =>
      Effect.gen(function* () {
        if (!verified) return false
        const address = email.toLowerCase()
        yield* followAddress(sql, address)
        const [account] = yield* decodeAccounts(sql`
          SELECT p.id FROM portal_users p JOIN users u ON u.id = p.id
          WHERE p.email = ${address} AND lower(u.email COLLATE "C") = lower(${email} COLLATE "C") AND u.status = 'active'`)
        if (account === undefined) return false
        yield* sql`DELETE FROM portal_accounts WHERE provider_id = ${PROVIDER} AND account_id = ${subject} AND user_id <> ${account.id}`
        return true
      }).pipe(Effect.orDie)

    const make = async (task: Task): Promise<Auth> => {
      const { makeAuth } = await import("./auth.ts")
      return makeAuth({
        origin,
        pool,
        provider: task === "provider" ? provider : undefined,
        secret: Redacted.value(master.keyOf("portal-cookie")).toString("hex"),
        vouched: (claims) => Runtime.runPromise(runtime)(vouched(claims)),
        log: (level, message) => log(Effect.logDebug(`sign-in: ${level}: ${message}`))
      })
    }

    const library = (task: Task): Promise<Auth> => {
      instances[task] ??= make(task).catch((error) => {
        delete instances[task]
        throw error
      })
      return instances[task]
    }

    /** The request headers that the library needs. */
    const headers = Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const { client } = yield* currentRequest
      const kept = new Headers({ "x-portal-client": client?.toString() ?? "0.0.0.0" })
      for (const name of ["cookie", "user-agent"]) {
        const value = request.headers[name]
        if (value !== undefined) kept.set(name, value)
      }
      return kept
    })

    const asked = <A>(use: (auth: Auth, headers: Headers) => Promise<A>, task: Task = "sessions") =>
      Effect.gen(function* () {
        yield* requireOrigin
        const kept = yield* headers
        return yield* Effect.tryPromise({
          try: async () => use(await library(task), kept),
          catch: (cause) => new LibraryFailed({ cause })
        }).pipe(
          task === "provider"
            ? Effect.timeoutFail({
                duration: PROVIDER_TIME,
                onTimeout: () => {
                  // It may wait for its configuration for minutes.
                  delete instances.provider
                  return new LibraryFailed({ cause: "the identity provider does not answer" })
                }
              })
            : identity,
          Effect.tapError(({ cause }) => Effect.logWarning("the sign-in library failed", cause)),
          Effect.mapError(unavailable)
        )
      })

    const answered = async (response: Response): Promise<Answer> => {
      const text = await response.text()
      const body: unknown = text.startsWith("{") ? JSON.parse(text) : {}
      return {
        status: response.status,
        // Text that begins with a brace is an object.
        body: body as Readonly<Record<string, unknown>>,
        cookies: response.headers.getSetCookie(),
        location: response.headers.get("location")
      }
    }

    return {
      /** The identity provider's name, null without one. */
      provider: provider === undefined ? null : new URL(provider.issuer).hostname,

      /** Calls one of the library's paths. */
      ask: (path: string, body: unknown, task: Task = "sessions") =>
        asked(async (auth, kept) => {
          kept.set("origin", origin)
          kept.set("content-type", "application/json")
          const request = new Request(`${origin}${auth.options.basePath}${path}`, {
            method: "POST",
            headers: kept,
            body: JSON.stringify(body)
          })
          const answer = await answered(await auth.handler(request))
          // A failure of the library (no database) must not count as a wrong password.
          if (answer.status >= 500) throw new Error(`the sign-in library answered ${answer.status} at ${path}`)
          return answer
        }, task),

      /** Whether the request has the cookie of a sign-in at the identity provider that began in this browser. */
      hasState: Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) => STATE_COOKIE.test(headers["cookie"] ?? "")),

      /** Returns the identity provider's redirect; {@link refused} also if the provider does not answer: a browser is waiting for a page. */
      callback: (query: string) =>
        asked(
          async (auth, kept) =>
            auth
              .handler(new Request(`${origin}${auth.options.basePath}/callback/oidc${query}`, { headers: kept }))
              .then(answered, (cause): Answer => {
                log(Effect.logWarning("portal: a sign-in at the identity provider was refused", cause))
                return refused
              }),
          "provider"
        ).pipe(
          Effect.catchIf(
            ({ code }) => code === "service_unavailable",
            () => Effect.succeed(refused)
          )
        ),

      /** Starts a session for a user identified by a passkey. */
      startSession: (userId: string) =>
        asked(async (auth, kept) => answered(await auth.api.startSession({ body: { userId }, headers: kept, asResponse: true }))),

      /** The token in the request's cookie; null without one, or if its signature is invalid. */
      token: asked((auth, kept) => auth.api.cookieToken({ headers: kept }))
    }
  })
}) {
  static readonly layer = this.Default
}
