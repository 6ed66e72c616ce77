/** Whether this process can do its work, for `/health/ready` on the platform listener. */
import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import { oldestId } from "./events/EventsRepo.ts"
import type { Readiness } from "./ledger/platformApp.ts"
import { TemporalConnection } from "./temporal/Connection.ts"

/** How overdue the longest overdue delivery is whose endpoint took the last one: one that nobody works on, or only slowly. */
const overdue = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ age: number }>`
    SELECT extract(epoch FROM now() - d.next_attempt_at)::float8 AS age FROM deliveries d
    WHERE d.status IN ('PENDING', 'RETRYING') AND d.next_attempt_at < now() AND d.id >= ${oldestId("del")}
      AND NOT EXISTS (SELECT 1 FROM webhook_health h WHERE h.webhook_id = d.webhook_id AND h.consecutive_failures > 0)
    ORDER BY d.next_attempt_at LIMIT 1`
)

/** A write that writes nothing. Where nothing can be written it is refused, and the connection is left for another one. */
const writing = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`UPDATE notices SET recipient = recipient WHERE false`)

const rounded = (seconds: number) => Math.max(0, Math.round(seconds * 1000) / 1000)

/** How the process is: each dependency with what is wrong with it. Reads and management go on without Temporal. */
export const readiness = (api: boolean) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const connection = yield* TemporalConnection
    const seen = yield* sql<{ undispatched: number | null; readOnly: boolean }>`
      SELECT (SELECT extract(epoch FROM clock_timestamp() - created_at)::float8 FROM events WHERE dispatched_at IS NULL ORDER BY id LIMIT 1) AS undispatched,
        current_setting('transaction_read_only') = 'on' AS "readOnly"`.pipe(Effect.timeout("2 seconds"), Effect.option)
    const [row] = Option.getOrElse(seen, () => [])
    if (row?.readOnly === true) yield* Effect.ignore(writing)
    // No more than a figure: where it takes too long it is not known, and the process is no less ready.
    const late = row === undefined ? Option.none() : yield* overdue.pipe(Effect.timeout("1 second"), Effect.option)
    const temporalAnswers = yield* connection.answers
    const state: Readiness = {
      ready: row !== undefined && ((temporalAnswers && !row.readOnly) || api),
      dependencies: {
        postgres: row === undefined ? "Postgres does not answer" : row.readOnly ? "Postgres takes no writes: is it a standby?" : null,
        temporal: temporalAnswers ? null : "Temporal does not answer: events are recorded and wait"
      },
      oldestUndispatchedSeconds: row === undefined ? null : rounded(row.undispatched ?? 0),
      oldestOverdueSeconds: Option.match(late, { onNone: () => null, onSome: ([one]) => rounded(one?.age ?? 0) })
    }
    return state
  })
