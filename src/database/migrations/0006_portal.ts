/**
 * Accounts of the web portal and what signs them in. An account is bound to a user of the feed by its id and comes
 * from a one-time invitation. portal_users, portal_sessions, portal_accounts and portal_verifications have the columns
 * that better-auth works with, under names of ours; columns that it does not know have defaults.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
CREATE TABLE portal_users (
  id text COLLATE "C" PRIMARY KEY REFERENCES users (id),
  name text NOT NULL,
  -- what the user signs in with: the feed's address in lower case, unless another account has it
  email text NOT NULL UNIQUE CHECK (email = lower(email)),
  email_verified boolean NOT NULL,
  image text,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now()
);

-- token is worth nothing by itself: the cookie carries it signed.
CREATE TABLE portal_sessions (
  id text COLLATE "C" PRIMARY KEY,
  user_id text COLLATE "C" NOT NULL REFERENCES portal_users (id) ON DELETE CASCADE,
  token text NOT NULL UNIQUE,
  ip_address text,
  user_agent text,
  expires_at timestamptz(3) NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  -- when the second factor was shown in this session; null: nothing but that is open to it
  second_factor_at timestamptz(3),
  last_seen_at timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX portal_sessions_by_user ON portal_sessions (user_id, created_at DESC);

-- How an account is signed in to: a password (its hash), or an identity at the platform's identity provider.
CREATE TABLE portal_accounts (
  id text COLLATE "C" PRIMARY KEY,
  user_id text COLLATE "C" NOT NULL REFERENCES portal_users (id) ON DELETE CASCADE,
  account_id text NOT NULL,
  provider_id text NOT NULL,
  access_token text,
  refresh_token text,
  id_token text,
  access_token_expires_at timestamptz(3),
  refresh_token_expires_at timestamptz(3),
  scope text,
  password text,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (provider_id, account_id)
);
CREATE INDEX portal_accounts_by_user ON portal_accounts (user_id);

CREATE TABLE portal_verifications (
  id text COLLATE "C" PRIMARY KEY,
  identifier text NOT NULL,
  value text NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX portal_verifications_by_identifier ON portal_verifications (identifier);
CREATE INDEX portal_verifications_by_age ON portal_verifications (expires_at);

-- The authenticator app of an account. secret is ciphertext; of backup codes only hashes are here.
CREATE TABLE portal_second_factors (
  user_id text COLLATE "C" PRIMARY KEY REFERENCES portal_users (id) ON DELETE CASCADE,
  secret bytea NOT NULL,
  backup_codes bytea[] NOT NULL,
  -- null until its first code was shown
  verified_at timestamptz(3),
  failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
  locked_until timestamptz(3),
  -- the latest 30-second step whose code was taken: no code is taken twice
  last_step bigint NOT NULL DEFAULT 0
);

CREATE TABLE portal_passkeys (
  id text COLLATE "C" PRIMARY KEY,
  user_id text COLLATE "C" NOT NULL REFERENCES portal_users (id) ON DELETE CASCADE,
  name text NOT NULL,
  credential_id text NOT NULL UNIQUE,
  public_key bytea NOT NULL,
  counter bigint NOT NULL,
  transports text[] NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  last_used_at timestamptz(3)
);
CREATE INDEX portal_passkeys_by_user ON portal_passkeys (user_id, created_at);

-- One-time ways in; only the hash of a token is here. reset: takes away what the account had.
CREATE TABLE portal_invitations (
  id text COLLATE "C" PRIMARY KEY,
  user_id text COLLATE "C" NOT NULL REFERENCES users (id),
  token_hash bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
  reset boolean NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  expires_at timestamptz(3) NOT NULL,
  used_at timestamptz(3)
);
CREATE INDEX portal_invitations_by_user ON portal_invitations (user_id);
`)
)
