/**
 * Access tokens of webhooks with OAuth client credentials. A token is kept in memory only, until a minute before it expires, and
 * a process has one token request per webhook in flight, which all its attempts wait for. A token server that is slow, down or
 * lying costs that webhook's attempts up to 5 seconds each, and nobody else anything. C-12.
 */
import { createHash } from "node:crypto"
import { Data, Deferred, Effect, FiberId, Redacted, Schema } from "effect"
import { LRUCache } from "lru-cache"
import type { ClientAuth } from "oauth4webapi"
import { OAuth } from "../../gateway/oauth.ts"
import { type Answer, snippet } from "./Answer.ts"
import { hide } from "./hide.ts"

/** Time for a token, in ms. */
export const TOKEN_MS = 5_000
/** A token is not used in the last part of its life, in ms. */
const MARGIN_MS = 60_000
/** Shortest time between two tokens that a 401 replaces, in ms. */
const REPLACE_MS = 60_000
/** Longest time that a token is kept, in ms: a timer removes it. */
const LONGEST_MS = 86_400_000
/** Tokens that a process keeps, and longest token. */
const KEPT = 10_000,
  LONGEST = 8_192

/** There is no token: `auth_error` with the reason, or a failure of the service's own proxy or resolver. */
export class NoToken extends Data.TaggedError("NoToken")<{
  readonly result: "auth_error" | "proxy_error"
  readonly detail: string | null
  readonly resolverAway?: boolean
}> {}

const noToken = (detail: string) => new NoToken({ result: "auth_error", detail })

/** A token for an attempt. */
export interface AccessToken {
  readonly value: Redacted.Redacted
  /** Whether it was kept from an earlier attempt. */
  readonly isKept: boolean
}

/** Sends a request to the token server as deliveries are sent; `content` is the complete body, or undefined if it was cut off. */
export type Exchange = (request: {
  readonly webhookId: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}) => Effect.Effect<{ readonly answer: Answer; readonly content: Buffer | undefined }>

interface Kept {
  /** Identifies the credentials that it was issued for. */
  readonly of: string
  readonly value: Redacted.Redacted
}

interface Flight {
  readonly of: string
  readonly done: Deferred.Deferred<Redacted.Redacted, NoToken>
}

const formEncoded = (text: string): string => new URLSearchParams([["", text]]).toString().slice(1)

/**
 * HTTP Basic with the form encoding of RFC 6749, appendix B. The library's own also encodes `-`, `.` and `_`, which servers that do
 * not decode would take for another secret.
 */
const basic =
  (secret: string): ClientAuth =>
  (_server, client, _body, headers) =>
    headers.set("authorization", `Basic ${btoa(`${formEncoded(client.client_id)}:${formEncoded(secret)}`)}`)

const encode = Schema.encodeSync(Schema.parseJson(OAuth))

/** The reason if the guard refuses the token server. */
export const BLOCKED = "the token server's address is not allowed"

/** What a token request without an answer means. */
const reasonOf = ({ detail, result }: Answer): string =>
  result === "timeout"
    ? "the token server did not answer in time"
    : result === "dns_error"
      ? "the name of the token server does not resolve"
      : result === "blocked_address"
        ? BLOCKED
        : `the token server could not be reached: ${detail ?? result}`

export class AccessTokens {
  readonly #exchange: Exchange
  readonly #kept = new LRUCache<string, Kept>({ max: KEPT, ttlAutopurge: true })
  /** The tokens that a 401 replaced less than a minute ago, by their webhooks. */
  readonly #replaced = new LRUCache<string, Redacted.Redacted>({ max: KEPT, ttl: REPLACE_MS })
  readonly #flights = new Map<string, Flight>()

  constructor(exchange: Exchange) {
    this.#exchange = exchange
  }

