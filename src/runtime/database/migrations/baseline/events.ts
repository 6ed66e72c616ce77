/**
 * Tables of the event log: the events themselves, what waits to be dispatched, and the signed hash chains over them. Events are in
 * daily partitions over the id (Partitions.ts).
 *
 * Each index of a filtered list is on one concatenated text, so that no other index can be used: for a cached plan, Postgres knows
 * only the average frequency of a kind, and would scan the unfiltered list to find a rare one.
 */
export const events = `
-- Who records an event locks its organization's row until the commit, so events are numbered in the order of their commits.
CREATE TABLE event_streams (
  organization_id text COLLATE "C" PRIMARY KEY REFERENCES organizations (id),
  -- The number of the organization's newest event.
  position bigint NOT NULL DEFAULT 0 CHECK (position >= 0),
  -- The id of that event, kept when the log no longer has it: a cursor of another one is not of this stream.
  event_id text COLLATE "C",
  -- The time of the newest event's id.
  clock timestamptz(3) NOT NULL DEFAULT '-infinity',
  -- The midnight up to which checkpoints of all its entities were written.
  sealed_until timestamptz(3) NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);

-- The latest date of an object that changed more than once in a batch, until that date has passed: consumers order by it, so no
-- later change may have the same.
CREATE TABLE event_dates (
  organization_id text COLLATE "C" REFERENCES organizations (id),
  object text COLLATE "C",
  date timestamptz(3) NOT NULL,
  PRIMARY KEY (organization_id, object)
);

-- A row is written once and never updated. payload is text: exactly this text is signed and sent, and jsonb would change it.
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
  -- Set if no webhook wanted the event when it was recorded; for other events, see event_dispatches.
  dispatched_at timestamptz(3),
  -- Entities that a reader must have access to, all of them, if that is more than entity_id.
  audience text[],
  position bigint NOT NULL CHECK (position > 0),
  PRIMARY KEY (id)
) PARTITION BY RANGE (id);
CREATE INDEX events_newest ON events (organization_id, occurred_at DESC, id DESC);
CREATE INDEX events_of_kind ON events ((organization_id || '/' || kind), occurred_at DESC, id DESC);
-- The event feed, in the order of recording.
CREATE INDEX events_in_order ON events (organization_id, position);
CREATE INDEX events_of_vault_in_order ON events (vault_id, position) WHERE vault_id IS NOT NULL;
CREATE INDEX events_of_entity_in_order ON events (organization_id, position) WHERE vault_id IS NULL;
CREATE INDEX events_of_entity_newest ON events (entity_id, occurred_at DESC, id DESC);
CREATE INDEX events_of_vault ON events ((vault_id || '/' || entity_id), occurred_at DESC, id DESC) WHERE vault_id IS NOT NULL;
CREATE INDEX events_of_vault_and_kind ON events ((vault_id || '/' || entity_id || '/' || kind), occurred_at DESC, id DESC) WHERE vault_id IS NOT NULL;
-- Events without a vault, which are few. Their texts begin with a slash, so that no index of all events can be used.
CREATE INDEX events_without_vault ON events (('/' || organization_id), occurred_at DESC, id DESC) WHERE vault_id IS NULL;
CREATE INDEX events_without_vault_of_kind ON events (('/' || organization_id || '/' || kind), occurred_at DESC, id DESC) WHERE vault_id IS NULL;
CREATE INDEX events_without_vault_of_entity ON events (('/' || entity_id), occurred_at DESC, id DESC) WHERE vault_id IS NULL;
CREATE INDEX events_without_vault_of_entity_and_kind ON events (('/' || entity_id || '/' || kind), occurred_at DESC, id DESC) WHERE vault_id IS NULL;

-- Events that a webhook wants wait here until they are dispatched. xid is the transaction that wrote the row: a poll starts where
-- the previous one ended (dispatch/WaitingOrganizations.ts), so it skips the dead index entries of dispatched events, which remain
-- for as long as a backup holds a snapshot.
CREATE TABLE event_outbox (
  organization_id text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  entity_id text COLLATE "C" NOT NULL,
  vault_id text COLLATE "C",
  kind text COLLATE "C" NOT NULL,
  recorded_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (organization_id, position)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX event_outbox_in_order ON event_outbox (xid);

-- When an event that waited in the outbox was dispatched, and to how many webhooks.
CREATE TABLE event_dispatches (
  event_id text COLLATE "C" NOT NULL,
  dispatched_at timestamptz(3) NOT NULL DEFAULT now(),
  matched_count integer NOT NULL CHECK (matched_count >= 0),
  PRIMARY KEY (event_id)
) PARTITION BY RANGE (event_id);

-- Public keys of checkpoints, statements and deliveries. They are never deleted, so signatures of replaced keys still verify.
CREATE TABLE signing_keys (
  kid text COLLATE "C" PRIMARY KEY,
  public_key bytea NOT NULL UNIQUE CHECK (length(public_key) = 32),
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

-- The hash chain of each entity's events, extended with each event, under the lock of the organization's stream.
CREATE TABLE entity_chains (
  entity_id text COLLATE "C" PRIMARY KEY REFERENCES entities (id),
  organization_id text COLLATE "C" NOT NULL,
  count bigint NOT NULL CHECK (count >= 0),
  hash bytea NOT NULL CHECK (length(hash) = 32),
  -- The midnight up to which checkpoints were written.
  sealed_until timestamptz(3) NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX entity_chains_unsealed ON entity_chains (organization_id, sealed_until);

-- The chains as they were at midnights (UTC). They are never deleted.
CREATE TABLE event_checkpoints (
  entity_id text COLLATE "C" NOT NULL,
  at timestamptz(3) NOT NULL,
  count bigint NOT NULL CHECK (count >= 0),
  hash bytea NOT NULL CHECK (length(hash) = 32),
  -- The organization's newest event at that time.
  position bigint NOT NULL,
  event_id text COLLATE "C",
  PRIMARY KEY (entity_id, at)
);
`
