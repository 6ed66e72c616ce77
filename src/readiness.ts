/** Whether this process can do its work, for `/health/ready` on the platform listener. */
import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import { oldestId } from "./events/EventsRepo.ts"
import type { Readiness } from "./ledger/platformApp.ts"
import { TemporalConnection } from "./temporal/Connection.ts"

/** Deliveries that are looked at, the longest overdue. */
const LOOKED_AT = 1_000

/**
 * How the process is: each dependency with what is wrong with it. Reads and management go on without Temporal. A delivery
 * that is overdue although its endpoint took the last one is one that nobody works on.
 */
export const readiness = (api: boolean) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const connection = yield* TemporalConnection
    const seen = yield* sql<{ undispatched: number | null; overdue: number | null; readOnly: boolean }>`
      SELECT (SELECT extract(epoch FROM clock_timestamp() - created_at)::float8 FROM events WHERE dispatched_at IS NULL ORDER BY id LIMIT 1) AS undispatched,
        (SELECT extract(epoch FROM clock_timestamp() - min(d.due))::float8 FROM (
          SELECT next_attempt_at AS due, webhook_id FROM deliveries WHERE status IN ('PENDING', 'RETRYING')
            AND next_attempt_at < clock_timestamp() AND id >= ${oldestId("del")} ORDER BY next_attempt_at, id LIMIT ${LOOKED_AT}) d
          LEFT JOIN webhook_health h ON h.webhook_id = d.webhook_id WHERE coalesce(h.consecutive_failures, 0) = 0) AS overdue,
        current_setting('transaction_read_only') = 'on' AS "readOnly"`.pipe(Effect.timeout("2 seconds"), Effect.option)
    const [row] = Option.getOrElse(seen, () => [])
    const age = (seconds: number | null = 0) => (row === undefined ? null : Math.max(0, Math.round((seconds ?? 0) * 1000) / 1000))
    const temporalAnswers = yield* connection.answers
    const state: Readiness = {
      ready: row !== undefined && ((temporalAnswers && !row.readOnly) || api),
      dependencies: {
        postgres: row === undefined ? "Postgres does not answer" : row.readOnly ? "Postgres takes no writes: is it a standby?" : null,
        temporal: temporalAnswers ? null : "Temporal does not answer: events are recorded and wait"
      },
      oldestUndispatchedSeconds: age(row?.undispatched),
      oldestOverdueSeconds: age(row?.overdue)
    }
    return state
  })
