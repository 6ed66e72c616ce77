/** Small parts that statements are put together from. */
import { type SqlClient, SqlError, type Statement } from "@effect/sql"
import { Effect } from "effect"

/** `AND a AND b …` of the conditions that are there; nothing when none is. */
export const and = (sql: SqlClient.SqlClient, ...conditions: ReadonlyArray<Statement.Fragment | false>): Statement.Fragment => {
  const present = conditions.filter((condition) => condition !== false)
  return present.length === 0 ? sql.literal("") : sql`AND ${sql.and(present)}`
}

/** Page sizes that clients ask for most, with the one row more by which a page knows that it is not the last. */
const USUAL = new Set([10, 20, 25, 50, 100, 200, 500].flatMap((limit) => [limit, limit + 1]))

/**
 * `LIMIT` of a list that runs along an index. The usual sizes stand in the text: with a parameter Postgres thinks that
 * the plan for the size at hand is so much better that it makes one for each execution, which takes longer than the rows.
 * `times` multiplies it, for rows that are looked through.
 */
export const limit = (sql: SqlClient.SqlClient, rows: number, times = 1): Statement.Fragment =>
  USUAL.has(rows) ? sql.literal(`LIMIT ${rows * times}`) : sql`LIMIT ${rows * times}`

/** Statements do not fail for reasons that a caller could act on: what Postgres refuses is a defect, which the error boundary reads. */
export const dieOnSql = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, Exclude<E, SqlError.SqlError>, R> =>
  Effect.catchAll(effect, (error) =>
    // What is not the SqlError is everything else that E holds; the type checker cannot see that through the class check.
    error instanceof SqlError.SqlError ? Effect.die(error) : Effect.fail(error as Exclude<E, SqlError.SqlError>)
  )

/** Times that a transaction is run again when Postgres ended it to break a circle of locks. */
const AGAIN = 3

const isDeadlock = (error: unknown): boolean =>
  error instanceof SqlError.SqlError &&
  typeof error.cause === "object" &&
  error.cause !== null &&
  "code" in error.cause &&
  error.cause.code === "40P01"

/** Runs an effect in a transaction, and again from its beginning when it was ended to break a circle of locks. */
export const transaction =
  (sql: SqlClient.SqlClient) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    Effect.retry(sql.withTransaction(effect), { times: AGAIN, while: isDeadlock })