  /** A token for a webhook's request: the kept one, or a new one, which `fresh` requires. */
  get(webhookId: string, oauth: OAuth, fresh: boolean): Effect.Effect<AccessToken, NoToken> {
    return Effect.timeoutFail(this.#get(webhookId, oauth, createHash("sha256").update(encode(oauth)).digest("base64"), fresh), {
      duration: TOKEN_MS,
      onTimeout: () => noToken("the token server did not answer in time")
    })
  }

  #get(webhookId: string, oauth: OAuth, of: string, fresh: boolean): Effect.Effect<AccessToken, NoToken> {
    return Effect.suspend(() => {
      const kept = this.#kept.get(webhookId)
      if (!fresh && kept !== undefined && kept.of === of) return Effect.succeed({ value: kept.value, isKept: true })
      const flight = this.#flights.get(webhookId)
      // A request with credentials that were replaced meanwhile ends first.
      if (flight !== undefined && flight.of !== of)
        return Effect.zipRight(Effect.exit(Deferred.await(flight.done)), this.#get(webhookId, oauth, of, fresh))
      const joined = flight === undefined ? this.#start(webhookId, oauth, of) : Effect.succeed(flight)
      return Effect.flatMap(joined, ({ done }) => Effect.map(Deferred.await(done), (value) => ({ value, isKept: false })))
    })
  }

  /** Requests a token, whatever becomes of those who wait for it. */
  #start(webhookId: string, oauth: OAuth, of: string) {
    const done = Deferred.unsafeMake<Redacted.Redacted, NoToken>(FiberId.none)
    const flight = { of, done }
    this.#flights.set(webhookId, flight)
    const run = Effect.map(this.#request(webhookId, oauth), ({ expiresIn, value }) => {
      const ttl = Math.floor(Math.min(expiresIn * 1_000 - MARGIN_MS, LONGEST_MS))
      if (ttl > 0) this.#kept.set(webhookId, { of, value }, { ttl })
      else this.#kept.delete(webhookId)
      return value
    }).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          this.#flights.delete(webhookId)
          Deferred.unsafeDone(done, exit)
        })
      )
    )
    return Effect.as(Effect.forkDaemon(run), flight)
  }

  #request(webhookId: string, oauth: OAuth): Effect.Effect<{ readonly value: Redacted.Redacted; readonly expiresIn: number }, NoToken> {
    // A server may return the secret as it stands, or the header that has it.
    const clean = (text: string, { authorization }: Readonly<Record<string, string>>) =>
      snippet(hide(Buffer.from(text.slice(0, 500)), [Redacted.value(oauth.clientSecret), ...(authorization ? [authorization] : [])])) ?? ""
    const exchange = this.#exchange
    return Effect.gen(function* () {
      // Only a webhook with OAuth loads it.
      const lib = yield* Effect.promise(() => import("oauth4webapi"))
      const server = { issuer: new URL(oauth.tokenUrl).origin, token_endpoint: oauth.tokenUrl }
      const client = { client_id: oauth.clientId }
      const secret = Redacted.value(oauth.clientSecret)
      const authentication = oauth.clientAuthentication === "post" ? lib.ClientSecretPost(secret) : basic(secret)
      const parameters = {
        ...(oauth.scope === null ? {} : { scope: oauth.scope }),
        ...(oauth.audience === null ? {} : { audience: oauth.audience })
      }
      /** The request as the library writes it. */
      const { promise: written, resolve: write } = Promise.withResolvers<{
        readonly headers: Record<string, string>
        readonly body: string
      }>()
      const { promise: answered, resolve: answer } = Promise.withResolvers<Response>()
      const parsed = lib
        .clientCredentialsGrantRequest(server, client, authentication, parameters, {
          [lib.customFetch]: (_, { body, headers }) => {
            write({ headers, body: String(body) })
            return answered
          }
        })
        .then((response) => lib.processClientCredentialsResponse(server, client, response))
        .then(
          (token) => ({ token }),
          (error: unknown) => ({ error })
        )
      const request = yield* Effect.promise(() => Promise.race([written, parsed]))
      if (!("body" in request)) return yield* noToken("the token server cannot be asked")
      const { answer: got, content } = yield* exchange({ webhookId, url: oauth.tokenUrl, ...request })
      if (got.resolverAway === true || got.result === "proxy_error")
        return yield* new NoToken({
          result: got.result === "proxy_error" ? "proxy_error" : "auth_error",
          detail: null,
          resolverAway: got.resolverAway === true
        })
      if (got.httpStatus === 0) return yield* noToken(reasonOf(got))
      if (content === undefined) return yield* noToken(`the token server's ${got.httpStatus} response is incomplete or too large`)
      if (got.httpStatus < 200 || got.httpStatus > 599) return yield* noToken(`the token server answered ${got.httpStatus}`)
      const hasBody = ![204, 205, 304].includes(got.httpStatus)
      answer(new Response(hasBody ? content : null, { status: got.httpStatus, headers: { "content-type": "application/json" } }))
      const outcome = yield* Effect.promise(() => parsed)
      if ("error" in outcome) {
        const { error } = outcome
        if (error instanceof lib.ResponseBodyError)
          return yield* noToken(
            clean(
              `the token server answered ${got.httpStatus}: ${error.error}${error.error_description === undefined ? "" : `, ${error.error_description}`}`,
              request.headers
            )
          )
        return yield* noToken(
          got.httpStatus === 200 ? "the token server's response is not an access token" : `the token server answered ${got.httpStatus}`
        )
      }
      const { access_token: token, expires_in: expiresIn = 0, token_type: type } = outcome.token
      if (type !== "bearer") return yield* noToken("the token server's response is not a bearer token")
      if (token.length > LONGEST || !/^[!-~]+$/.test(token)) return yield* noToken("the token server's token cannot be sent in a header")
      return { value: Redacted.make(token), expiresIn }
    })
  }

  /**
   * Whether another attempt with a new token follows a 401 at once. Within a minute, only attempts with the token that was
   * replaced have one, and only if the server gave another one.
   */
  replaces(webhookId: string, refused: Redacted.Redacted): boolean {
    const isRefused = (token: Redacted.Redacted | undefined) => token !== undefined && Redacted.value(token) === Redacted.value(refused)
    const isKept = isRefused(this.#kept.get(webhookId)?.value)
    const replaced = this.#replaced.get(webhookId)
    if (replaced !== undefined) return isRefused(replaced) && !isKept
    if (isKept) this.#kept.delete(webhookId)
    this.#replaced.set(webhookId, refused)
    return true
  }
}
