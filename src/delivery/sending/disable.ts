/**
 * Disables a webhook whose endpoint keeps failing or is gone, in the transaction that records the failure: requests the
 * cancellation of what waits, ends its recovery, and records the event for each of its entities. Decision D-23.
 */
import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { recordOfService } from "../../access/audit/AuditTrail.ts"
import * as EventLog from "../../events/log/EventLog.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { requestCancellation } from "../webhooks/cancelWaiting.ts"
import { endRecoveries } from "../webhooks/endRecoveries.ts"
import { countWaiting, type Disabled } from "./recordNotices.ts"

const decodeOldest = decodeRows(Schema.Struct({ at: Schema.NullOr(Schema.String) }))
const decodeDisabled = decodeRows(Schema.Struct({ at: Schema.String, entityIds: Schema.Array(Schema.String) }))

/** Disables an active webhook; undefined if it is not active. */
export const makeDisable = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (webhookId: string, reason: "FAILING" | "GONE", organizationId: string) {
    const [row] = yield* decodeDisabled(sql`
      UPDATE webhooks w SET status = 'DISABLED', disabled_reason = ${reason}, disabled_at = now(), updated_at = now()
      WHERE id = ${webhookId} AND status = 'ACTIVE' RETURNING disabled_at AS at,
        ARRAY(SELECT we.entity_id FROM webhook_entities we WHERE we.webhook_id = w.id ORDER BY we.entity_id)::text[] AS "entityIds"`)
    if (row === undefined) return undefined
    const { at, entityIds } = row
    const canceled = yield* countWaiting(sql, webhookId)
    const oldestOf = (status: string) =>
      sql`(SELECT min(d.created_at) FROM deliveries d WHERE (d.webhook_id || '/' || d.status) = ${`${webhookId}/${status}`})`
    const [oldest = { at: null }] = yield* decodeOldest(sql`
      SELECT least(${oldestOf("PENDING")}, ${oldestOf("RETRYING")}, ${oldestOf("HELD")},
        (SELECT min(r.since) FROM recoveries r WHERE r.webhook_id = ${webhookId} AND r.status IN ('RUNNING', 'PAUSED'))) AS at`)
    yield* requestCancellation(sql, webhookId, "WEBHOOK_DISABLED")
    yield* endRecoveries(sql, webhookId)
    yield* EventLog.record(
      sql,
      entityIds.map((entityId) => ({
        kind: "webhook.disabled" as const,
        date: at,
        organizationId,
        entityId,
        vaultId: null,
        audience: entityIds,
        data: { webhookId, webhook: { id: webhookId, status: "DISABLED" as const, disabledReason: reason, disabledAt: at } }
      }))
    )
    yield* recordOfService(sql, organizationId, "webhook.disabled", webhookId, {
      status: { old: "ACTIVE", new: "DISABLED" },
      disabledReason: { old: null, new: reason }
    })
    return { at, canceled, oldest: oldest.at } satisfies Disabled
  })
