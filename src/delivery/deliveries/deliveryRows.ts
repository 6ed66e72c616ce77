/** Rows of deliveries, and the delivery of a row. Spec: Delivery. */
import { Record, Schema, Struct } from "effect"
import { castRows, decodeRows } from "../../runtime/database/decodeRows.ts"
import { heldBecause } from "../webhooks/queue.ts"
import { Delivery } from "./Delivery.ts"

/** A delivery, whether the caller can see its event, and the number of rows behind it. */
const Examined = Schema.Struct({ ...Delivery.fields, seen: Schema.Boolean, behind: Schema.Number })
export type Examined = typeof Examined.Type

// Pages are not decoded: the list is one of the most frequent reads.
export const castDeliveries = castRows(Examined),
  decodeNew = decodeRows(Delivery.omit("attempts"))

/** The delivery, with fields in the order of its contract. */
export const deliveryOf: (row: Delivery) => Delivery = Struct.pick(...Record.keys(Delivery.fields))

export const columns = `d.id, d.event_id AS "eventId", d.webhook_id AS "webhookId", d.sequence, d.kind, d.status, d.next_attempt_at AS "nextAttemptAt",
  ${heldBecause} AS "heldBecause",
  d.failure_reason AS "failureReason", d.replayed_from AS "replayedFromDeliveryId", d.recovery_id AS "recoveryId", d.delivered_at AS "deliveredAt", d.created_at AS "createdAt"`
