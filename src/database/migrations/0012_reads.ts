/**
 * Indexes for every filter of every list. Each index can serve one list only: its last columns have a NULLS order of their
 * own, which leaves the planner, which is told not to sort, no other choice, or it is on an expression that only its list
 * uses. Otherwise two filters that each match many rows, but together none, would scan the whole unfiltered list.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
-- A status with a direction, by the first letters of both, is one run of an index; where one is open its runs are merged.
DROP INDEX transactions_by_asset, transactions_by_network, transactions_unsettled;
CREATE INDEX transactions_by_asset ON transactions (vault_id, asset_id, (left(status, 1) || left(direction, 1)), timestamp DESC NULLS LAST, id DESC);
CREATE INDEX transactions_by_network ON transactions (vault_id, network, (left(status, 1) || left(direction, 1)), timestamp DESC, id DESC NULLS LAST);
CREATE INDEX transactions_by_status ON transactions (vault_id, (left(status, 1) || left(direction, 1)), timestamp DESC NULLS LAST, id DESC NULLS LAST);

CREATE INDEX deposit_addresses_by_network ON deposit_addresses ((vault_id || '/' || network), created_at DESC, id DESC);

-- What balances are listed by is with them; a changed symbol of an asset changes its balances.
ALTER TABLE assets ADD UNIQUE (id, network, symbol);
ALTER TABLE balances ADD COLUMN network text COLLATE "C", ADD COLUMN symbol text COLLATE "C";
UPDATE balances b SET network = a.network, symbol = a.symbol FROM assets a WHERE a.id = b.asset_id;
ALTER TABLE balances ALTER COLUMN network SET NOT NULL, ALTER COLUMN symbol SET NOT NULL,
  ADD COLUMN is_token boolean NOT NULL GENERATED ALWAYS AS (asset_id <> network || '/native') STORED,
  DROP CONSTRAINT balances_asset_id_fkey,
  ADD FOREIGN KEY (asset_id, network, symbol) REFERENCES assets (id, network, symbol) ON UPDATE CASCADE;
CREATE INDEX balances_listed ON balances (vault_id, network, is_token, symbol, asset_id);
CREATE INDEX balances_by_asset ON balances (network, asset_id);

-- The vaults of a user, newest first. Not over user_id itself: whether a user has a role on one vault is never looked up here.
ALTER TABLE vaults ADD UNIQUE (id, organization_id, created_at);
ALTER TABLE vault_roles ADD COLUMN vault_created_at timestamptz(3);
UPDATE vault_roles r SET vault_created_at = v.created_at FROM vaults v WHERE v.id = r.vault_id;
ALTER TABLE vault_roles ALTER COLUMN vault_created_at SET NOT NULL,
  DROP CONSTRAINT vault_roles_vault_id_organization_id_fkey,
  ADD FOREIGN KEY (vault_id, organization_id, vault_created_at) REFERENCES vaults (id, organization_id, created_at) ON UPDATE CASCADE;
CREATE INDEX vault_roles_newest ON vault_roles ((user_id || ''), vault_created_at DESC, vault_id DESC);

DROP INDEX assets_by_symbol;
CREATE INDEX assets_by_symbol ON assets (network, symbol, id);

CREATE INDEX webhooks_by_status ON webhooks (organization_id, status, created_at DESC NULLS LAST, id DESC) WHERE deleted_at IS NULL;
-- status: that of the webhook; null once it is deleted.
ALTER TABLE webhook_entities ADD COLUMN created_at timestamptz(3), ADD COLUMN status text COLLATE "C";
UPDATE webhook_entities e SET created_at = w.created_at, status = CASE WHEN w.deleted_at IS NULL THEN w.status END
  FROM webhooks w WHERE w.id = e.webhook_id;
ALTER TABLE webhook_entities ALTER COLUMN created_at SET NOT NULL;
CREATE INDEX webhook_entities_newest ON webhook_entities (entity_id, status, created_at DESC, webhook_id DESC) WHERE status IS NOT NULL;

CREATE FUNCTION webhook_entities_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE webhook_entities SET status = CASE WHEN NEW.deleted_at IS NULL THEN NEW.status END WHERE webhook_id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_entities_follow AFTER UPDATE OF status, deleted_at ON webhooks FOR EACH ROW
  WHEN (OLD.status <> NEW.status OR OLD.deleted_at IS DISTINCT FROM NEW.deleted_at) EXECUTE FUNCTION webhook_entities_follow();
`)
)
