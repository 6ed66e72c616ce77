/** API keys. Only the hash of a secret is here; a key is never deleted, it is revoked. Spec: Authentication. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY,
  user_id text COLLATE "C" NOT NULL REFERENCES users (id),
  label text NOT NULL,
  secret_hash bytea NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
  scopes text[] NOT NULL CHECK (scopes <@ ARRAY['vault:read', 'webhook:read', 'webhook:manage'] AND cardinality(scopes) > 0),
  -- null allows every vault that the user's roles reach
  vault_ids text[],
  -- canonical CIDRs; empty means no restriction
  ip_allowlist text[] NOT NULL,
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  revoked_reason text CHECK (revoked_reason IN ('revoked', 'user_deactivated')),
  last_used_at timestamptz(3),
  created_at timestamptz(3) NOT NULL,
  CHECK ((revoked_at IS NULL) = (revoked_reason IS NULL))
);
CREATE INDEX api_keys_by_user ON api_keys (user_id, created_at DESC, id DESC);
`)
)
