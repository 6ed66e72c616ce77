/**
 * The event feed: indexes by which a reader goes along the events of a vault, and of entities, in the order of recording.
 * The hash chains of entities and their checkpoints. Public keys of checkpoints, statements and deliveries are kept for good, so that what a replaced key signed still verifies.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
CREATE TABLE signing_keys (
  kid text COLLATE "C" PRIMARY KEY,
  public_key bytea NOT NULL UNIQUE CHECK (length(public_key) = 32),
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

-- Whether every event of the organization has a position; false while an upgrade numbers those from before it.
ALTER TABLE event_streams ADD COLUMN filled boolean NOT NULL DEFAULT true,
  -- while that lasts: the position that the last of those got, and the last position that is in its entity's chain
  ADD COLUMN filled_to bigint NOT NULL DEFAULT -1000000000000,
  ADD COLUMN chained_to bigint NOT NULL DEFAULT 0,
  -- the midnight up to which checkpoints of all its entities were written
  ADD COLUMN sealed_until timestamptz(3) NOT NULL DEFAULT '-infinity';
-- How far the numbering of events from before an upgrade is.
CREATE TABLE event_fill (one boolean PRIMARY KEY DEFAULT true CHECK (one), last_id text COLLATE "C" NOT NULL DEFAULT '');
INSERT INTO event_fill DEFAULT VALUES;
UPDATE event_streams s SET filled = false WHERE EXISTS (SELECT 1 FROM events e WHERE e.organization_id = s.organization_id AND e.position IS NULL);
-- Events from before are numbered 0 and down.
ALTER TABLE events DROP CONSTRAINT events_position_check;
CREATE INDEX events_of_vault_in_order ON events (vault_id, position) WHERE vault_id IS NOT NULL AND position IS NOT NULL;
CREATE INDEX events_of_entity_in_order ON events (organization_id, position) WHERE vault_id IS NULL AND position IS NOT NULL;
CREATE INDEX event_streams_unfilled ON event_streams (organization_id) WHERE NOT filled;

-- The hash chain of each entity's events, written by whoever records an event, under the lock of the organization's stream.
CREATE TABLE entity_chains (
  entity_id text COLLATE "C" PRIMARY KEY REFERENCES entities (id),
  organization_id text COLLATE "C" NOT NULL,
  count bigint NOT NULL CHECK (count >= 0),
  hash bytea NOT NULL CHECK (length(hash) = 32),
  -- the midnight up to which checkpoints were written
  sealed_until timestamptz(3) NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX entity_chains_unsealed ON entity_chains (organization_id, sealed_until);

-- The chains as they were at midnights (UTC), kept for good.
CREATE TABLE event_checkpoints (
  entity_id text COLLATE "C" NOT NULL,
  at timestamptz(3) NOT NULL,
  count bigint NOT NULL CHECK (count >= 0),
  hash bytea NOT NULL CHECK (length(hash) = 32),
  -- the organization's position at that time
  position bigint NOT NULL,
  PRIMARY KEY (entity_id, at)
);
`)
)
