/** What people recognize a key by: the first and last characters of its secret, and the address that used it last. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
ALTER TABLE api_keys ADD COLUMN hint text, ADD COLUMN last_used_address text;
`)
)
