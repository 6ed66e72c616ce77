/**
 * The transaction that wrote an event into the outbox. Whoever looks whether anything waits begins where it ended the
 * last time (outbox.ts), and does not pass the entries of what was dispatched since, which stay in the index for as long
 * as a backup holds a snapshot.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
ALTER TABLE event_outbox ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX event_outbox_in_order ON event_outbox (xid);
`)
)
