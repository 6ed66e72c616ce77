/** Records of the event log, as in API responses. Spec: Webhook event. Decision D-28. */
import { Schema } from "effect"
import { Timestamp, timestamp } from "../../values/Timestamp.ts"
import { transactionExample } from "../../values/Vault.ts"

const EVENT_ID = "evt_01jz0000000000000000000000"
const ENTITY_ID = "entity_k3vwj9pbkx2z8z81zfse2sm8ra"
const VAULT_ID = "vault_dkjh7m6gvxzc2wjrphqz46b3br"

/** An envelope, for the OpenAPI document. */
const envelope = {
  id: EVENT_ID,
  kind: "transaction.confirmed",
  schemaVersion: 1,
  date: "2025-03-24T22:01:59.000Z",
  entityId: ENTITY_ID,
  vaultIds: [VAULT_ID],
  data: { vaultId: VAULT_ID, transaction: transactionExample }
}

const fields = {
  id: Schema.String.annotations({ description: "Opaque, prefixed evt_", examples: [EVENT_ID] }),
  entityId: Schema.String.annotations({
    description: "Operating unit (entity) that it belongs to",
    examples: [ENTITY_ID]
  }),
  vaultIds: Schema.NullOr(Schema.Array(Schema.String)).annotations({
    description: "Vaults involved; null if the event is not vault-scoped",
    examples: [[VAULT_ID]]
  }),
  kind: Schema.String.annotations({ description: "Event kind", examples: ["transaction.confirmed"] }),
  schemaVersion: Schema.Int.annotations({ description: "Version of the kind's schema", examples: [1] }),
  payload: Schema.Record({ key: Schema.String, value: Schema.Unknown }).annotations({
    description: "The exact envelope that matching webhooks receive",
    jsonSchema: {
      type: "object",
      description: "The exact envelope that matching webhooks receive",
      additionalProperties: true,
      examples: [envelope]
    }
  }),
  occurredAt: timestamp("When it occurred; the envelope's date"),
  dispatchedAt: Schema.NullOr(Timestamp).annotations({
    description: "When deliveries were created; null while dispatch is pending",
    examples: ["2025-03-24T22:01:59.412Z"]
  }),
  createdAt: timestamp("When it was recorded")
}

/** An event in the list. */
export const Event = Schema.Struct(fields).annotations({ identifier: "WebhookEvent", title: "Webhook event" })

const count = Schema.Int.annotations({ jsonSchema: { type: "integer", minimum: 0 } })

/** One event with its deliveries. */
export const EventDetail = Schema.Struct({
  ...fields,
  matchedCount: Schema.Int.annotations({
    description: "Number of active and paused webhooks that matched at dispatch; 0 before dispatch",
    examples: [1]
  }),
  deliveryCounts: Schema.Struct({
    PENDING: count,
    RETRYING: count,
    HELD: count,
    DELIVERED: Schema.Int.annotations({ jsonSchema: { type: "integer", minimum: 0, examples: [1] } }),
    FAILED: count,
    CANCELED: count
  }).annotations({
    description: "Number of its deliveries visible to this API key, by status, including redeliveries"
  })
}).annotations({ identifier: "WebhookEventDetail" })
