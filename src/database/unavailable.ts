/** When Postgres cannot answer, and waiting until it can. */
import { SqlError } from "@effect/sql"
import { type Duration, Effect, Schedule } from "effect"
import pg from "pg"

/**
 * What Postgres says when it cannot answer now: no connection, no room, shut down or canceled, a lock not had in time,
 * a lost race for one, a transaction that was idle too long, a standby that takes no writes.
 */
const unavailable = /^(08|53|57P0|57014|55P03|40001|40P01|25P03|25006)/
const broken = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN", "CONNECTION_ENDED"])

/**
 * Whether an error says that Postgres cannot answer now (away, restarting, full, too slow, a lost race for a
 * lock) and not that the statement is wrong. The error boundary answers 503 to the former and 500 to the latter.
 */
export const isUnavailable = (error: unknown): boolean => {
  if (!(error instanceof SqlError.SqlError)) return false
  const { cause } = error
  // What Postgres itself says is told by its code; its words quote the statement and the values, whatever stands there.
  if (cause instanceof pg.DatabaseError) return unavailable.test(cause.code ?? "")
  if (!(cause instanceof Error)) return false
  const code = "code" in cause ? String(cause.code) : ""
  return broken.has(code) || /terminated|timeout exceeded|Connection ended|not queryable|connection error|ECONN/i.test(cause.message)
}

/** Runs an effect again while Postgres cannot answer: every so often, for as long as `upTo` says or until it can. */
export const whileUnavailable =
  (every: Duration.DurationInput, upTo?: Duration.DurationInput) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.retry(effect, {
      while: isUnavailable,
      schedule: upTo === undefined ? Schedule.spaced(every) : Schedule.spaced(every).pipe(Schedule.upTo(upTo))
    })
