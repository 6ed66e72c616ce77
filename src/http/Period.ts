/**
 * The period of a list: from a time on, up to and including one, or up to one exclusively. With the exclusive end, periods that
 * follow each other count nothing twice. Spec: List transactions. C-10.
 */
import type { SqlClient, Statement } from "@effect/sql"
import { Schema } from "effect"
import { and } from "../runtime/database/sql.ts"
import { TimestampFrom, TimestampParam } from "../values/Timestamp.ts"

/** A period; an absent bound does not limit it. */
export interface Period {
  readonly occurredAfter?: string | undefined
  readonly occurredBefore?: string | undefined
  readonly occurredUntil?: string | undefined
}

/** The query parameters of a {@link Period}; `what` begins their descriptions. Queries with them are {@link withOneEnd}. */
export const periodParams = (what: string) => {
  const bound = (schema: typeof TimestampParam, which: string) => Schema.optional(schema.annotations({ description: `${what} ${which}` }))
  return {
    occurredAfter: bound(TimestampFrom, "at or after this"),
    occurredBefore: bound(TimestampParam, "at or before this"),
    // Rounded up: a time finer than milliseconds is after the millisecond that it lies in.
    occurredUntil: bound(TimestampFrom, "before this; not together with `occurredBefore`")
  }
}

/** Rejects a query with both ends: one of them would have no effect. */
export const withOneEnd = <A extends Period, I>(schema: Schema.Schema<A, I>) =>
  schema.pipe(
    Schema.filter(({ occurredBefore, occurredUntil }) =>
      occurredBefore !== undefined && occurredUntil !== undefined
        ? { path: ["occurredUntil"], message: "must not be given together with occurredBefore" }
        : undefined
    )
  )

/** The rows of a period, by a column with their time: a condition that begins with AND. */
export const inPeriod = (
  sql: SqlClient.SqlClient,
  column: string,
  { occurredAfter, occurredBefore, occurredUntil }: Period
): Statement.Fragment =>
  and(
    sql,
    occurredAfter !== undefined && sql`${sql.literal(column)} >= ${occurredAfter}::timestamptz`,
    occurredBefore !== undefined && sql`${sql.literal(column)} <= ${occurredBefore}::timestamptz`,
    occurredUntil !== undefined && sql`${sql.literal(column)} < ${occurredUntil}::timestamptz`
  )
