/** When somebody who does not see everything last changed a webhook's URL: what waited then is only sent if the webhook covers it. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
ALTER TABLE webhooks ADD COLUMN moved_at timestamptz;
`)
)
