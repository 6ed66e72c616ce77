/**
 * When a caller who cannot see every vault last changed a webhook's URL. Deliveries that were waiting then are sent only if
 * the webhook still covers them.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
ALTER TABLE webhooks ADD COLUMN moved_at timestamptz;
`)
)
