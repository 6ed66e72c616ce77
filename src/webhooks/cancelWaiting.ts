import type { SqlClient, Statement } from "@effect/sql"
import { Effect } from "effect"

/** Deliveries that one statement ends: few enough for the shortest bound that a pool has on its statements. */
const AT_ONCE = 500

/**
 * Ends what waits for a webhook that no longer receives it, in the transaction of the change; a dispatcher then tells the
 * running workflows. Returns how many deliveries it were. An endpoint that was away for days leaves more of them than
 * one statement may take time for, so they are ended a part at a time, each behind the one before: what this transaction
 * has ended still stands in the index. Decision D-22.
 */
export const cancelWaiting = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  webhookId: string,
  reason: "WEBHOOK_DISABLED" | "WEBHOOK_DELETED" | "MANUAL",
  /** Of `deliveries d`, which of them; all when absent. */
  which: Statement.Fragment = sql.literal("true")
) {
  let last = "-infinity"
  for (let total = 0; ; ) {
    // What was found and has ended by the time that it is locked is not canceled; it says nothing of what is left.
    const [part] = yield* sql<{ found: number; canceled: number; last: string | null }>`
      WITH waiting AS MATERIALIZED (
        SELECT d.id, d.next_attempt_at FROM deliveries d
        WHERE d.webhook_id = ${webhookId} AND d.status IN ('PENDING', 'RETRYING') AND d.next_attempt_at >= ${last}::timestamptz AND ${which}
        ORDER BY d.next_attempt_at LIMIT ${AT_ONCE}
      ), canceled AS (
        UPDATE deliveries d SET status = 'CANCELED', failure_reason = ${reason}, next_attempt_at = NULL
        FROM waiting w WHERE d.id = w.id AND d.status IN ('PENDING', 'RETRYING') RETURNING d.id
      ), told AS (
        INSERT INTO delivery_signals (delivery_id, signal) SELECT id, 'cancel' FROM canceled ON CONFLICT (delivery_id, signal) DO NOTHING
      )
      SELECT (SELECT count(*) FROM waiting) AS found, (SELECT count(*) FROM canceled) AS canceled, (SELECT max(next_attempt_at) FROM waiting) AS last`
    total += part?.canceled ?? 0
    if (part === undefined || part.last === null || part.found < AT_ONCE) return total
    last = part.last
  }
})
