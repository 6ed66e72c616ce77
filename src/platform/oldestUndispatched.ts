/** How long the oldest event has waited in the outbox: events that a webhook matches and that are not yet dispatched. */
import type { SqlClient, SqlError } from "@effect/sql"
import { Effect, Schema } from "effect"
import { decodeRows } from "../database/decodeRows.ts"

/** How often a probe starts at the beginning, in ms: a crash of Postgres can bring back earlier events. */
const WHOLE = 60_000

const decode = decodeRows(
  Schema.Struct({ running: Schema.String, waiting: Schema.NullOr(Schema.String), age: Schema.NullOr(Schema.Number) })
)

/**
 * Finds the oldest waiting event: its age in seconds, null if nothing waits. Each probe starts where the previous one
 * ended: at the oldest transaction with waiting events, or at the oldest that was still running. Everything before that
 * is dispatched. So the cost does not depend on how many events were dispatched, even while a backup keeps their dead
 * index entries. Each process remembers its own position.
 */
export const oldestUndispatched = (sql: SqlClient.SqlClient): Effect.Effect<number | null, SqlError.SqlError> => {
  let from = 0n,
    wholeAt = Number.NEGATIVE_INFINITY
  return Effect.suspend(() => {
    const begun = performance.now()
    const whole = begun - wholeAt > WHOLE
    return Effect.map(
      decode(sql`
        SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS running, o.xid::text AS waiting,
          extract(epoch FROM clock_timestamp() - o.recorded_at)::float8 AS age
        FROM (SELECT 1) one LEFT JOIN LATERAL (
          SELECT o.xid, o.recorded_at FROM event_outbox o WHERE o.xid >= ${String(whole ? 0n : from)}::xid8 ORDER BY o.xid LIMIT 1) o ON true`),
      ([row]) => {
        if (whole) wholeAt = begun
        const [running, waiting] = [BigInt(row?.running ?? 0), row?.waiting]
        from = typeof waiting === "string" && BigInt(waiting) < running ? BigInt(waiting) : running
        return row?.age ?? null
      }
    )
  })
}
