/**
 * The organization of an attempt, as deliveries and notices have it. Rows from before are not written again: for the 31 days
 * that they are kept, their deliveries name it. Decision D-55.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
ALTER TABLE delivery_attempts ADD COLUMN organization_id text COLLATE "C";
`)
)
