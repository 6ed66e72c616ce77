/** How long the oldest event has waited in the outbox: events that a webhook matches and that are not yet dispatched. */
import type { SqlClient, SqlError } from "@effect/sql"
import { Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { incrementalProbe } from "./incrementalProbe.ts"

const decode = decodeRows(
  Schema.Struct({ running: Schema.String, waiting: Schema.NullOr(Schema.String), age: Schema.NullOr(Schema.Number) })
)

/**
 * Its age in seconds, null if nothing waits. The next probe starts at the oldest transaction with waiting events, or at the
 * oldest that is still running: everything before that is dispatched.
 */
export const oldestUndispatched = (sql: SqlClient.SqlClient): Effect.Effect<number | null, SqlError.SqlError> =>
  incrementalProbe(0n, (from) =>
    Effect.map(
      decode(sql`
        SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS running, o.xid::text AS waiting,
          extract(epoch FROM clock_timestamp() - o.recorded_at)::float8 AS age
        FROM (SELECT 1) one LEFT JOIN LATERAL (
          SELECT o.xid, o.recorded_at FROM event_outbox o WHERE o.xid >= ${String(from)}::xid8 ORDER BY o.xid LIMIT 1) o ON true`),
      ([row]) => {
        const [running, waiting] = [BigInt(row?.running ?? 0), row?.waiting]
        return [row?.age ?? null, typeof waiting === "string" && BigInt(waiting) < running ? BigInt(waiting) : running] as const
      }
    )
  )
