/** An index by which the event log is listed by entity. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
CREATE INDEX events_of_entity_newest ON events (entity_id, occurred_at DESC, id DESC);
`)
)
