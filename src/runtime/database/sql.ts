/** Helpers for building statements. */

import type { SqlClient, Statement } from "@effect/sql"
import * as SqlError from "@effect/sql/SqlError"
import { Effect } from "effect"
import { DEADLOCK, hasSqlState } from "./hasSqlState.ts"

/** `AND a AND b …` of the given conditions; empty without any. */
export const and = (sql: SqlClient.SqlClient, ...conditions: ReadonlyArray<Statement.Fragment | false>): Statement.Fragment => {
  const present = conditions.filter((condition) => condition !== false)
  return present.length === 0 ? sql.literal("") : sql`AND ${sql.and(present)}`
}

/**
 * Statements do not fail for reasons that a caller could handle: their errors are defects, which the error boundary
 * interprets.
 */
export const dieOnSql = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, Exclude<E, SqlError.SqlError>, R> =>
  Effect.catchAll(effect, (error) =>
    // Everything in E other than SqlError; the type checker cannot see that through the class check.
    error instanceof SqlError.SqlError ? Effect.die(error) : Effect.fail(error as Exclude<E, SqlError.SqlError>)
  )

/** How many times a transaction is repeated after a deadlock. */
const RETRIES = 3

/** Runs an effect in a transaction, and repeats it after a deadlock. */
export const transaction =
  (sql: SqlClient.SqlClient) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    Effect.retry(sql.withTransaction(effect), { times: RETRIES, while: (error) => hasSqlState(error, DEADLOCK) })
