/** The demo's client of the service: over HTTP like any other, with the owner's key and the platform token. */
import { Effect, Redacted, Schema } from "effect"
import type { Addresses } from "../../app/App.ts"
import { createClient, verifyEvents } from "../../client/index.ts"
import { DemoFailed } from "./demoData.ts"

const Webhook = Schema.Struct({ id: Schema.String, description: Schema.String })
const WebhookPage = Schema.Struct({ data: Schema.Array(Webhook) })
const Created = Schema.Struct({ id: Schema.String, secret: Schema.String })
const Rotated = Schema.Struct({ secret: Schema.String, previousSecretExpiresAt: Schema.String })
const Attempt = Schema.Struct({ result: Schema.String, httpStatus: Schema.Int, latencyMs: Schema.Int })
const Delivery = Schema.Struct({
  id: Schema.String,
  webhookId: Schema.String,
  status: Schema.String,
  attempts: Schema.Array(Attempt),
  nextAttemptAt: Schema.NullOr(Schema.String)
})
const Deliveries = Schema.Struct({ data: Schema.Array(Delivery) })
const WithHealth = Schema.Struct({ health: Schema.Struct({ state: Schema.String, heldDeliveries: Schema.Int }) })
const Recovery = Schema.Struct({
  id: Schema.String,
  status: Schema.String,
  progress: Schema.Struct({ created: Schema.Int, delivered: Schema.Int })
})
const Events = Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String, dispatchedAt: Schema.NullOr(Schema.String) })) })
const Balances = Schema.Struct({ data: Schema.Array(Schema.Struct({ amount: Schema.String })) })
const Applied = Schema.Struct({ received: Schema.Int, changed: Schema.Int, events: Schema.Int })
export type Delivery = typeof Delivery.Type

/** Most records per request. */
const BATCH = 1_000

interface Request {
  readonly method?: string
  readonly body?: string
  readonly headers?: { readonly [name: string]: string }
}

const send = (url: string, token: string, { body, headers, method = "GET" }: Request) =>
  Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(url, {
        method,
        signal,
        headers: { authorization: `Bearer ${token}`, ...headers },
        ...(body === undefined ? {} : { body })
      })
      return { ok: response.ok, status: response.status, text: await response.text() }
    },
    catch: (error) => new DemoFailed({ message: `${url} did not respond: ${error instanceof Error ? error.message : String(error)}` })
  }).pipe(
    Effect.filterOrFail(
      ({ ok }) => ok,
      ({ status, text }) => new DemoFailed({ message: `${method} ${url} answered ${status}: ${text}` })
    ),
    Effect.map(({ text }) => text)
  )

const decoding =
  <A, I>(schema: Schema.Schema<A, I>) =>
  (text: string) =>
    Effect.mapError(
      Schema.decode(Schema.parseJson(schema))(text),
      ({ message }) => new DemoFailed({ message: `The service's response is invalid: ${message}` })
    )

/** A client of the service at these addresses. */
export const make = (where: Addresses, platformToken: Redacted.Redacted, key: string) => {
  const get = <A, I>(path: string, schema: Schema.Schema<A, I>) => Effect.flatMap(send(`${where.api}${path}`, key, {}), decoding(schema))
  const post = <A, I>(path: string, body: unknown, schema: Schema.Schema<A, I>) =>
    Effect.flatMap(
      send(`${where.api}${path}`, key, {
        method: "POST",
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } })
      }),
      decoding(schema)
    )
  const records = (lines: ReadonlyArray<string>, headers: { readonly [name: string]: string }) =>
    Effect.flatMap(
      send(`${where.platform}/platform/v1/records`, Redacted.value(platformToken), {
        method: "POST",
        body: lines.join("\n"),
        headers: { "content-type": "application/x-ndjson", ...headers }
      }),
      decoding(Applied)
    )

  return {
    /** Verifies an entity's events against its signed checkpoints, as an auditor would. Returns how many they are. */
    verified: (entityId: string) =>
      Effect.flatMap(
        Effect.tryPromise({
          try: () => verifyEvents(createClient({ baseUrl: where.api ?? "", apiKey: key }), entityId),
          catch: (error) => new DemoFailed({ message: `The events of ${entityId} could not be verified: ${String(error)}` })
        }),
        (found) => (found.complete ? Effect.succeed(found.events) : new DemoFailed({ message: found.difference }))
      ),
    /** Feeds history, without events. Returns how many records were new. */
    history: (lines: ReadonlyArray<string>) =>
      Effect.reduce(
        Array.from({ length: Math.ceil(lines.length / BATCH) }, (_, batch) => lines.slice(batch * BATCH, (batch + 1) * BATCH)),
        0,
        (sum, batch) => Effect.map(records(batch, { "x-record-events": "none" }), ({ changed }) => sum + changed)
      ),
    /** Feeds records with their events. Returns whether they changed anything. */
    happened: (...lines: ReadonlyArray<string>) => Effect.map(records(lines, {}), ({ events }) => events > 0),
    /** What a vault holds of a network's native asset. */
    nativeBalance: (vaultId: string, network: string) =>
      Effect.map(get(`/v1/vaults/${vaultId}/balances?network=${network}&limit=1`, Balances), ({ data }) => data[0]?.amount ?? "0"),
    webhooks: Effect.map(get("/v1/webhooks?limit=500", WebhookPage), ({ data }) => data),
    createWebhook: (body: unknown) => post("/v1/webhooks", body, Created),
    deleteWebhook: (id: string) => send(`${where.api}/v1/webhooks/${id}`, key, { method: "DELETE" }),
    /** Whether a webhook's endpoint is down, and how many deliveries are held. */
    health: (id: string) => Effect.map(get(`/v1/webhooks/${id}`, WithHealth), ({ health }) => health),
    setStatus: (id: string, status: "ACTIVE" | "DISABLED") =>
      send(`${where.api}/v1/webhooks/${id}`, key, {
        method: "PATCH",
        body: JSON.stringify({ status }),
        headers: { "content-type": "application/json" }
      }),
    /** Sends again what a webhook missed since a time. */
    recover: (id: string, since: string) => post(`/v1/webhooks/${id}/recoveries`, { since }, Recovery),
    recovery: (id: string) => get(`/v1/webhook-recoveries/${id}`, Recovery),
    rotateSecret: (id: string) => post(`/v1/webhooks/${id}/rotate-secret`, undefined, Rotated),
    deliveriesOf: (eventId: string) => Effect.map(get(`/v1/webhook-events/${eventId}/deliveries`, Deliveries), ({ data }) => data),
    deliveriesTo: (webhookId: string) => Effect.map(get(`/v1/webhooks/${webhookId}/deliveries?limit=500`, Deliveries), ({ data }) => data),
    eventsSince: (time: string) =>
      Effect.map(get(`/v1/webhook-events?limit=500&occurredAfter=${encodeURIComponent(time)}`, Events), ({ data }) => data)
  }
}

/** The demo's client. */
export type Client = ReturnType<typeof make>
