/** The time by Postgres' clock, which decides about stored times: the clocks of processes may be wrong. */
import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { decodeRows } from "./decodeRows.ts"

const decode = decodeRows(Schema.Struct({ now: Schema.Number }))

/** The time by Postgres' clock, in ms since the epoch. */
export const databaseTime = (sql: SqlClient.SqlClient) =>
  Effect.map(decode(sql`SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`), ([row]) => row?.now ?? 0)
