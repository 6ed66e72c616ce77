/** How far statements are sealed, for operators. C-6. */
import type { SqlClient } from "@effect/sql"
import { Duration, Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"

export interface SealedUntil {
  /** The oldest day, as `YYYY-MM-DD`, that is not sealed for every vault; null without vaults. */
  readonly nextDate: string | null
  /** How long that day's statements have been due, in seconds; 0 when they are not due yet. */
  readonly overdueSeconds: number
}

const decode = decodeRows(Schema.Struct({ nextDate: Schema.NullOr(Schema.String), overdue: Schema.NullOr(Schema.Number) }))

/** Reads the last sealed day of the chain that is furthest behind, from the end of an index. Without chains, nothing is sealed yet. */
export const sealedUntil = (sql: SqlClient.SqlClient, delay: Duration.Duration) =>
  Effect.map(
    decode(sql`
      SELECT n.date::text AS "nextDate",
        extract(epoch FROM clock_timestamp() - (n.date + 1)::timestamptz)::float8 - ${Duration.toSeconds(delay)}::float8 AS overdue
      FROM (SELECT coalesce((SELECT min(c.next_date) FROM statement_chains c), (SELECT min(v.recorded_at) FROM vaults v)::date) AS date) n`),
    ([row]): SealedUntil => ({ nextDate: row?.nextDate ?? null, overdueSeconds: Math.max(0, row?.overdue ?? 0) })
  )
