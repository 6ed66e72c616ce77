/**
 * Tables of transactions, balances and statements.
 *
 * Each index of a filtered list can serve that list only: its last columns have a NULLS order of their own, which leaves the
 * planner, which is told not to sort, no other choice. Otherwise two filters that each match many rows, but together none, would
 * scan the whole unfiltered list.
 */
export const ledger = `
-- The present state of each transaction. Its id is derived from the natural key: network, hash, index, vault and direction. json is
-- the transaction as the API returns it, written by the ledger when the row changes. Decision D-61. C-9.
CREATE TABLE transactions (
  id uuid PRIMARY KEY,
  vault_id text COLLATE "C" NOT NULL,
  -- That of its vault, for lists across vaults. C-11.
  organization_id text COLLATE "C" NOT NULL,
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
  fee_asset_id text COLLATE "C" REFERENCES assets (id),
  fee_amount numeric CHECK (fee_amount >= 0),
  block_number text COLLATE "C",
  block_hash text COLLATE "C",
  memo text,
  external_id text COLLATE "C",
  -- How many states it has had, the present one included.
  version integer NOT NULL DEFAULT 1 CHECK (version > 0),
  -- When its last change happened, never in the future.
  occurred_at timestamptz(3) NOT NULL DEFAULT now(),
  -- The time that its record gives, if that was in the future: records are compared by it, and an older one changes nothing. C-9.
  given_at timestamptz(3),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  -- The events of its last change.
  event_ids text[] NOT NULL DEFAULT '{}',
  json text NOT NULL,
  CONSTRAINT transactions_natural_key UNIQUE (hash, vault_id, network, index, direction),
  CHECK ((fee_asset_id IS NULL) = (fee_amount IS NULL)),
  FOREIGN KEY (vault_id, organization_id) REFERENCES vaults (id, organization_id)
);
-- The first letters of status and direction: both together are one range of an index; if one is not given, its ranges are merged.
CREATE INDEX transactions_newest ON transactions (vault_id, timestamp DESC, id DESC);
CREATE INDEX transactions_by_asset ON transactions
  (vault_id, asset_id, (left(status, 1) || left(direction, 1)), timestamp DESC NULLS LAST, id DESC);
CREATE INDEX transactions_by_network ON transactions
  (vault_id, network, (left(status, 1) || left(direction, 1)), timestamp DESC, id DESC NULLS LAST);
CREATE INDEX transactions_by_status ON transactions
  (vault_id, (left(status, 1) || left(direction, 1)), timestamp DESC NULLS LAST, id DESC NULLS LAST);
-- Lists across vaults: of the organization, and of one of its assets, statuses or addresses. They are read backward. Hashes of 8
-- bytes instead of texts of up to 300 keep them small, and lists compare the texts as well. C-11.
CREATE INDEX transactions_of_organization ON transactions (organization_id, timestamp, id);
CREATE INDEX transactions_of_asset ON transactions (hashtextextended(organization_id || '/' || asset_id, 0), timestamp, id NULLS FIRST);
CREATE INDEX transactions_of_status ON transactions (hashtextextended(organization_id || '/' || status, 0), timestamp, id NULLS FIRST)
  WHERE status <> 'confirmed';
CREATE INDEX transactions_from ON transactions (hashtextextended(organization_id || '/' || from_address, 0), timestamp, id NULLS FIRST);
CREATE INDEX transactions_to ON transactions (hashtextextended(organization_id || '/' || to_address, 0), timestamp, id NULLS FIRST);
-- The addresses of a vault's transactions, for callers who see few vaults.
CREATE INDEX transactions_from_in_vault ON transactions (hashtextextended(vault_id || '/' || from_address, 0), timestamp, id NULLS FIRST);
CREATE INDEX transactions_to_in_vault ON transactions (hashtextextended(vault_id || '/' || to_address, 0), timestamp, id NULLS FIRST);

-- The states that transactions had before; append-only. state is the state as the API returns it. C-9.
CREATE TABLE transaction_history (
  transaction_id uuid NOT NULL,
  version integer NOT NULL CHECK (version > 0),
  vault_id text COLLATE "C" NOT NULL REFERENCES vaults (id),
  state text NOT NULL,
  PRIMARY KEY (transaction_id, version)
);
CREATE INDEX transaction_history_of_vault ON transaction_history (vault_id);

-- Every asset that a vault holds or moved: it is listed even if its network is no longer available to the organization.
CREATE TABLE vault_assets (
  organization_id text COLLATE "C" NOT NULL,
  asset_id text COLLATE "C" NOT NULL REFERENCES assets (id),
  vault_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, asset_id, vault_id),
  FOREIGN KEY (vault_id, organization_id) REFERENCES vaults (id, organization_id)
);

-- The newest balance of each asset. It has what balances are listed by; a changed symbol of an asset changes its balances.
CREATE TABLE balances (
  vault_id text COLLATE "C" NOT NULL,
  organization_id text COLLATE "C" NOT NULL,
  asset_id text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CHECK (amount >= 0),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  network text COLLATE "C" NOT NULL,
  symbol text COLLATE "C" NOT NULL,
  is_token boolean NOT NULL GENERATED ALWAYS AS (asset_id <> network || '/native') STORED,
  as_of timestamptz(3) NOT NULL,
  -- The time that its record gives, if that was in the future.
  given_at timestamptz(3),
  recorded_at timestamptz(3) NOT NULL,
  PRIMARY KEY (vault_id, asset_id),
  FOREIGN KEY (vault_id, organization_id) REFERENCES vaults (id, organization_id),
  FOREIGN KEY (asset_id, network, symbol) REFERENCES assets (id, network, symbol) ON UPDATE CASCADE
);
CREATE INDEX balances_listed ON balances (vault_id, network, is_token, symbol, asset_id);
-- Across vaults. C-11.
CREATE INDEX balances_of_organization ON balances (organization_id, network, is_token, symbol, asset_id, vault_id);
CREATE INDEX balances_by_asset ON balances (asset_id, vault_id);

-- Every balance record; append-only. Of records of one instant, the one with the greatest id counts. C-6.
CREATE TABLE balance_history (
  id bigint GENERATED ALWAYS AS IDENTITY,
  vault_id text COLLATE "C" NOT NULL,
  asset_id text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CHECK (amount >= 0),
  as_of timestamptz(3) NOT NULL,
  -- The time that its record gives, if that was in the future.
  given_at timestamptz(3),
  recorded_at timestamptz(3) NOT NULL,
  PRIMARY KEY (vault_id, asset_id, as_of, id),
  FOREIGN KEY (vault_id, asset_id) REFERENCES balances (vault_id, asset_id)
);

-- How far a vault's statements are sealed: every day from first_date to the day before next_date.
CREATE TABLE statement_chains (
  vault_id text COLLATE "C" PRIMARY KEY REFERENCES vaults (id),
  first_date date NOT NULL,
  next_date date NOT NULL,
  last_hash text COLLATE "C",
  CHECK (first_date <= next_date)
);
CREATE INDEX statement_chains_next ON statement_chains (next_date, vault_id);

-- One statement per vault and day, and its revisions. assets is the JSON text of its lines, as it is hashed.
CREATE TABLE statements (
  vault_id text COLLATE "C" NOT NULL REFERENCES statement_chains (vault_id),
  date date NOT NULL,
  revision integer NOT NULL CHECK (revision > 0),
  sealed_at timestamptz(3) NOT NULL,
  previous_hash text COLLATE "C" CHECK (previous_hash ~ '^[0-9a-f]{64}$'),
  hash text COLLATE "C" NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'),
  assets text NOT NULL,
  jws text NOT NULL,
  PRIMARY KEY (vault_id, date, revision)
);

-- What changed a sealed day: the id of a transaction, or of an asset whose balance changed, which may change later days too. The
-- day is compared with its statement, and the row deleted.
CREATE TABLE statement_changes (
  vault_id text COLLATE "C" NOT NULL REFERENCES vaults (id),
  date date NOT NULL,
  cause text COLLATE "C" NOT NULL,
  PRIMARY KEY (vault_id, date, cause)
);
`
