/** How long the most overdue delivery has been due. */
import type { SqlClient, SqlError } from "@effect/sql"
import { Effect, Schema } from "effect"
import { oldestId } from "../../events/log/logWindow.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { incrementalProbe } from "./incrementalProbe.ts"

const decode = decodeRows(Schema.Struct({ age: Schema.NullOr(Schema.Number), from: Schema.String }))

/**
 * For how many seconds the most overdue delivery has been due, among those whose endpoint accepted its last attempt, or the drain of
 * a queue; 0 if there is none. It means that no worker processes it, or that workers are too slow. The next probe starts at the first delivery that
 * was due and waiting, or shortly before the time of this one: deliveries never become due in the past, so none is missed for
 * more than a moment.
 */
export const oldestOverdue = (sql: SqlClient.SqlClient): Effect.Effect<number, SqlError.SqlError> =>
  incrementalProbe("-infinity", (from) =>
    Effect.map(
      decode(sql`
        WITH first AS MATERIALIZED (
          SELECT d.next_attempt_at AS due FROM deliveries d
          WHERE d.status IN ('PENDING', 'RETRYING') AND d.next_attempt_at >= ${from}::timestamptz
            AND d.next_attempt_at < now() AND d.id >= ${oldestId("del")}
          ORDER BY d.next_attempt_at LIMIT 1)
        SELECT least((SELECT due FROM first), now() - interval '5 seconds') AS from, greatest(
          (SELECT extract(epoch FROM now() - min(q.due))::float8 FROM webhook_queues q), (
          SELECT extract(epoch FROM now() - d.next_attempt_at)::float8 FROM deliveries d
          WHERE d.status IN ('PENDING', 'RETRYING') AND d.next_attempt_at >= (SELECT due FROM first) AND d.next_attempt_at < now()
            AND d.id >= ${oldestId("del")}
            AND NOT EXISTS (SELECT 1 FROM webhook_health h WHERE h.webhook_id = d.webhook_id AND h.consecutive_failures > 0)
          ORDER BY d.next_attempt_at LIMIT 1)) AS age`),
      ([row]) => [Math.max(0, row?.age ?? 0), row?.from ?? "-infinity"] as const
    )
  )
