/**
 * Indexes for the filtered lists of events and deliveries. Each is on one concatenated expression, so that no other index
 * can be used: for a cached plan, Postgres knows only the average frequency of a kind or status, and would scan the
 * unfiltered list to find a rare one.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
DROP INDEX events_of_kind;
CREATE INDEX events_of_kind ON events ((organization_id || '/' || kind), occurred_at DESC, id DESC);
DROP INDEX events_of_vault_and_kind;
CREATE INDEX events_of_vault_and_kind ON events ((vault_id || '/' || kind), occurred_at DESC, id DESC) WHERE vault_id IS NOT NULL;

-- Serves every choice of statuses and kinds: one run of the index for each pair of them.
DROP INDEX deliveries_by_status;
CREATE INDEX deliveries_by_status ON deliveries ((webhook_id || '/' || status || '/' || kind), created_at DESC, id DESC);
`)
)
