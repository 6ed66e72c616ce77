/** Deletes rows in parts, so that no statement takes long. */
import type { SqlClient, SqlError, Statement } from "@effect/sql"
import { Effect, Schema } from "effect"
import { decodeRows } from "./decodeRows.ts"

const decodeCounts = decodeRows(Schema.Struct({ count: Schema.Number }))

/**
 * Deletes about this many rows `t` of a table for which a condition is true; returns how many. In a table with partitions they
 * can be more: a row's address is only unique within its partition, so every other row at one of the addresses is checked again.
 */
export const deletePart = (
  sql: SqlClient.SqlClient,
  table: string,
  condition: Statement.Fragment,
  most: number
): Effect.Effect<number, SqlError.SqlError> =>
  Effect.map(
    decodeCounts(sql`
      WITH gone AS (
        DELETE FROM ${sql(table)} t WHERE t.ctid = ANY (ARRAY(SELECT t.ctid FROM ${sql(table)} t WHERE ${condition} LIMIT ${most})) AND ${condition}
        RETURNING 1
      )
      SELECT count(*) AS count FROM gone`),
    ([row]) => row?.count ?? 0
  )
