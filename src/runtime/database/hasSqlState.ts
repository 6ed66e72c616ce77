/** The codes with which Postgres rejects a statement (SQLSTATE). */
import pg from "pg"

/** Two transactions waited for each other, and Postgres ended this one. */
export const DEADLOCK = "40P01"
/** A lock was not available within `lock_timeout`. */
export const LOCK_NOT_AVAILABLE = "55P03"
/** A row still refers to the deleted one, or the one that a row refers to is missing. */
export const FOREIGN_KEY_VIOLATION = "23503"

/** The error of Postgres: the given one, or one of its causes; undefined if there is none. */
export const postgresErrorOf = (error: unknown): pg.DatabaseError | undefined => {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof pg.DatabaseError) return at
  return undefined
}

/** Whether Postgres rejected a statement with one of the codes. */
export const hasSqlState = (error: unknown, ...codes: ReadonlyArray<string>): boolean => codes.includes(postgresErrorOf(error)?.code ?? "")
