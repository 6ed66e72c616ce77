/**
 * Indexes for every filter of the event log and of deliveries, alone and with another one, also for callers who can see
 * few of the rows. An event keeps the entity that its vault was of when it was recorded. Every such pair is stored, so that
 * a vault's events are found by each of its entities. Each index is over one text, as in 0007.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
-- Every entity that a vault is or was of; written by a trigger, so that processes of an older version write it, too.
CREATE TABLE vault_entities (
  vault_id text COLLATE "C" NOT NULL,
  entity_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (vault_id, entity_id)
);
INSERT INTO vault_entities SELECT id, entity_id FROM vaults
  UNION SELECT DISTINCT vault_id, entity_id FROM events WHERE vault_id IS NOT NULL;
CREATE FUNCTION keep_vault_entity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO vault_entities VALUES (NEW.id, NEW.entity_id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER vault_entity_kept AFTER INSERT OR UPDATE OF entity_id ON vaults FOR EACH ROW EXECUTE FUNCTION keep_vault_entity();

DROP INDEX events_of_vault;
CREATE INDEX events_of_vault ON events ((vault_id || '/' || entity_id), occurred_at DESC, id DESC) WHERE vault_id IS NOT NULL;
DROP INDEX events_of_vault_and_kind;
CREATE INDEX events_of_vault_and_kind ON events ((vault_id || '/' || entity_id || '/' || kind), occurred_at DESC, id DESC) WHERE vault_id IS NOT NULL;

-- Events without a vault, which are few. Their texts begin with a slash, so that no index of all events can be used.
DROP INDEX events_of_entity;
CREATE INDEX events_without_vault ON events (('/' || organization_id), occurred_at DESC, id DESC) WHERE vault_id IS NULL;
CREATE INDEX events_without_vault_of_kind ON events (('/' || organization_id || '/' || kind), occurred_at DESC, id DESC) WHERE vault_id IS NULL;
CREATE INDEX events_without_vault_of_entity ON events (('/' || entity_id), occurred_at DESC, id DESC) WHERE vault_id IS NULL;
CREATE INDEX events_without_vault_of_entity_and_kind ON events (('/' || entity_id || '/' || kind), occurred_at DESC, id DESC) WHERE vault_id IS NULL;

DROP INDEX deliveries_by_sequence;
CREATE INDEX deliveries_by_sequence ON deliveries ((webhook_id || '/' || sequence::text));
CREATE INDEX deliveries_of_vault_by_status ON deliveries
  ((webhook_id || '/' || coalesce(vault_id, '') || '/' || status || '/' || kind), created_at DESC, id DESC);
`)
)
