/**
 * When people and programs are warned that a key expires: by Postgres' clock, which also decides whether the key has expired.
 * C-13.
 */
import type { SqlClient, Statement } from "@effect/sql"

/** Days before the expiry at which its user and the organization's owners are warned, the earliest first. */
export const EXPIRY_STEPS = [30, 7, 1] as const

/** The first of them; from then on, responses say when the key expires. */
export const [FIRST_STEP] = EXPIRY_STEPS

const passed = (sql: SqlClient.SqlClient, expiresAt: Statement.Fragment) =>
  sql`unnest(${[...EXPIRY_STEPS]}::smallint[]) AS s (days) WHERE ${expiresAt} - make_interval(days => s.days::integer) <= now()`

/** The latest step of an expiry that has been reached; null before the first. */
export const currentStep = (sql: SqlClient.SqlClient, expiresAt: Statement.Fragment) =>
  sql`(SELECT min(s.days) FROM ${passed(sql, expiresAt)})`

/**
 * The steps that count as announced when an expiry is set: those that do not lie ahead. None if the expiry itself is over: if that
 * is a clock's fault, the key is warned of once the clock is right.
 */
export const stepsPassed = (sql: SqlClient.SqlClient, expiresAt: Statement.Fragment) =>
  sql`ARRAY(SELECT s.days FROM ${passed(sql, expiresAt)} AND ${expiresAt} > now())`
