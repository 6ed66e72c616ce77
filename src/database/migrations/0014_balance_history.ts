/**
 * Balances at a time, and statements. Every balance record is kept in `balance_history`; `balances` holds the newest
 * of each asset. A statement is sealed per vault and day; what is recorded late about a past day is noted in
 * `statement_changes`, by which sealing finds the days to compare again. C-6.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
ALTER TABLE balances ADD COLUMN as_of timestamptz(3), ADD COLUMN recorded_at timestamptz(3);
UPDATE balances SET as_of = updated_at, recorded_at = updated_at;
ALTER TABLE balances ALTER COLUMN as_of SET NOT NULL, ALTER COLUMN recorded_at SET NOT NULL;

-- Append-only. Of records of one instant the one with the greatest id counts.
CREATE TABLE balance_history (
  id bigint GENERATED ALWAYS AS IDENTITY,
  vault_id text COLLATE "C" NOT NULL,
  asset_id text COLLATE "C" NOT NULL,
  amount numeric NOT NULL CHECK (amount >= 0),
  as_of timestamptz(3) NOT NULL,
  recorded_at timestamptz(3) NOT NULL,
  PRIMARY KEY (vault_id, asset_id, as_of, id),
  FOREIGN KEY (vault_id, asset_id) REFERENCES balances (vault_id, asset_id)
);
INSERT INTO balance_history (vault_id, asset_id, amount, as_of, recorded_at)
SELECT vault_id, asset_id, amount, as_of, recorded_at FROM balances;

-- When a vault was first recorded here: its statements begin STATEMENT_HISTORY before.
ALTER TABLE vaults ADD COLUMN recorded_at timestamptz(3) NOT NULL DEFAULT now();
UPDATE vaults SET recorded_at = updated_at;

-- How far a vault's statements are sealed: every day from first_date to the day before next_date.
CREATE TABLE statement_chains (
  vault_id text COLLATE "C" PRIMARY KEY REFERENCES vaults (id),
  first_date date NOT NULL,
  next_date date NOT NULL,
  -- sealed days from here on are to be compared with the ledger again; null when none is
  revise_from date,
  last_hash text COLLATE "C",
  CHECK (first_date <= next_date)
);
CREATE INDEX statement_chains_next ON statement_chains (next_date, vault_id);
CREATE INDEX statement_chains_revise ON statement_chains (vault_id) WHERE revise_from IS NOT NULL;

-- assets is the JSON text of the statement's lines, as it is hashed.
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

-- The earliest past day that was changed since sealing last looked at the vault.
CREATE TABLE statement_changes (
  vault_id text COLLATE "C" PRIMARY KEY REFERENCES vaults (id),
  from_date date NOT NULL
);
`)
)
