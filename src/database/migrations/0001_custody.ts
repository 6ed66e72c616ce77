/**
 * Custody data: catalog, organizations, vaults and what happens in them. The ledger is the only writer.
 * Ids compare as bytes ("C"), so that their order is the same on every installation.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
CREATE TABLE networks (
  name text COLLATE "C" PRIMARY KEY CHECK (name ~ '^[a-z0-9]+(-[a-z0-9]+)*$'),
  kind text NOT NULL CHECK (kind IN ('mainnet', 'testnet')),
  updated_at timestamptz(3) NOT NULL DEFAULT now()
);

CREATE TABLE assets (
  id text COLLATE "C" PRIMARY KEY,
  network text COLLATE "C" NOT NULL REFERENCES networks (name),
  symbol text COLLATE "C" NOT NULL,
  name text NOT NULL,
  decimals smallint NOT NULL CHECK (decimals BETWEEN 0 AND 78),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  CHECK (starts_with(id, network || '/'))
);
CREATE INDEX assets_by_network ON assets (network, id);
CREATE INDEX assets_by_symbol ON assets (symbol, id);

CREATE TABLE organizations (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  networks text[] NOT NULL,
  updated_at timestamptz(3) NOT NULL DEFAULT now()
);

CREATE TABLE entities (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
  name text NOT NULL,
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (id, organization_id)
);
CREATE INDEX entities_by_organization ON entities (organization_id, id);

CREATE TABLE vaults (
  id text COLLATE "C" PRIMARY KEY,
  entity_id text COLLATE "C" NOT NULL,
  organization_id text COLLATE "C" NOT NULL,
  label text NOT NULL,
  networks text[] NOT NULL,
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (id, organization_id),
  FOREIGN KEY (entity_id, organization_id) REFERENCES entities (id, organization_id)
);
CREATE INDEX vaults_newest ON vaults (organization_id, created_at DESC, id DESC);
CREATE INDEX vaults_by_entity ON vaults (entity_id, id);

CREATE TABLE users (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
  email text NOT NULL,
  name text NOT NULL,
  status text NOT NULL CHECK (status IN ('active', 'deactivated')),
  organization_role text NOT NULL CHECK (organization_role IN ('owner', 'member')),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (id, organization_id)
);
CREATE INDEX users_by_organization ON users (organization_id, id);

-- Both foreign keys name the organization: a role never crosses it.
CREATE TABLE vault_roles (
  user_id text COLLATE "C" NOT NULL,
  vault_id text COLLATE "C" NOT NULL,
  organization_id text COLLATE "C" NOT NULL,
  role text NOT NULL CHECK (role = 'developer'),
  PRIMARY KEY (user_id, vault_id, role),
  FOREIGN KEY (user_id, organization_id) REFERENCES users (id, organization_id),
  FOREIGN KEY (vault_id, organization_id) REFERENCES vaults (id, organization_id)
);
CREATE INDEX vault_roles_by_vault ON vault_roles (vault_id);

CREATE TABLE deposit_addresses (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  vault_id text COLLATE "C" NOT NULL REFERENCES vaults (id),
  network text COLLATE "C" NOT NULL REFERENCES networks (name),
  address text COLLATE "C" NOT NULL,
  asset_type text COLLATE "C" NOT NULL,
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (vault_id, network, address, asset_type)
);
CREATE INDEX deposit_addresses_newest ON deposit_addresses (vault_id, created_at DESC, id DESC);

-- json is the transaction as the API answers it, encoded once by the ledger when the row changes.
CREATE TABLE transactions (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  vault_id text COLLATE "C" NOT NULL REFERENCES vaults (id),
  network text COLLATE "C" NOT NULL REFERENCES networks (name),
  hash text COLLATE "C" NOT NULL,
  index integer NOT NULL CHECK (index >= 0),
  direction text COLLATE "C" NOT NULL CHECK (direction IN ('inbound', 'outbound')),
  status text COLLATE "C" NOT NULL CHECK (status IN ('pending', 'confirmed', 'failed', 'replaced', 'dropped')),
  asset_id text COLLATE "C" NOT NULL REFERENCES assets (id),
  amount numeric NOT NULL CHECK (amount >= 0),
  from_address text COLLATE "C" NOT NULL,
  to_address text COLLATE "C" NOT NULL,
  timestamp timestamptz(3) NOT NULL,
  json text NOT NULL,
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  CONSTRAINT transactions_natural_key UNIQUE (hash, vault_id, network, index, direction)
);
CREATE INDEX transactions_newest ON transactions (vault_id, timestamp DESC, id DESC);
CREATE INDEX transactions_by_asset ON transactions (vault_id, asset_id, timestamp DESC, id DESC);
CREATE INDEX transactions_by_network ON transactions (vault_id, network, timestamp DESC, id DESC);
CREATE INDEX transactions_unsettled ON transactions (vault_id, status, timestamp DESC, id DESC) WHERE status <> 'confirmed';

CREATE TABLE balances (
  vault_id text COLLATE "C" NOT NULL REFERENCES vaults (id),
  asset_id text COLLATE "C" NOT NULL REFERENCES assets (id),
  amount numeric NOT NULL CHECK (amount >= 0),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (vault_id, asset_id)
);
`)
)
