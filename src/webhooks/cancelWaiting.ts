/**
 * Ending what waits for a webhook that no longer receives it. An endpoint that was away for days leaves more deliveries
 * than one transaction may hold locks for: a webhook is disabled or deleted in a transaction that only records that what
 * waits is to be canceled. That is done afterwards, a few hundred deliveries at a time, in transactions of their own; an
 * attempt that comes to one of them earlier finds it recorded and sends nothing. Decision D-22.
 */
import type { SqlClient, Statement } from "@effect/sql"
import { Duration, Effect } from "effect"

/** Deliveries that one statement ends: few enough for the shortest bound that a pool has on its statements. */
const PART = 200
/** Deliveries of one cancellation whose workflows are canceled at once; those of the others are canceled slowly. */
const AT_ONCE = 500

/** What waits for a webhook and was created until then is to be canceled. */
export interface PendingCancellation {
  readonly id: number
  readonly webhookId: string
  readonly reason: "WEBHOOK_DISABLED" | "WEBHOOK_DELETED"
  readonly until: string
}

/** Where it is announced that workflows are to be signaled, and that cancellations are to be carried out. A hint: it may be lost. */
export const SIGNALS_CHANNEL = "custody_signals",
  CANCELLATIONS_CHANNEL = "custody_cancellations"

/** Whether a delivery `d` is to be canceled, though its row does not say so yet. */
export const isToBeCanceled = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql`EXISTS (SELECT 1 FROM pending_cancellations pc WHERE pc.webhook_id = d.webhook_id AND pc.until >= d.created_at)`

/** Records, in the transaction of the change, that what waits is to be canceled. */
export const requestCancellation = (sql: SqlClient.SqlClient, webhookId: string, reason: PendingCancellation["reason"]) =>
  sql`INSERT INTO pending_cancellations (webhook_id, reason, until) VALUES (${webhookId}, ${reason}, clock_timestamp())`

/** Lets a dispatcher carry out what was requested without waiting for its next poll. */
export const announceCancellation = (sql: SqlClient.SqlClient) => sql`SELECT pg_notify(${CANCELLATIONS_CHANNEL}, '')`

/** Ends one part of what waits, behind the part before: what that one has ended still stands in the index. */
const cancelPart = (
  sql: SqlClient.SqlClient,
  { reason, until, webhookId }: Pick<PendingCancellation, "webhookId" | "until"> & { readonly reason: string },
  { bulk, last, which }: { readonly bulk: boolean; readonly last: string; readonly which: Statement.Fragment }
) =>
  Effect.map(
    // What another transaction holds is left for later: waiting for it could be a deadlock.
    sql<{ found: number; last: string | null }>`
      WITH waiting AS MATERIALIZED (
        SELECT d.id, d.next_attempt_at FROM deliveries d
        WHERE d.webhook_id = ${webhookId} AND d.status IN ('PENDING', 'RETRYING') AND d.created_at <= ${until}::timestamptz
          AND d.next_attempt_at >= ${last}::timestamptz AND ${which}
        ORDER BY d.next_attempt_at LIMIT ${PART} FOR UPDATE SKIP LOCKED
      ), canceled AS (
        UPDATE deliveries d SET status = 'CANCELED', failure_reason = ${reason}, next_attempt_at = NULL
        FROM waiting w WHERE d.id = w.id AND d.status IN ('PENDING', 'RETRYING') RETURNING d.id
      ), told AS (
        INSERT INTO delivery_signals (delivery_id, signal, bulk) SELECT id, 'cancel', ${bulk} FROM canceled
        ON CONFLICT (delivery_id, signal) DO NOTHING
      )
      SELECT (SELECT count(*) FROM waiting) AS found, (SELECT max(next_attempt_at) FROM waiting) AS last,
        pg_notify(${SIGNALS_CHANNEL}, 'cancel')`,
    ([part]) => part ?? { found: 0, last: null }
  )

/**
 * Ends what waits, at most so many parts of it, and forgets the cancellation when nothing is left. Returns whether it is
 * done. After each part it pauses for twice as long as that took, so that others have most of the database.
 */
export const carryOut = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  pending: PendingCancellation,
  parts: number = Number.POSITIVE_INFINITY
) {
  let last = "-infinity"
  for (let part = 0; part < parts; part++) {
    const [took, { found, last: end }] = yield* Effect.timed(
      cancelPart(sql, pending, { last, bulk: part * PART >= AT_ONCE, which: sql.literal("true") })
    )
    // failpoint: canceled-part
    if (end === null || found < PART) break
    last = end
    if (part * PART >= AT_ONCE) yield* Effect.sleep(Duration.times(took, 2))
  }
  const left = yield* sql`
    SELECT 1 FROM deliveries d WHERE d.webhook_id = ${pending.webhookId} AND d.status IN ('PENDING', 'RETRYING')
      AND d.created_at <= ${pending.until}::timestamptz LIMIT 1`
  if (left.length > 0) return false
  yield* sql`DELETE FROM pending_cancellations WHERE id = ${pending.id}`
  return true
})

/** The cancellations that are to be carried out, of one webhook or of all. */
export const pendingCancellations = (sql: SqlClient.SqlClient, webhookId?: string) =>
  sql<PendingCancellation>`
    SELECT id, webhook_id AS "webhookId", reason, until FROM pending_cancellations
    WHERE ${webhookId === undefined ? sql.literal("true") : sql`webhook_id = ${webhookId}`} ORDER BY id LIMIT 100`

/** Ends those deliveries that wait and that `which` picks from `deliveries d`, in the transaction of a change. */
export const cancelWaiting = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, webhookId: string, which: Statement.Fragment) {
  for (let last = "-infinity"; ; ) {
    const part = yield* cancelPart(sql, { webhookId, reason: "MANUAL", until: "infinity" }, { last, bulk: false, which })
    if (part.last === null || part.found < PART) return
    last = part.last
  }
})
