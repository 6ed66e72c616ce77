/**
 * Sends one request to a webhook: chooses and checks the address, gets an access token if the
 * webhook has OAuth client credentials, signs, posts. Deliveries, redeliveries and pings all
 * use it, and nothing else in the program connects to endpoints. Runs in the worker role only. Decisions D-24, D-30.
 */

import { randomInt } from "node:crypto"
import * as dns from "node:dns/promises"
import * as os from "node:os"
import { Clock, Effect, Either, type Layer, Redacted } from "effect"
import { SigningKeys } from "../../../runtime/crypto/SigningKeys.ts"
import { logEgressProxy } from "../../../runtime/processes/egressProxy.ts"
import * as Format from "../../../runtime/settings/Format.ts"
import { type InvalidSettings, Settings } from "../../../runtime/settings/Settings.ts"
import * as sign from "../../deliveries/signatureHeaders.ts"
import type { GatewayCredentials } from "../../gateway/gatewayCredentials.ts"
import type { OAuth } from "../../gateway/oauth.ts"
import * as webhookUrl from "../../webhooks/url.ts"
import { type AccessToken, AccessTokens, BLOCKED, TOKEN_MS } from "./AccessTokens.ts"
import type { Answer } from "./Answer.ts"
import { clientIdentity } from "./ClientIdentity.ts"
import { ConnectionPool } from "./ConnectionPool.ts"
import * as address from "./ssrfGuard.ts"
import { traced } from "./traced.ts"
import { post, type Withdrawn } from "./webhookRequest.ts"

/** One request. */
export interface Sending {
  /** Connections are only shared by requests of one webhook. */
  readonly webhookId: string
  readonly url: string
  readonly eventId: string
  readonly kind: string
  readonly deliveryId: string
  /** The delivery's number within its webhook; a ping has none. C-2. */
  readonly sequence?: number | undefined
  /** Number of the attempt, from 1. */
  readonly attempt: number
  /** Whether it is a sample event; default false. C-12. */
  readonly test?: boolean | undefined
  readonly body: string
  /** Valid secrets, newest first; at least one. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  /** What a gateway requires; its values are removed from the answer. */
  readonly credentials: GatewayCredentials
  /** Called when the connection is open and before anything is sent: whether to continue. */
  readonly wanted: Effect.Effect<boolean>
  /** Whether to open a new connection, and to request a new access token, although one may be kept; default false. */
  readonly fresh?: boolean
  readonly newToken?: boolean
}

/** The outcome of a request that was not sent. */
const UNSENT = { httpStatus: 0, latencyMs: 0, bodySnippet: null, detail: null, retryAfterSeconds: undefined, stale: false }

/** Addresses of this machine and of the service's own servers: denied even if they are public. */
const ownAddresses = (hosts: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(hosts, (host) => Effect.promise(() => dns.lookup(host, { all: true }).catch(() => []))),
    (found) => new Set([...found.flat(), ...interfaces()].flatMap(({ address }) => Format.address(address)?.toString() ?? []))
  )

const interfaces = () => Object.values(os.networkInterfaces()).flatMap((list) => list ?? [])

/** Whether this machine can reach IPv6 hosts: an interface has an address that is neither link-local nor loopback. */
const speaks6 = Effect.sync(() =>
  interfaces().some(({ address, family, internal }) => family === "IPv6" && !internal && !/^fe[89ab]/i.test(address))
)

const hostOf = (url: string) => (URL.canParse(url) ? new URL(url).hostname : url.replace(/:\d+$/, ""))

