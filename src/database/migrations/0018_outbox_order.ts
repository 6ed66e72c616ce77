/**
 * The id of the transaction that wrote an event into the outbox. A poll for waiting events starts where the previous one
 * ended (dispatch/WaitingOrganizations.ts), so it skips the dead index entries of dispatched events, which remain for as
 * long as a backup holds a snapshot.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
ALTER TABLE event_outbox ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX event_outbox_in_order ON event_outbox (xid);
`)
)
