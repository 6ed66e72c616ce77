/** Detecting that Postgres is unavailable, and waiting until it is back. */
import * as SqlError from "@effect/sql/SqlError"
import { type Duration, Effect, Schedule } from "effect"
import pg from "pg"

/**
 * Error codes of an unavailable Postgres: no connection, a refused login, a missing database, no space, shutdown or cancellation, a
 * lock timeout, a serialization failure, an idle transaction timeout, a read-only standby.
 */
const unavailable = /^(08|28|3D000|53|57P0|57014|55P03|40001|40P01|25P03|25006)/
const broken = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN", "CONNECTION_ENDED"])

/**
 * Whether an error means that Postgres is temporarily unavailable (unreachable, restarting, full, too slow, serialization
 * failure) and not that the statement is wrong. The error boundary answers 503 to the former and 500 to the latter.
 */
export const isUnavailable = (error: unknown): boolean => {
  if (!(error instanceof SqlError.SqlError)) return false
  const { cause } = error
  // Errors from Postgres are identified by their code: the message quotes the statement and its values.
  if (cause instanceof pg.DatabaseError) return unavailable.test(cause.code ?? "")
  if (!(cause instanceof Error)) return false
  const code = "code" in cause ? String(cause.code) : ""
  return broken.has(code) || /terminated|timeout exceeded|Connection ended|not queryable|connection error|ECONN/i.test(cause.message)
}

/** Repeats an effect while Postgres is unavailable, at an interval, for at most `upTo` or until it succeeds. */
export const whileUnavailable =
  (every: Duration.DurationInput, upTo?: Duration.DurationInput) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.retry(effect, {
      while: isUnavailable,
      schedule: upTo === undefined ? Schedule.spaced(every) : Schedule.spaced(every).pipe(Schedule.upTo(upTo))
    })
