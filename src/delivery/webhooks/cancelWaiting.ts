/**
 * Cancels the waiting deliveries of a webhook that no longer receives them, or whose owner no longer wants them. An
 * endpoint that was down for days leaves more deliveries than one transaction can lock. So the command only records, in the
 * webhook's queue, the last sequence that is to be canceled, and no time: clocks may be set back. The webhook's drain cancels
 * them afterwards, a few hundred at a time; an attempt that begins earlier finds the record and sends nothing. Decision D-22.
 */

import type { SqlClient, Statement } from "@effect/sql"
import { Effect, Schema } from "effect"
import { drainIdOf } from "../../../workflows/contract.ts"
import { covers } from "../../events/log/matching.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { failpoint } from "../../runtime/failpoint.ts"
import { insertCommands, insertDeliveryCommands } from "../../runtime/temporal/commands.ts"

/** Deliveries per statement: few enough for the shortest statement timeout of any pool. */
export const CANCEL_PART = 200

/** Why waiting deliveries are canceled. */
export type CancelReason = "WEBHOOK_DISABLED" | "WEBHOOK_DELETED" | "MANUAL"

const decodeParts = decodeRows(Schema.Struct({ found: Schema.Number, started: Schema.Number, last: Schema.String }))
const decodeRequests = decodeRows(
  Schema.Struct({ to: Schema.Number, reason: Schema.Literal("WEBHOOK_DISABLED", "WEBHOOK_DELETED", "MANUAL") })
)

/** The sequence of a webhook's newest delivery. */
export const lastSequence = (sql: SqlClient.SqlClient, webhookId: string): Statement.Fragment => sql`
  coalesce((SELECT s.last FROM webhook_sequences s WHERE s.webhook_id = ${webhookId}), 0)`

/** Longest time between a dispatcher's read of the filters and the commit of its deliveries; its transactions end sooner. */
const DISPATCHING = "1 minute"

/**
 * Whether a delivery `d` to a webhook `w` was waiting, or being created by the old filters, when an owner who does not see
 * every vault set the webhook's URL, and is no longer covered, or is of an event without a vault, which a key with an allowlist does not see:
 * it must not be sent to the new URL. It is canceled in its turn.
 */
const isOfEarlierUrl = (sql: SqlClient.SqlClient): Statement.Fragment => sql`
  (d.vault_id IS NULL AND d.sequence <= w.hidden_to
    OR w.moved_at IS NOT NULL AND NOT ${covers(sql, "d")}
    AND (d.sequence <= w.moved_to OR d.created_at < w.moved_at + CASE WHEN d.replayed_from IS NULL THEN interval '${sql.literal(DISPATCHING)}' ELSE interval '0' END))`

/**
 * Why a delivery `d` to a webhook `w`, with the queue `q` if it has one, must not be sent, although its row does not show it
 * yet; null if it may be sent.
 */
export const cancelReason = (sql: SqlClient.SqlClient): Statement.Fragment => sql`
  CASE WHEN w.deleted_at IS NOT NULL THEN 'WEBHOOK_DELETED' WHEN w.status = 'DISABLED' THEN 'WEBHOOK_DISABLED'
    WHEN q.cancel_to >= d.sequence THEN q.cancel_reason
    WHEN ${isOfEarlierUrl(sql)}
      OR d.recovery_id IS NOT NULL AND EXISTS (SELECT 1 FROM recoveries r WHERE r.id = d.recovery_id AND r.status = 'CANCELED') THEN 'MANUAL' END`

/** Whether a delivery `d` to a webhook `w`, with the queue `q` if it has one, will still be sent. One that is to be canceled may wait for minutes. */
export const isToBeSent = (sql: SqlClient.SqlClient): Statement.Fragment => sql`
  (d.status IN ('PENDING', 'RETRYING', 'HELD') AND (${cancelReason(sql)}) IS NULL)`

/**
 * Records in the transaction of the change that waiting deliveries are to be canceled. What was down or paused no longer is, and the
 * end of a hold whose deliveries are canceled is announced to nobody.
 */
export const requestCancellation = (sql: SqlClient.SqlClient, webhookId: string, reason: CancelReason) => sql`
  WITH requested AS (
    INSERT INTO webhook_queues AS q (webhook_id, due, live, cancel_to, cancel_reason)
    VALUES (${webhookId}, clock_timestamp(), true, ${lastSequence(sql, webhookId)}, ${reason})
    ON CONFLICT (webhook_id) DO UPDATE SET cancel_to = excluded.cancel_to, cancel_reason = excluded.cancel_reason,
      due = excluded.due, down = q.down AND ${reason} = 'MANUAL', down_at = CASE WHEN ${reason} = 'MANUAL' THEN q.down_at END,
      delivered = CASE WHEN ${reason} = 'MANUAL' THEN q.delivered ELSE 0 END, noticed = q.noticed AND ${reason} = 'MANUAL'
    RETURNING webhook_id
  )
  ${insertCommands(sql, sql`SELECT ${drainIdOf("")}::text || webhook_id FROM requested`)}`

