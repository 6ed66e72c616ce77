/**
 * The way from a recorded event to its deliveries. An organization's events are numbered in the order of their commits,
 * because whoever records one holds the organization's row of `event_streams` until the commit. An event that a webhook
 * wants waits in `event_outbox`, which is emptied as it is dispatched, so a row of `events` is written once and never
 * updated. Deliveries carry their organization and a number without gaps within their webhook.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
CREATE TABLE event_streams (
  organization_id text COLLATE "C" PRIMARY KEY REFERENCES organizations (id),
  -- the number of the organization's newest event
  position bigint NOT NULL DEFAULT 0 CHECK (position >= 0),
  -- the time of the newest event's id
  clock timestamptz(3) NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
INSERT INTO event_streams (organization_id) SELECT id FROM organizations;

-- The latest date of an object that changed more than once in a batch, until that date has passed: consumers order by it,
-- so no later change may have the same.
CREATE TABLE event_dates (object text COLLATE "C" PRIMARY KEY, date timestamptz(3) NOT NULL);

-- Counts the changes of networks, assets, organizations, entities, vaults and users: what a ledger remembers of them is
-- good for as long as the version is the same.
CREATE TABLE catalog_version (version bigint NOT NULL);
INSERT INTO catalog_version VALUES (0);

-- null: recorded before events were numbered
ALTER TABLE events ADD COLUMN position bigint CHECK (position > 0);
CREATE INDEX events_in_order ON events (organization_id, position) WHERE position IS NOT NULL;

CREATE TABLE event_outbox (
  organization_id text COLLATE "C" NOT NULL,
  -- the event's position; below zero for events from before events were numbered
  position bigint NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  entity_id text COLLATE "C" NOT NULL,
  vault_id text COLLATE "C",
  kind text COLLATE "C" NOT NULL,
  recorded_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (organization_id, position)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
INSERT INTO event_outbox (organization_id, position, event_id, entity_id, vault_id, kind, recorded_at)
  SELECT organization_id, row_number() OVER (PARTITION BY organization_id ORDER BY id) - 1000000000000, id, entity_id, vault_id, kind, created_at
  FROM events WHERE dispatched_at IS NULL;
DROP INDEX events_undispatched;

-- What became of an event that waited in the outbox. One that no webhook wanted when it was recorded has no row here.
CREATE TABLE event_dispatches (
  event_id text COLLATE "C" NOT NULL,
  dispatched_at timestamptz(3) NOT NULL DEFAULT now(),
  matched_count integer NOT NULL CHECK (matched_count >= 0),
  PRIMARY KEY (event_id)
) PARTITION BY RANGE (event_id);
DO $$
DECLARE part record;
BEGIN
  FOR part IN SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bound
    FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid WHERE i.inhparent = 'events'::regclass
  LOOP
    EXECUTE format('CREATE TABLE %I PARTITION OF event_dispatches %s', replace(part.name, 'events_', 'event_dispatches_'), part.bound);
  END LOOP;
END $$;

CREATE TABLE webhook_sequences (
  webhook_id text COLLATE "C" PRIMARY KEY REFERENCES webhooks (id),
  -- the number of the webhook's newest delivery
  last bigint NOT NULL CHECK (last > 0)
) WITH (fillfactor = 50);

-- Both columns take nulls for as long as a version may run that does not know them.
ALTER TABLE deliveries ADD COLUMN organization_id text COLLATE "C", ADD COLUMN sequence bigint CHECK (sequence > 0);
UPDATE deliveries d SET organization_id = n.organization_id, sequence = n.sequence FROM (
  SELECT o.id, w.organization_id, row_number() OVER (PARTITION BY o.webhook_id ORDER BY o.created_at, o.id) AS sequence
  FROM deliveries o JOIN webhooks w ON w.id = o.webhook_id) n
WHERE n.id = d.id;
INSERT INTO webhook_sequences (webhook_id, last) SELECT webhook_id, max(sequence) FROM deliveries GROUP BY webhook_id;
-- What a version writes that does not know of numbers is numbered all the same.
CREATE FUNCTION number_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT w.organization_id INTO NEW.organization_id FROM webhooks w WHERE w.id = NEW.webhook_id;
  IF FOUND THEN
    INSERT INTO webhook_sequences AS s (webhook_id, last) VALUES (NEW.webhook_id, 1)
      ON CONFLICT (webhook_id) DO UPDATE SET last = s.last + 1 RETURNING last INTO NEW.sequence;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER deliveries_numbered BEFORE INSERT ON deliveries FOR EACH ROW WHEN (NEW.sequence IS NULL) EXECUTE FUNCTION number_delivery();
CREATE INDEX deliveries_by_sequence ON deliveries (webhook_id, sequence);

ALTER TABLE notices ADD COLUMN organization_id text COLLATE "C";
UPDATE notices n SET organization_id = w.organization_id FROM webhooks w WHERE w.id = n.webhook_id;
`)
)
