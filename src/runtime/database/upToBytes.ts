/** Rows up to a size in bytes, so that the event loop reads no more of large texts at a time. */
import type { SqlClient, Statement } from "@effect/sql"

/** Most bytes of a page's JSON text, about. */
const PAGE_BYTES = 1_048_576

/**
 * The first rows of `rows`, by `order`, whose column `size` adds up to at most `bytes`; at least one. The column `behind` is the
 * number of rows behind each. Postgres does not read a stored text to know its `octet_length`, nor to pass it on.
 */
export const upToBytes = (
  sql: SqlClient.SqlClient,
  rows: Statement.Fragment,
  order: string,
  bytes = PAGE_BYTES
): Statement.Statement<object> => sql`
  WITH found AS MATERIALIZED (${rows})
  SELECT * FROM (
    SELECT *, sum(size) OVER first AS bytes, count(*) OVER () - row_number() OVER first AS behind FROM found
    WINDOW first AS (ORDER BY ${sql.literal(order)})
  ) sized WHERE bytes <= ${bytes}::bigint OR bytes = size ORDER BY ${sql.literal(order)}`
