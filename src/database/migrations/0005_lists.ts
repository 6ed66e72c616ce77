/**
 * Indexes by which the lists of events and deliveries find their rows whatever they are filtered by, so that a page
 * costs the same however long the log is.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
CREATE INDEX events_of_vault_and_kind ON events (vault_id, kind, occurred_at DESC, id DESC) WHERE vault_id IS NOT NULL;
CREATE INDEX events_of_entity ON events (organization_id, occurred_at DESC, id DESC) WHERE vault_id IS NULL;

-- Serves every choice of statuses and kinds: one run of the index for each pair of them.
CREATE INDEX deliveries_by_status ON deliveries (webhook_id, status, kind, created_at DESC, id DESC);
DROP INDEX deliveries_not_delivered;
`)
)
