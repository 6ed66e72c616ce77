/** Redelivers a delivery: a new one of the same event to the same webhook. Spec: Redeliver. Decisions D-8, D-22, D-27. */
import type { SqlClient } from "@effect/sql"
import { type Duration, Effect, Schema } from "effect"
import { requireManage } from "../access/scopeMiddleware.ts"
import { seesEvent, seesWebhook } from "../access/visibility.ts"
import { actorOf, record } from "../audit/AuditTrail.ts"
import type { PrincipalState } from "../credentials/Principal.ts"
import { decodeRows } from "../database/decodeRows.ts"
import { oldestId } from "../events/logWindow.ts"
import { notFound, problem } from "../http/Problem.ts"
import * as Id from "../values/Id.ts"
import { toStartColumns, toStartJoins } from "./deliveriesToStart.ts"
import { columns, decodeNew, deliveryOf } from "./deliveryRows.ts"
import { insertDeliveries } from "./insertDeliveries.ts"
import { firstWait } from "./retrySchedule.ts"
import { ToStart } from "./WorkflowStarter.ts"

/** The fields that a redelivery copies from a delivery, and whether its webhook is active. */
const decodeRedeliverable = decodeRows(Schema.Struct({ ...ToStart.fields, vaultId: Schema.NullOr(Schema.String), active: Schema.Boolean }))

/** The delivery, if the caller can see its webhook and its event. */
const visible = (sql: SqlClient.SqlClient, principal: PrincipalState, deliveryId: string) => sql`
  SELECT ${sql.literal(toStartColumns)}, e.vault_id AS "vaultId", w.status IN ('ACTIVE', 'PAUSED') AS active
  FROM deliveries d ${sql.literal(toStartJoins)}
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
 * Creates a redelivery for callers who can see the webhook and the event, and returns the input of its workflow; undefined
 * if the delivery is held. Call it in a transaction; start the workflow after the commit, which needs no further read.
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
  const id = Id.make("del")
  const { eventId, kind, vaultId, webhookId } = found
  const row = { id, eventId, webhookId, organizationId: principal.organizationId, kind, vaultId, replayedFrom: deliveryId }
  const [made] = yield* decodeNew(sql`
    WITH ${insertDeliveries(sql, [row], firstWait(retrySchedule))}
    SELECT ${sql.literal(columns)}, true AS seen FROM written d`)
  if (made === undefined) return yield* Effect.die(new Error(`the delivery ${id} was not written`))
  yield* record(sql, [
    {
      organizationId: principal.organizationId,
      actor: actorOf(principal),
      action: "delivery.redelivered",
      target: { type: "delivery", id: deliveryId },
      changes: { redelivery: { old: null, new: id } }
    }
  ])
  const { active: _, vaultId: _vault, ...started } = found
  const toStart: ToStart | undefined = made.status === "HELD" ? undefined : { ...started, id }
  return { delivery: deliveryOf({ ...made, attempts: [] }), toStart }
})