export class WebhookClient extends Effect.Service<WebhookClient>()("custody/WebhookClient", {
  scoped: Effect.gen(function* () {
    const settings = yield* Settings
    const signingKeys = yield* SigningKeys
    const identity = yield* clientIdentity(settings)
    const proxy = settings.webhookProxyUrl && { url: new URL(Redacted.value(settings.webhookProxyUrl)), trust: identity.roots }
    const pool = new ConnectionPool({ proxy })
    yield* Effect.addFinalizer(() => Effect.sync(() => pool.destroy()))
    const own = yield* ownAddresses(
      [
        settings.host,
        settings.platformHost,
        ...(settings.databaseUrl === undefined ? [] : [hostOf(Redacted.value(settings.databaseUrl))]),
        ...(settings.temporalAddress === undefined ? [] : [hostOf(settings.temporalAddress)])
      ].filter((host) => host !== "" && host !== "0.0.0.0" && host !== "::")
    )
    // Listing the interfaces takes longer than signing.
    const policy: address.Policy = { allow: settings.webhookAllowCidrs, own, speaks6: yield* Effect.cachedWithTTL(speaks6, "10 seconds") }
    const allowed: webhookUrl.Allowed = { cidrs: settings.webhookAllowCidrs, ports: settings.webhookAllowPorts }
    const lookup = address.lookup(settings.webhookDnsServers)
    /** The current URL rules: a webhook may be older than a setting. */
    const judged = (text: string) =>
      Either.match(webhookUrl.check(text, allowed), {
        onRight: (href) => Effect.succeed(new URL(href)),
        onLeft: () => new address.NoAddress({ result: "blocked_address" })
      })

    /** Where to connect for a URL. Idle connections that are no longer allowed are closed. `owner` is whose connections may be reused. */
    const dial = Effect.fnUntraced(function* (text: string, owner: string, turn: number) {
      const url = yield* judged(text)
      const host = url.hostname.replace(/^\[(.*)\]$/, "$1")
      const { certificate, context } = identity.now()
      const chosen = yield* address.choose(host, policy, lookup, turn)
      const route = { webhookId: owner, address: chosen.address, port: Number(url.port || 443), host, certificate }
      pool.retain(owner, ({ address, host, port }) => host === route.host && port === route.port && chosen.allowed.includes(address))
      return { url, route, trust: context }
    })

    /** The outcome of a request for which there is no address. */
    const unreached =
      (owner: string, startedAt: number) =>
      ({ resolverAway = false, result }: address.NoAddress) =>
        Effect.sync((): Answer => {
          pool.retain(owner)
          // The latency would reveal whether an internal name resolves.
          const latencyMs = result === "blocked_address" ? 0 : Math.round(performance.now() - startedAt)
          return { ...UNSENT, result, latencyMs, resolverAway }
        })
    const logProxy = ({ result }: Answer) => (result === "proxy_error" ? logEgressProxy : Effect.void)

    const tokens = new AccessTokens(({ body, headers, url: text, webhookId }) =>
      Effect.suspend(() => {
        const startedAt = performance.now()
        const owner = `${webhookId} token`
        let content: Buffer | undefined
        return dial(text, owner, randomInt(1_000)).pipe(
          Effect.flatMap((where) =>
            post({
              ...where,
              pool,
              fresh: true,
              body,
              startedAt,
              deadlineMs: TOKEN_MS,
              wanted: Effect.succeed(true),
              headers: { ...headers, "user-agent": sign.USER_AGENT },
              hidden: [],
              onBody: (whole) => {
                content = whole
              }
            })
          ),
          Effect.catchTag("Withdrawn", () => Effect.succeed<Answer>({ ...UNSENT, result: "timeout" })),
          Effect.tap(logProxy),
          Effect.catchTag("NoAddress", unreached(owner, startedAt)),
          Effect.map((answer) => ({ answer, content }))
        )
      })
    )

    /** The request of an attempt, whose time begins when it has its token. */
    const request = (sending: Sending, token: AccessToken | undefined): Effect.Effect<Answer, Withdrawn> =>
      Effect.suspend(() => {
        const startedAt = performance.now()
        return Effect.gen(function* () {
          const where = yield* dial(sending.url, sending.webhookId, sending.attempt - 1)
          const timestamp = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
          const signed = { id: sending.eventId, timestamp, body: sending.body, secrets: sending.secrets }
          const ed25519 = yield* signingKeys.signBytes(Buffer.from(sign.signedText(signed)))
          const gateway = [
            ...sending.credentials.headers.map(([name, value]) => [name, Redacted.value(value)] as const),
            ...(token === undefined ? [] : [["authorization", `Bearer ${Redacted.value(token.value)}`] as const])
          ]
          return yield* traced(sending, (trace) =>
            post({
              ...where,
              pool,
              fresh: sending.fresh === true,
              body: sending.body,
              startedAt,
              wanted: sending.wanted,
              headers: { ...Object.fromEntries(gateway), ...sign.descriptive(sending), ...sign.headers({ ...signed, ed25519 }), ...trace },
              hidden: gateway.map(([, value]) => value)
            })
          )
        }).pipe(Effect.tap(logProxy), Effect.catchTag("NoAddress", unreached(sending.webhookId, startedAt)))
      })

    /** The request of an attempt with an access token. */
    const authorized = (sending: Sending, oauth: OAuth): Effect.Effect<Answer, Withdrawn> =>
      Effect.suspend(() => {
        const startedAt = performance.now()
        return tokens.get(sending.webhookId, oauth, sending.newToken === true).pipe(
          Effect.flatMap((token) =>
            Effect.map(request(sending, token), (answer) =>
              answer.httpStatus === 401 && token.isKept && tokens.replaces(sending.webhookId, token.value)
                ? { ...answer, stale: true }
                : answer
            )
          ),
          Effect.catchTag("NoToken", ({ detail, resolverAway = false, result }) => {
            const latencyMs = detail === BLOCKED ? 0 : Math.round(performance.now() - startedAt)
            return Effect.succeed<Answer>({ ...UNSENT, result, detail, latencyMs, resolverAway })
          })
        )
      })

    return {
      /** Sends a request and returns its outcome; fails only if it was withdrawn before anything was sent. */
      send: (sending: Sending): Effect.Effect<Answer, Withdrawn> =>
        sending.credentials.oauth === null ? request(sending, undefined) : authorized(sending, sending.credentials.oauth)
    }
  })
}) {
  static readonly layer: Layer.Layer<WebhookClient, InvalidSettings, Settings | SigningKeys> = this.Default
}
