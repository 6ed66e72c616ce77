/** Records of the event log, as in API responses. Spec: Webhook event. Decision D-28. */
import { Schema } from "effect"
import { Timestamp, timestamp } from "../../values/Timestamp.ts"

const fields = {
  id: Schema.String.annotations({ description: "Opaque, prefixed evt_", examples: ["evt_01jz0000000000000000000000"] }),
  entityId: Schema.String.annotations({
    description: "Operating unit (entity) that it belongs to",
    examples: ["entity_k3vwj9pbkx2z8z81zfse2sm8ra"]
  }),
  vaultIds: Schema.NullOr(Schema.Array(Schema.String)).annotations({
    description: "Vaults involved; null if the event is not vault-scoped"
  }),
  kind: Schema.String.annotations({ description: "Event kind", examples: ["transaction.confirmed"] }),
  schemaVersion: Schema.Int.annotations({ description: "Version of the kind's schema" }),
  payload: Schema.Record({ key: Schema.String, value: Schema.Unknown }).annotations({
    description: "The exact envelope that matching webhooks receive",
    jsonSchema: { type: "object", description: "The exact envelope that matching webhooks receive", additionalProperties: true }
  }),
  occurredAt: timestamp("When it occurred; the envelope's date"),
  dispatchedAt: Schema.NullOr(Timestamp).annotations({ description: "When deliveries were created; null while dispatch is pending" }),
  createdAt: timestamp("When it was recorded")
}

/** An event in the list. */
export const Event = Schema.Struct(fields).annotations({ identifier: "WebhookEvent", title: "Webhook event" })

const count = Schema.Int.annotations({ jsonSchema: { type: "integer", minimum: 0 } })

/** One event with its deliveries. */
export const EventDetail = Schema.Struct({
  ...fields,
  matchedCount: Schema.Int.annotations({ description: "Number of active and paused webhooks that matched at dispatch; 0 before dispatch" }),
  deliveryCounts: Schema.Struct({
    PENDING: count,
    RETRYING: count,
    HELD: count,
    DELIVERED: count,
    FAILED: count,
    CANCELED: count
  }).annotations({
    description: "Number of its deliveries visible to this API key, by status, including redeliveries"
  })
}).annotations({ identifier: "WebhookEventDetail" })
