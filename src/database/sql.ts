/** Small parts that statements are put together from. */
import type { SqlClient, Statement } from "@effect/sql"

/** `AND a AND b …` of the conditions that are there; nothing when none is. */
export const and = (sql: SqlClient.SqlClient, ...conditions: ReadonlyArray<Statement.Fragment | false>): Statement.Fragment => {
  const present = conditions.filter((condition) => condition !== false)
  return present.length === 0 ? sql.literal("") : sql`AND ${sql.and(present)}`
}