/** Cancels the next part of the waiting deliveries, starting after the previous part, whose dead index entries would be read again. */
const cancelPart = (sql: SqlClient.SqlClient, webhookId: string, reason: CancelReason, last: string, which: Statement.Fragment) =>
  Effect.map(
    // Rows locked by another transaction are left for later: waiting for them could deadlock.
    decodeParts(sql`
      WITH waiting AS MATERIALIZED (
        SELECT d.id, d.next_attempt_at FROM deliveries d
        WHERE d.webhook_id = ${webhookId} AND d.status IN ('PENDING', 'RETRYING') AND d.next_attempt_at >= ${last}::timestamptz AND ${which}
        ORDER BY d.next_attempt_at LIMIT ${CANCEL_PART} FOR UPDATE SKIP LOCKED
      ), held AS MATERIALIZED (
        -- Held deliveries have no due time, so they are canceled oldest first; canceled ones leave the index.
        SELECT d.id FROM deliveries d
        WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD' AND ${which}
        ORDER BY d.rank, d.sequence LIMIT ${CANCEL_PART} FOR UPDATE SKIP LOCKED
      ), canceled AS (
        UPDATE deliveries d SET status = 'CANCELED', failure_reason = ${reason}, next_attempt_at = NULL
        FROM (SELECT id FROM waiting UNION ALL SELECT id FROM held) w WHERE d.id = w.id AND d.status IN ('PENDING', 'RETRYING', 'HELD')
        RETURNING d.id, d.started, d.organization_id
      ), woken AS (
        ${insertDeliveryCommands(sql, sql`SELECT id, organization_id FROM canceled WHERE started`)}
      )
      SELECT greatest((SELECT count(*) FROM waiting), (SELECT count(*) FROM held)) AS found,
        (SELECT count(*) FROM canceled WHERE started) AS started,
        coalesce((SELECT max(next_attempt_at) FROM waiting), ${last}::timestamptz)::text AS last`),
    ([part]) => part ?? { found: 0, started: 0, last }
  )

/** The result of a part of a requested cancellation. */
export interface Canceled {
  /** Whether there is no request any more. */
  readonly done: boolean
  /** Canceled deliveries with a workflow, which ends as Canceled. */
  readonly started: number
}

/**
 * Cancels a part of what was requested for a webhook, and everything that waits for one that is disabled. When nothing is
 * left, it removes the request, and the queue of a disabled webhook; whoever queues a delivery locks the queue's key, so none
 * is left behind.
 */
export const runCancellation = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, webhookId: string) {
  const [request] = yield* decodeRequests(sql`
    UPDATE webhook_queues q SET cancel_to = CASE WHEN w.status = 'DISABLED' THEN ${lastSequence(sql, webhookId)} ELSE q.cancel_to END,
      cancel_reason = coalesce(q.cancel_reason, CASE WHEN w.deleted_at IS NULL THEN 'WEBHOOK_DISABLED' ELSE 'WEBHOOK_DELETED' END)
    FROM webhooks w WHERE q.webhook_id = ${webhookId} AND w.id = q.webhook_id AND (q.cancel_to IS NOT NULL OR w.status = 'DISABLED')
    RETURNING q.cancel_to AS "to", q.cancel_reason AS reason`)
  if (request === undefined) return { done: true, started: 0 } satisfies Canceled
  const { found, started } = yield* cancelPart(sql, webhookId, request.reason, "-infinity", sql`d.sequence <= ${request.to}::bigint`)
  failpoint("canceled-part")
  if (found >= CANCEL_PART) return { done: false, started } satisfies Canceled
  const done = yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`SELECT 1 FROM webhook_queues WHERE webhook_id = ${webhookId} FOR UPDATE`
      const left = yield* sql`
        SELECT 1 FROM deliveries d WHERE d.webhook_id = ${webhookId} AND d.status IN ('PENDING', 'RETRYING') AND d.sequence <= ${request.to}::bigint
        UNION ALL
        SELECT 1 FROM deliveries d WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD' AND (d.sequence <= ${request.to}::bigint
          OR EXISTS (SELECT 1 FROM webhooks w WHERE w.id = d.webhook_id AND w.status = 'DISABLED')) LIMIT 1`
      if (left.length > 0) return false
      yield* sql`
        DELETE FROM webhook_queues q USING webhooks w WHERE q.webhook_id = ${webhookId} AND w.id = q.webhook_id AND w.status = 'DISABLED'`
      yield* sql`
        UPDATE webhook_queues SET cancel_to = NULL, cancel_reason = NULL
        WHERE webhook_id = ${webhookId} AND cancel_to = ${request.to}::bigint`
      return true
    })
  )
  return { done, started } satisfies Canceled
})

/** Cancels the waiting deliveries that `which` selects from `deliveries d`. Not for a transaction that others wait for: there may be many. */
export const cancelWaiting = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, webhookId: string, which: Statement.Fragment) {
  for (let last = "-infinity"; ; ) {
    const part = yield* cancelPart(sql, webhookId, "MANUAL", last, which)
    if (part.found < CANCEL_PART) return
    last = part.last
  }
})
