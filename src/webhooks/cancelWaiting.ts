/**
 * Cancels the waiting deliveries of a webhook that no longer receives them, or whose owner no longer wants them. An
 * endpoint that was down for days leaves more deliveries than one transaction can lock. So the command only records that
 * the waiting deliveries are to be canceled. That happens afterwards, a few hundred deliveries at a time, in separate
 * transactions; an attempt that starts earlier finds the record and sends nothing. Decision D-22.
 */

import type { SqlClient, Statement } from "@effect/sql"
import { Duration, Effect, Schema } from "effect"
import { decodeRows } from "../database/decodeRows.ts"
import { covers } from "../events/matching.ts"

/** Deliveries per statement: few enough for the shortest statement timeout of any pool. */
const PART = 200
/** Deliveries of one cancellation whose workflows are canceled immediately; the others are canceled at a limited rate. */
const IMMEDIATE = 500
/** The pause after a part, as a multiple of the time that the part took. */
const PAUSE = 5

const PendingCancellation = Schema.Struct({
  id: Schema.Number,
  webhookId: Schema.String,
  reason: Schema.Literal("WEBHOOK_DISABLED", "WEBHOOK_DELETED", "MANUAL"),
  until: Schema.String
})
/** A request to cancel the waiting deliveries of a webhook that were created up to a time. */
export type PendingCancellation = typeof PendingCancellation.Type

const decode = decodeRows(PendingCancellation)
const decodeParts = decodeRows(Schema.Struct({ found: Schema.Number, last: Schema.String }))

/** The channel that announces signals to workflows and cancellations. A hint: it may be lost. */
export const SIGNALS_CHANNEL = "custody_signals",
  CANCELLATIONS_CHANNEL = "custody_cancellations"

/** Whether a delivery `d` is to be canceled with its webhook, although its row does not show it yet. */
export const hasPendingCancellation = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql`EXISTS (SELECT 1 FROM pending_cancellations pc WHERE pc.webhook_id = d.webhook_id AND pc.until >= d.created_at)`

/** Longest time between a dispatcher's read of the filters and the commit of its deliveries; its transactions end sooner. */
const DISPATCHING = "1 minute"

/**
 * Whether a delivery `d` to a webhook `w` was waiting, or being created by the old filters, when an owner who does not see
 * every vault set the webhook's URL, and is no longer covered: it must not be sent to the new URL.
 */
const isOfEarlierUrl = (sql: SqlClient.SqlClient): Statement.Fragment => sql`
  (w.moved_at IS NOT NULL AND NOT ${covers(sql, "d")}
    AND d.created_at < w.moved_at + CASE WHEN d.replayed_from IS NULL THEN interval '${sql.literal(DISPATCHING)}' ELSE interval '0' END)`

/** Why a delivery `d` to a webhook `w` must not be sent, although its row does not show it yet; null if it may be sent. */
export const cancelReason = (sql: SqlClient.SqlClient): Statement.Fragment => sql`
  CASE WHEN w.deleted_at IS NOT NULL THEN 'WEBHOOK_DELETED' WHEN w.status = 'DISABLED' THEN 'WEBHOOK_DISABLED'
    WHEN ${hasPendingCancellation(sql)}
      THEN (SELECT pc.reason FROM pending_cancellations pc WHERE pc.webhook_id = d.webhook_id AND pc.until >= d.created_at ORDER BY pc.id LIMIT 1)
    WHEN ${isOfEarlierUrl(sql)} OR EXISTS (SELECT 1 FROM recoveries r WHERE r.id = d.recovery_id AND r.status = 'CANCELED') THEN 'MANUAL' END`

/** Records in the transaction of the change that waiting deliveries are to be canceled. */
export const requestCancellation = (sql: SqlClient.SqlClient, webhookId: string, reason: PendingCancellation["reason"]) =>
  sql`INSERT INTO pending_cancellations (webhook_id, reason, until) VALUES (${webhookId}, ${reason}, clock_timestamp())`

/** Makes a dispatcher carry out requested cancellations without waiting for its next poll. */
export const announceCancellation = (sql: SqlClient.SqlClient) => sql`SELECT pg_notify(${CANCELLATIONS_CHANNEL}, '')`

