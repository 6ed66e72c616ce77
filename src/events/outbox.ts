/**
 * The outbox: events that a webhook wants and that were not dispatched yet. It is read by organization, never as a
 * whole, so that what it costs to look follows from how many organizations wait and not from how much of each.
 */
import type { SqlClient, SqlError } from "@effect/sql"
import { Effect } from "effect"

/**
 * A common table expression `waiting (organization_id, n)`: up to `limit` organizations with events in the outbox, in
 * the order of their ids, from the one after `after`; a last row may be null. It goes from one to the next by the index.
 */
export const waitingOrganizations = (sql: SqlClient.SqlClient, after: string, limit: number) => sql`
  waiting (organization_id, n) AS (
    (SELECT o.organization_id, 1 FROM event_outbox o WHERE o.organization_id > ${after} ORDER BY o.organization_id LIMIT 1)
    UNION ALL
    SELECT (SELECT o.organization_id FROM event_outbox o WHERE o.organization_id > w.organization_id ORDER BY o.organization_id LIMIT 1), w.n + 1
    FROM waiting w WHERE w.organization_id IS NOT NULL AND w.n < ${limit}
  )`

/** How often a look begins at the beginning, in ms: a crash of Postgres may put back what was taken before it. */
const WHOLE = 60_000

/**
 * A look at the event that waits the longest: its age in seconds, null when nothing waits. Each look begins where the one
 * before ended: at the oldest transaction whose events wait, or else at the oldest one that was still running. What is
 * before that is dispatched for good. So a look costs the same however many events were dispatched, also while a backup
 * keeps their entries in the index. Each process remembers for itself.
 */
export const oldestWaiting = (sql: SqlClient.SqlClient): Effect.Effect<number | null, SqlError.SqlError> => {
  let from = 0n,
    wholeAt = Number.NEGATIVE_INFINITY
  return Effect.suspend(() => {
    const begun = performance.now()
    const whole = begun - wholeAt > WHOLE
    return Effect.map(
      sql<{ running: string; waiting: string | null; age: number | null }>`
        SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS running, o.xid::text AS waiting,
          extract(epoch FROM clock_timestamp() - o.recorded_at)::float8 AS age
        FROM (SELECT 1) one LEFT JOIN LATERAL (
          SELECT o.xid, o.recorded_at FROM event_outbox o WHERE o.xid >= ${String(whole ? 0n : from)}::xid8 ORDER BY o.xid LIMIT 1) o ON true`,
      ([row]) => {
        if (whole) wholeAt = begun
        const [running, waiting] = [BigInt(row?.running ?? 0), row?.waiting]
        from = typeof waiting === "string" && BigInt(waiting) < running ? BigInt(waiting) : running
        return row?.age ?? null
      }
    )
  })
}
