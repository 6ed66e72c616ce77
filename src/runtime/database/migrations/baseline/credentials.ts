/** Tables of API keys, stored responses of requests that may be repeated, and the audit log. */
export const credentials = `
-- Only the hash of a secret is stored. A key is never deleted, only revoked. Spec: Authentication.
CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY,
  user_id text COLLATE "C" NOT NULL REFERENCES users (id),
  label text NOT NULL,
  secret_hash bytea NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
  scopes text[] NOT NULL CHECK (scopes <@ ARRAY['vault:read', 'webhook:read', 'webhook:manage'] AND cardinality(scopes) > 0),
  -- Null allows every vault that the user's roles reach.
  vault_ids text[],
  -- Canonical CIDRs; empty means no restriction.
  ip_allowlist text[] NOT NULL,
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  revoked_reason text CHECK (revoked_reason IN ('revoked', 'user_deactivated')),
  last_used_at timestamptz(3),
  created_at timestamptz(3) NOT NULL,
  -- The first and last characters of the secret, by which people recognize a key.
  hint text NOT NULL,
  last_used_address text,
  -- Days before the expiry (30, 7, 1) at which it was announced, or that had passed when it was set. C-13.
  expiry_announced smallint[] NOT NULL DEFAULT '{}',
  CHECK ((revoked_at IS NULL) = (revoked_reason IS NULL))
);
-- Not compressed, so that the size of a page is known without reading the ids.
ALTER TABLE api_keys ALTER COLUMN vault_ids SET STORAGE EXTERNAL;
CREATE INDEX api_keys_by_user ON api_keys (user_id, created_at DESC, id DESC);
CREATE INDEX api_keys_by_expiry ON api_keys (expires_at) WHERE revoked_at IS NULL;

CREATE TABLE idempotency_keys (
  key_id text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  fingerprint bytea NOT NULL,
  status integer NOT NULL,
  -- The response, encrypted: it may contain a secret.
  answer bytea NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (key_id, idempotency_key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- Who did what. Rows are never changed, and deleted after 400 days. They stay when an organization is deleted, so there is no
-- foreign key to it. Decision D-56.
CREATE TABLE audit_log (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL,
  at timestamptz(3) NOT NULL,
  actor_type text COLLATE "C" NOT NULL CHECK (actor_type IN ('key', 'session', 'operator', 'platform', 'service')),
  -- The API key or the portal session; null for an operator, the service, and where nobody is signed in yet.
  actor_id text COLLATE "C",
  user_id text COLLATE "C",
  action text COLLATE "C" NOT NULL,
  target_type text COLLATE "C" NOT NULL,
  target_id text COLLATE "C" NOT NULL,
  client_address text,
  request_id text,
  -- The fields that changed, as { name: { old, new } }, without secrets.
  changes text NOT NULL
);
-- One range of an index for each choice of filters.
CREATE INDEX audit_log_newest ON audit_log (organization_id, at DESC, id DESC);
CREATE INDEX audit_log_of_action ON audit_log
  ((organization_id || '/' || action), at DESC, id DESC);
CREATE INDEX audit_log_of_actor ON audit_log
  ((organization_id || '/' || actor_id), at DESC, id DESC) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_log_of_user ON audit_log
  ((organization_id || '/' || user_id), at DESC, id DESC) WHERE user_id IS NOT NULL;
CREATE INDEX audit_log_of_actor_and_action ON audit_log
  ((organization_id || '/' || actor_id || '/' || action), at DESC, id DESC) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_log_of_user_and_action ON audit_log
  ((organization_id || '/' || user_id || '/' || action), at DESC, id DESC) WHERE user_id IS NOT NULL;
CREATE INDEX audit_log_of_target ON audit_log
  ((organization_id || '/' || target_id), at DESC, id DESC);
CREATE INDEX audit_log_of_target_and_action ON audit_log
  ((organization_id || '/' || target_id || '/' || action), at DESC, id DESC);
CREATE INDEX audit_log_of_target_and_actor ON audit_log
  ((organization_id || '/' || target_id || '/' || actor_id), at DESC, id DESC) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_log_of_target_and_user ON audit_log
  ((organization_id || '/' || target_id || '/' || user_id), at DESC, id DESC) WHERE user_id IS NOT NULL;
CREATE INDEX audit_log_of_target_and_actor_and_action ON audit_log
  ((organization_id || '/' || target_id || '/' || actor_id || '/' || action), at DESC, id DESC) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_log_of_target_and_user_and_action ON audit_log
  ((organization_id || '/' || target_id || '/' || user_id || '/' || action), at DESC, id DESC) WHERE user_id IS NOT NULL;

CREATE FUNCTION audit_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF OLD.at < clock_timestamp() - interval '400 days' THEN RETURN OLD; END IF;
  END IF;
  RAISE EXCEPTION 'rows of audit_log are not changed, and not deleted before they are 400 days old';
END $$;
CREATE TRIGGER audit_log_rows BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION audit_log_is_append_only();
CREATE TRIGGER audit_log_truncate BEFORE TRUNCATE ON audit_log EXECUTE FUNCTION audit_log_is_append_only();
`
