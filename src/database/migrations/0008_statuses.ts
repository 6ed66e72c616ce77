/**
 * A webhook's deliveries of one status whatever their kind, by one run of an index: by the index of statuses and kinds
 * it takes one for each kind there is, and misses kinds that a newer version of the program has stored.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
CREATE INDEX deliveries_of_status ON deliveries ((webhook_id || '/' || status), created_at DESC, id DESC);
`)
)
