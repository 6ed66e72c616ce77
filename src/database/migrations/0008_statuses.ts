/**
 * An index for a webhook's deliveries of one status, whatever their kind. The index on status and kind would need a range
 * scan per kind, and would miss kinds that a newer version has stored.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
CREATE INDEX deliveries_of_status ON deliveries ((webhook_id || '/' || status), created_at DESC, id DESC);
`)
)
