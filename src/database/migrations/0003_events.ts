/**
 * The event log, in daily partitions over the id (Partitions.ts). The payload is text on purpose: it is the
 * very text that is signed and sent, and jsonb would change it.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
CREATE TABLE events (
  id text COLLATE "C" NOT NULL,
  organization_id text COLLATE "C" NOT NULL,
  entity_id text COLLATE "C" NOT NULL,
  vault_id text COLLATE "C",
  kind text COLLATE "C" NOT NULL,
  schema_version smallint NOT NULL CHECK (schema_version > 0),
  payload text NOT NULL,
  occurred_at timestamptz(3) NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  dispatched_at timestamptz(3),
  matched_count integer NOT NULL DEFAULT 0 CHECK (matched_count >= 0),
  -- entities that a reader must all have access to, where that is more than entity_id
  audience text[],
  PRIMARY KEY (id),
  CHECK (dispatched_at IS NOT NULL OR matched_count = 0)
) PARTITION BY RANGE (id);
CREATE INDEX events_undispatched ON events (id) WHERE dispatched_at IS NULL;
CREATE INDEX events_newest ON events (organization_id, occurred_at DESC, id DESC);
CREATE INDEX events_of_kind ON events (organization_id, kind, occurred_at DESC, id DESC);
CREATE INDEX events_of_vault ON events (vault_id, occurred_at DESC, id DESC) WHERE vault_id IS NOT NULL;
`)
)