/** Cancels the next part of the waiting deliveries, starting after the previous part, whose dead index entries would be read again. */
const cancelPart = (
  sql: SqlClient.SqlClient,
  { reason, until, webhookId }: Pick<PendingCancellation, "webhookId" | "until"> & { readonly reason: string },
  { bulk, last, which }: { readonly bulk: boolean; readonly last: string; readonly which: Statement.Fragment }
) =>
  Effect.map(
    // Rows locked by another transaction are left for later: waiting for them could deadlock.
    decodeParts(sql`
      WITH waiting AS MATERIALIZED (
        SELECT d.id, d.next_attempt_at FROM deliveries d
        WHERE d.webhook_id = ${webhookId} AND d.status IN ('PENDING', 'RETRYING') AND d.created_at <= ${until}::timestamptz
          AND d.next_attempt_at >= ${last}::timestamptz AND ${which}
        ORDER BY d.next_attempt_at LIMIT ${PART} FOR UPDATE SKIP LOCKED
      ), held AS MATERIALIZED (
        -- Held deliveries have no due time, so they are canceled oldest first; canceled ones leave the index.
        SELECT d.id FROM deliveries d
        WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD' AND d.created_at <= ${until}::timestamptz AND ${which}
        ORDER BY d.sequence LIMIT ${PART} FOR UPDATE SKIP LOCKED
      ), canceled AS (
        UPDATE deliveries d SET status = 'CANCELED', failure_reason = ${reason}, next_attempt_at = NULL
        FROM (SELECT id FROM waiting UNION ALL SELECT id FROM held) w WHERE d.id = w.id AND d.status IN ('PENDING', 'RETRYING', 'HELD')
        RETURNING d.id, d.started
      ), signaled AS (
        INSERT INTO delivery_signals (delivery_id, signal, bulk) SELECT id, 'cancel', ${bulk} FROM canceled WHERE started
        ON CONFLICT (delivery_id, signal) DO NOTHING
      )
      SELECT greatest((SELECT count(*) FROM waiting), (SELECT count(*) FROM held)) AS found,
        coalesce((SELECT max(next_attempt_at) FROM waiting), ${last}::timestamptz)::text AS last, pg_notify(${SIGNALS_CHANNEL}, 'cancel')`),
    ([part]) => part ?? { found: 0, last }
  )

/**
 * Cancels waiting deliveries in at most `parts` parts, and deletes the cancellation when none is left. Returns whether it
 * is done. After each part it pauses for {@link PAUSE} times as long as the part took, so that other work gets most of the
 * database.
 */
export const runCancellation = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  pending: PendingCancellation,
  parts: number = Number.POSITIVE_INFINITY
) {
  let last = "-infinity"
  for (let part = 0; part < parts; part++) {
    const [took, { found, last: end }] = yield* Effect.timed(
      cancelPart(sql, pending, { last, bulk: part * PART >= IMMEDIATE, which: sql.literal("true") })
    )
    // failpoint: canceled-part
    if (found < PART) break
    last = end
    if (part * PART >= IMMEDIATE) yield* Effect.sleep(Duration.times(took, PAUSE))
  }
  const left = yield* sql`
    SELECT 1 WHERE EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = ${pending.webhookId} AND d.status IN ('PENDING', 'RETRYING')
      AND d.created_at <= ${pending.until}::timestamptz)
      OR EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = ${pending.webhookId} AND d.status = 'HELD'
      AND d.created_at <= ${pending.until}::timestamptz)`
  if (left.length > 0) return false
  yield* sql`DELETE FROM pending_cancellations WHERE id = ${pending.id}`
  return true
})

/** The pending cancellations, of one webhook or of all. */
export const pendingCancellations = (sql: SqlClient.SqlClient, webhookId?: string) =>
  decode(sql`
    SELECT id, webhook_id AS "webhookId", reason, until FROM pending_cancellations
    WHERE ${webhookId === undefined ? sql.literal("true") : sql`webhook_id = ${webhookId}`} ORDER BY id LIMIT 100`)

/** Cancels the waiting deliveries that `which` selects from `deliveries d`, in the transaction of a change. */
export const cancelWaiting = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, webhookId: string, which: Statement.Fragment) {
  for (let last = "-infinity"; ; ) {
    const part = yield* cancelPart(sql, { webhookId, reason: "MANUAL", until: "infinity" }, { last, bulk: false, which })
    if (part.found < PART) return
    last = part.last
  }
})
