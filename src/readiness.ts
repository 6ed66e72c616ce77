/** Whether this process can do its work, for `/health/ready` on the platform listener. */
import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import type { Readiness } from "./ledger/platformApp.ts"
import { TemporalConnection } from "./temporal/Connection.ts"

/** How the process is: each dependency with what is wrong with it. Reads and management go on without Temporal. */
export const readiness = (api: boolean) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const connection = yield* TemporalConnection
    const oldest = yield* sql<{ age: number | null }>`
      SELECT extract(epoch FROM clock_timestamp() - min(created_at))::float8 AS age FROM (
        SELECT created_at FROM events WHERE dispatched_at IS NULL ORDER BY id LIMIT 1) e`.pipe(Effect.timeout("2 seconds"), Effect.option)
    const temporalAnswers = yield* connection.answers
    const state: Readiness = {
      ready: Option.isSome(oldest) && (temporalAnswers || api),
      dependencies: {
        postgres: Option.isSome(oldest) ? null : "Postgres does not answer",
        temporal: temporalAnswers ? null : "Temporal does not answer: events are recorded and wait"
      },
      oldestUndispatchedSeconds: Option.match(oldest, {
        onNone: () => null,
        onSome: ([row]) => Math.max(0, Math.round((row?.age ?? 0) * 1000) / 1000)
      })
    }
    return state
  })
