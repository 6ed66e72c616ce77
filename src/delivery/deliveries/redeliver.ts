/** Redelivers a delivery: a new one of the same event to the same webhook. Spec: Redeliver. Decisions D-8, D-22, D-27. */
import type { SqlClient } from "@effect/sql"
import { type Duration, Effect, Schema } from "effect"
import { recordOf } from "../../access/audit/AuditTrail.ts"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { requireManage } from "../../access/visibility/scopeMiddleware.ts"
import { seesEvent, seesWebhook } from "../../access/visibility/visibility.ts"
import { oldestId } from "../../events/log/logWindow.ts"
import { notFound, problem } from "../../http/Problem.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { claimKeyOf } from "../../runtime/temporal/commands.ts"
import * as Id from "../../values/Id.ts"
import { columns, decodeNew, deliveryOf } from "./deliveryRows.ts"
import { hasMostDeliveries, insertDeliveries, MOST_OF_EVENT } from "./insertDeliveries.ts"
import { firstWait } from "./retrySchedule.ts"

/** The fields that a redelivery copies from a delivery, and whether its webhook is active. */
const decodeRedeliverable = decodeRows(
  Schema.Struct({
    webhookId: Schema.String,
    eventId: Schema.String,
    kind: Schema.String,
    vaultId: Schema.NullOr(Schema.String),
    active: Schema.Boolean
  })
)

/** The delivery, if the caller can see its webhook and its event. */
const visible = (sql: SqlClient.SqlClient, principal: PrincipalState, deliveryId: string) => sql`
  SELECT d.webhook_id AS "webhookId", d.event_id AS "eventId", d.kind, e.vault_id AS "vaultId", w.status IN ('ACTIVE', 'PAUSED') AS active
  FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id LEFT JOIN events e ON e.id = d.event_id
  WHERE d.id = ${deliveryId} AND d.id >= ${oldestId("del")} AND e.id >= ${oldestId("evt")} AND w.deleted_at IS NULL
    AND ${seesWebhook(sql, principal)} AND ${seesEvent(sql, principal)}`

/** Rejects callers who cannot see the delivery's webhook and event, then those who may not manage webhooks. */
export const requireRedeliverable = Effect.fn("requireRedeliverable")(function* (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  deliveryId: string
) {
  if ((yield* visible(sql, principal, deliveryId)).length === 0) return yield* notFound()
  yield* requireManage(principal)
})

/**
 * Creates a redelivery for callers who can see the webhook and the event, with the command to make its first attempt unless
 * it is held. Call it in a transaction.
 */
export const redeliver = Effect.fn("redeliver")(function* (
  sql: SqlClient.SqlClient,
  retrySchedule: ReadonlyArray<Duration.Duration>,
  principal: PrincipalState,
  deliveryId: string
) {
  const [found] = yield* decodeRedeliverable(sql`${visible(sql, principal, deliveryId)} FOR SHARE OF w`)
  if (found === undefined) return yield* notFound()
  yield* requireManage(principal)
  if (!found.active) return yield* problem("webhook_disabled", "The webhook is disabled. Enable it first.")
  const most = yield* sql`SELECT 1 WHERE ${hasMostDeliveries(sql, sql`${found.eventId}`)}`
  if (most.length > 0)
    return yield* problem(
      "redelivery_limit_reached",
      `An event with ${MOST_OF_EVENT} deliveries is not redelivered: they are listed in full.`
    )
  const id = Id.make("del")
  const { eventId, kind, vaultId, webhookId } = found
  const row = { id, eventId, webhookId, organizationId: principal.organizationId, kind, vaultId, replayedFrom: deliveryId }
  const [made] = yield* decodeNew(sql`
    WITH ${insertDeliveries(sql, [row], firstWait(retrySchedule))}, claimed AS (
      INSERT INTO commands (key, members, organization_id) SELECT ${claimKeyOf(id)}, ARRAY[id], organization_id FROM written WHERE status = 'PENDING'
    )
    SELECT ${sql.literal(columns)} FROM written d`)
  if (made === undefined) return yield* Effect.die(new Error(`the delivery ${id} was not written`))
  yield* recordOf(sql, principal, "delivery.redelivered", { type: "delivery", id: deliveryId }, { redelivery: { old: null, new: id } })
  return deliveryOf({ ...made, attempts: [] })
})
