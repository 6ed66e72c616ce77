/**
 * Accounts of the web portal, and what signs them in. An account belongs to a user of the record feed, has the user's id, and is
 * created by a one-time invitation. portal_users, portal_sessions, portal_accounts and portal_verifications have the columns that
 * better-auth needs; other columns in them have defaults.
 */
export const portal = `
CREATE TABLE portal_users (
  id text COLLATE "C" PRIMARY KEY REFERENCES users (id),
  name text NOT NULL,
  -- What the user signs in with: the address from the record feed in lower case, unless another account has it.
  email text NOT NULL UNIQUE CHECK (email = lower(email)),
  email_verified boolean NOT NULL,
  image text,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now()
);

-- A token alone is useless: the cookie contains it with a signature.
CREATE TABLE portal_sessions (
  id text COLLATE "C" PRIMARY KEY,
  user_id text COLLATE "C" NOT NULL REFERENCES portal_users (id) ON DELETE CASCADE,
  token text NOT NULL UNIQUE,
  ip_address text,
  user_agent text,
  expires_at timestamptz(3) NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  -- When the second factor was entered in this session; until then, the session can do nothing else.
  second_factor_at timestamptz(3),
  last_seen_at timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX portal_sessions_by_user ON portal_sessions (user_id, created_at DESC);
-- A sign-in takes time. Its session is not written if the user was deactivated meanwhile; a later deactivation waits, and ends it.
CREATE FUNCTION session_of_active_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM users WHERE id = NEW.user_id AND status = 'active' FOR SHARE;
  IF FOUND THEN RETURN NEW; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER portal_sessions_of_active_users BEFORE INSERT ON portal_sessions FOR EACH ROW EXECUTE FUNCTION session_of_active_user();

-- How a user signs in: with a password (its hash), or with an identity at the platform's identity provider.
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

-- The authenticator app of an account. secret is encrypted, and backup codes are hashed.
CREATE TABLE portal_second_factors (
  user_id text COLLATE "C" PRIMARY KEY REFERENCES portal_users (id) ON DELETE CASCADE,
  secret bytea NOT NULL,
  backup_codes bytea[] NOT NULL,
  -- Null until its first code was entered.
  verified_at timestamptz(3),
  failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
  locked_until timestamptz(3),
  -- The latest 30-second step whose code was accepted: no code is accepted twice.
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

-- One-time links; only the hash of a token is stored. reset: the account loses its password and second factors first.
CREATE TABLE portal_invitations (
  id text COLLATE "C" PRIMARY KEY,
  user_id text COLLATE "C" NOT NULL REFERENCES users (id),
  -- The address that the link was made for, in lower case.
  email text NOT NULL,
  token_hash bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
  reset boolean NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  expires_at timestamptz(3) NOT NULL,
  used_at timestamptz(3)
);
CREATE INDEX portal_invitations_by_user ON portal_invitations (user_id);
`
