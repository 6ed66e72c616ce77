/**
 * Sending one request to a webhook: choose and judge the address, sign, post. Deliveries, redeliveries and pings all
 * go through here, and nothing else in the program opens a connection to an endpoint. Runs in the worker role only.
 * Decisions D-24, D-30.
 */

import * as dns from "node:dns/promises"
import * as fs from "node:fs"
import * as os from "node:os"
import { Clock, Effect, Either, type Layer, Redacted } from "effect"
import * as Format from "../settings/Format.ts"
import { InvalidSettings, Settings } from "../settings/Settings.ts"
import * as webhookUrl from "../webhooks/url.ts"
import * as address from "./address.ts"
import { type Answer, post, trustIn, type Withdrawn } from "./post.ts"
import * as sign from "./sign.ts"

/** One request. */
export interface Sending {
  readonly url: string
  readonly eventId: string
  readonly kind: string
  readonly deliveryId: string
  /** Number of the attempt, from 1. */
  readonly attempt: number
  readonly body: string
  /** Live secrets, newest first; at least one. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  /** Asked once the connection stands and before anything is sent: whether to go on. */
  readonly wanted: Effect.Effect<boolean>
}

/** Addresses that are the service's own, of this machine and of the servers that it stands on: refused although they may be public. */
const ownAddresses = (hosts: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(hosts, (host) => Effect.promise(() => dns.lookup(host, { all: true }).catch(() => []))),
    (found) => new Set([...found.flat(), ...interfaces()].flatMap(({ address }) => Format.address(address)?.toString() ?? []))
  )

const interfaces = () => Object.values(os.networkInterfaces()).flatMap((list) => list ?? [])

/** Whether this machine can reach IPv6 hosts at all: an interface has an address that is not of the link or the loopback. */
const speaks6 = Effect.sync(() =>
  interfaces().some(({ address, family, internal }) => family === "IPv6" && !internal && !/^fe[89ab]/i.test(address))
)

const hostOf = (url: string) => (URL.canParse(url) ? new URL(url).hostname : url.replace(/:\d+$/, ""))

export class Sender extends Effect.Service<Sender>()("custody/Sender", {
  effect: Effect.gen(function* () {
    const settings = yield* Settings
    const own = yield* ownAddresses(
      [
        settings.host,
        settings.platformHost,
        ...(settings.databaseUrl === undefined ? [] : [hostOf(Redacted.value(settings.databaseUrl))]),
        ...(settings.temporalAddress === undefined ? [] : [hostOf(settings.temporalAddress)])
      ].filter((host) => host !== "" && host !== "0.0.0.0" && host !== "::")
    )
    // Asking the system for its interfaces takes longer than signing.
    const policy: address.Policy = { allow: settings.webhookAllowCidrs, own, speaks6: yield* Effect.cachedWithTTL(speaks6, "10 seconds") }
    const allowed: webhookUrl.Allowed = { cidrs: settings.webhookAllowCidrs, ports: settings.webhookAllowPorts }
    const lookup = address.lookup(settings.webhookDnsServers)
    const trust = yield* Effect.try({
      try: () => trustIn(settings.webhookExtraCa === undefined ? undefined : fs.readFileSync(settings.webhookExtraCa, "utf8")),
      catch: (error) =>
        new InvalidSettings({
          faults: [
            `WEBHOOK_EXTRA_CA: read “${settings.webhookExtraCa}”, expected a readable PEM file (${error instanceof Error ? error.message : String(error)}).`
          ]
        })
    })

    /** The URL's rules as they are today: a webhook may be older than a setting. */
    const judged = (text: string) =>
      Either.match(webhookUrl.check(text, allowed), {
        onRight: (href) => Effect.succeed(new URL(href)),
        onLeft: () => new address.NoAddress({ result: "blocked_address" })
      })

    return {
      /** Sends a request and returns what came of it; fails only when it was not wanted any more before anything was sent. */
      send: (sending: Sending): Effect.Effect<Answer, Withdrawn> =>
        Effect.suspend(() => {
          const startedAt = performance.now()
          return Effect.gen(function* () {
            const url = yield* judged(sending.url)
            const chosen = yield* address.choose(url.hostname, policy, lookup, sending.attempt - 1)
            const timestamp = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
            const signature = sign.headers({ id: sending.eventId, timestamp, body: sending.body, secrets: sending.secrets })
            return yield* post({
              url,
              address: chosen,
              body: sending.body,
              trust,
              startedAt,
              wanted: sending.wanted,
              headers: { ...sign.descriptive(sending), ...signature }
            })
          }).pipe(
            Effect.catchTag("NoAddress", ({ result }) =>
              Effect.sync((): Answer => {
                // How long it took would tell an internal name that resolves from one that does not.
                const latencyMs = result === "blocked_address" ? 0 : Math.round(performance.now() - startedAt)
                return { result, httpStatus: 0, latencyMs, bodySnippet: null, retryAfterSeconds: undefined }
              })
            )
          )
        })
    }
  })
}) {
  static readonly layer: Layer.Layer<Sender, InvalidSettings, Settings> = this.Default
}
