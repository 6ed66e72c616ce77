/**
 * Sending one request to a webhook: choose and judge the address, sign, post. Deliveries, redeliveries and pings all
 * go through here, and nothing else in the program opens a connection to an endpoint. Runs in the worker role only.
 * Decisions D-24, D-30.
 */

import * as dns from "node:dns/promises"
import * as fs from "node:fs"
import { Clock, Effect, type Layer, Redacted } from "effect"
import { InvalidSettings, Settings } from "../settings/Settings.ts"
import * as address from "./address.ts"
import { type Answer, post, trustIn } from "./post.ts"
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
  readonly secrets: ReadonlyArray<Redacted.Redacted>
}

/** Hosts that are the service's own: a public address of one of them is refused all the same. */
const ownAddresses = (hosts: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(hosts, (host) => Effect.promise(() => dns.lookup(host, { all: true }).catch(() => []))),
    (found) => new Set(found.flat().map(({ address }) => address))
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
    const policy: address.Policy = { allow: settings.webhookAllowCidrs, own }
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

    return {
      /** Sends a request and returns what came of it; it never fails. */
      send: (sending: Sending): Effect.Effect<Answer> =>
        Effect.gen(function* () {
          const startedAt = yield* Clock.currentTimeMillis
          const url = new URL(sending.url)
          const chosen = yield* address.choose(url.hostname, policy, lookup, sending.attempt - 1)
          const timestamp = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
          const signature = sign.headers({ id: sending.eventId, timestamp, body: sending.body, secrets: sending.secrets })
          return yield* post({
            url,
            address: chosen,
            body: sending.body,
            trust,
            // The name's own time counts against the deadline of the attempt.
            spentMs: (yield* Clock.currentTimeMillis) - startedAt,
            headers: {
              "content-type": "application/json",
              "user-agent": "custody-data-service-webhooks/1",
              ...signature,
              "x-service-delivery-id": sending.deliveryId,
              "x-service-attempt": String(sending.attempt),
              "x-service-event-kind": sending.kind
            }
          })
        }).pipe(
          Effect.catchTag("NoAddress", ({ result }) =>
            Effect.succeed<Answer>({ result, httpStatus: 0, latencyMs: 0, bodySnippet: null, retryAfterSeconds: undefined })
          )
        )
    }
  })
}) {
  static readonly layer: Layer.Layer<Sender, InvalidSettings, Settings> = this.Default
}
