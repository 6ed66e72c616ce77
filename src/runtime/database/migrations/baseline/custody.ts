/**
 * Tables of the catalog, organizations, vaults and users. The ledger is their only writer. Ids compare as bytes ("C"), so their
 * order is the same on every installation.
 */
export const custody = `
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
  -- Most fraction digits of an amount that was ever recorded.
  digits smallint NOT NULL DEFAULT 0,
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  -- Its short name in cursors.
  number bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  CHECK (starts_with(id, network || '/')),
  CHECK (digits <= decimals),
  -- Balances refer to all three.
  UNIQUE (id, network, symbol)
);
CREATE INDEX assets_by_network ON assets (network, id);
CREATE INDEX assets_by_symbol ON assets (network, symbol, id);

CREATE TABLE organizations (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  networks text[] NOT NULL,
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  -- Since when it is being deleted: its keys, records and deliveries are rejected from then on. Decision D-56.
  deleting_at timestamptz(3),
  -- When it was recorded first: another organization may have had the id before.
  recorded_at timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX organizations_deleting ON organizations (id) WHERE deleting_at IS NOT NULL;

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
  -- When it was first recorded here: its statements begin STATEMENT_HISTORY before.
  recorded_at timestamptz(3) NOT NULL DEFAULT now(),
  -- The time that the record of its last change gives: an older record of it changes nothing.
  given_at timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (id, organization_id),
  UNIQUE (id, organization_id, created_at, entity_id),
  FOREIGN KEY (entity_id, organization_id) REFERENCES entities (id, organization_id)
);
CREATE INDEX vaults_newest ON vaults (organization_id, created_at DESC, id DESC);
CREATE INDEX vaults_by_entity ON vaults (entity_id, id);

-- Every entity that a vault belongs, or belonged until a time, to. An event keeps the entity that its vault had when it was
-- recorded, so a vault's events are found by each of these.
CREATE TABLE vault_entities (
  vault_id text COLLATE "C" NOT NULL,
  entity_id text COLLATE "C" NOT NULL,
  until timestamptz(3),
  PRIMARY KEY (vault_id, entity_id)
);
CREATE INDEX vaults_of_entity ON vault_entities (entity_id, vault_id);
CREATE FUNCTION keep_vault_entity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF NEW.entity_id = OLD.entity_id THEN RETURN NULL; END IF;
    UPDATE vault_entities SET until = clock_timestamp() WHERE vault_id = OLD.id AND entity_id = OLD.entity_id;
  END IF;
  INSERT INTO vault_entities VALUES (NEW.id, NEW.entity_id) ON CONFLICT (vault_id, entity_id) DO UPDATE SET until = NULL;
  RETURN NULL;
END $$;
CREATE TRIGGER vault_entity_kept AFTER INSERT OR UPDATE OF entity_id ON vaults FOR EACH ROW EXECUTE FUNCTION keep_vault_entity();

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
CREATE INDEX users_by_email ON users (lower(email));

-- Both foreign keys name the organization, so a role is always within one.
CREATE TABLE vault_roles (
  user_id text COLLATE "C" NOT NULL,
  vault_id text COLLATE "C" NOT NULL,
  organization_id text COLLATE "C" NOT NULL,
  role text NOT NULL CHECK (role = 'developer'),
  -- Of the vault, so that neither a user's vaults nor an entity's have to be searched for those of both.
  vault_created_at timestamptz(3) NOT NULL,
  entity_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (user_id, vault_id, role),
  FOREIGN KEY (user_id, organization_id) REFERENCES users (id, organization_id),
  FOREIGN KEY (vault_id, organization_id, vault_created_at, entity_id) REFERENCES vaults (id, organization_id, created_at, entity_id) ON UPDATE CASCADE
);
CREATE INDEX vault_roles_by_vault ON vault_roles (vault_id);
CREATE INDEX vault_roles_by_entity ON vault_roles ((user_id || '/' || entity_id));
-- The vaults of a user, newest first. An expression instead of user_id, so that looking up a single role never uses this index.
CREATE INDEX vault_roles_newest ON vault_roles ((user_id || ''), vault_created_at DESC, vault_id DESC);

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
CREATE INDEX deposit_addresses_by_address ON deposit_addresses (address);
CREATE INDEX deposit_addresses_newest ON deposit_addresses (vault_id, created_at DESC, id DESC);
CREATE INDEX deposit_addresses_by_network ON deposit_addresses ((vault_id || '/' || network), created_at DESC, id DESC);

-- Changes with networks, assets, organizations, entities and vaults. What a ledger remembers of them is valid while the version
-- stays the same. A count would come to the same number again after a restore, with other contents.
CREATE TABLE catalog_version (version bigint NOT NULL DEFAULT floor(random() * 2^53));
INSERT INTO catalog_version DEFAULT VALUES;
`
