/**
 * Deliveries know the vault of their event, so that a webhook's list shows each caller the deliveries of the vaults that
 * the caller sees, and finds them by an index. Rows from before have none: there the event itself is read.
 *
 * The audit log: who did what. Rows are added and never changed; they can be deleted once they are 400 days old.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
ALTER TABLE deliveries ADD COLUMN vault_id text COLLATE "C";
CREATE INDEX deliveries_of_vault ON deliveries ((webhook_id || '/' || coalesce(vault_id, '')), created_at DESC, id DESC);

CREATE TABLE audit_log (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
  at timestamptz(3) NOT NULL,
  actor_type text COLLATE "C" NOT NULL CHECK (actor_type IN ('key', 'session', 'operator', 'service')),
  -- the API key or the portal session; null for an operator, the service, and where nobody is signed in yet
  actor_id text COLLATE "C",
  user_id text COLLATE "C",
  action text COLLATE "C" NOT NULL,
  target_type text COLLATE "C" NOT NULL,
  target_id text COLLATE "C" NOT NULL,
  client_address text,
  request_id text,
  -- the fields that changed, as { name: { old, new } }; no secrets
  changes text NOT NULL
);
-- One run of an index for each choice of filters.
CREATE INDEX audit_log_newest ON audit_log (organization_id, at DESC, id DESC);
CREATE INDEX audit_log_of_action ON audit_log ((organization_id || '/' || action), at DESC, id DESC);
CREATE INDEX audit_log_of_actor ON audit_log ((organization_id || '/' || actor_id), at DESC, id DESC) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_log_of_user ON audit_log ((organization_id || '/' || user_id), at DESC, id DESC) WHERE user_id IS NOT NULL;
CREATE INDEX audit_log_of_actor_and_action ON audit_log ((organization_id || '/' || actor_id || '/' || action), at DESC, id DESC)
  WHERE actor_id IS NOT NULL;
CREATE INDEX audit_log_of_user_and_action ON audit_log ((organization_id || '/' || user_id || '/' || action), at DESC, id DESC)
  WHERE user_id IS NOT NULL;

CREATE FUNCTION audit_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF OLD.at < clock_timestamp() - interval '400 days' THEN RETURN OLD; END IF;
  END IF;
  RAISE EXCEPTION 'rows of audit_log are not changed, and not deleted before they are 400 days old';
END $$;
CREATE TRIGGER audit_log_rows BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION audit_log_is_append_only();
CREATE TRIGGER audit_log_truncate BEFORE TRUNCATE ON audit_log EXECUTE FUNCTION audit_log_is_append_only();
`)
)
