/**
 * Transactions in 32 partitions by their vault. The table is empty in a new database, which gets them at once. Rows of an
 * older one are moved while the service runs (TransactionsMove.ts): until then `transactions` is the table from before,
 * complete and with its constraints, and its triggers write every change to the new table, too. So older versions can read
 * and write beside newer ones before, during and after the move. Decision D-60.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { TRANSACTION_DELETERS } from "../advisoryLocks.ts"

/** Puts the new table in the place of the old one, which is dropped. In a transaction, once every row is in the new one. */
export const exchange = `
LOCK TABLE vaults, networks, assets, transactions IN ACCESS EXCLUSIVE MODE;
SELECT setval('transactions_by_vault_id_seq', last_value, is_called) FROM transactions_id_seq;
DROP TABLE transactions, transactions_move;
DROP FUNCTION transactions_wait(), transactions_copy();
ALTER TABLE transactions_by_vault RENAME TO transactions;
ALTER SEQUENCE transactions_by_vault_id_seq RENAME TO transactions_id_seq;
ALTER TABLE transactions RENAME CONSTRAINT transactions_by_vault_natural_key TO transactions_natural_key;
ALTER INDEX transactions_by_vault_newest RENAME TO transactions_newest;
ALTER INDEX transactions_by_vault_by_asset RENAME TO transactions_by_asset;
ALTER INDEX transactions_by_vault_by_network RENAME TO transactions_by_network;
ALTER INDEX transactions_by_vault_by_status RENAME TO transactions_by_status;
`

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(`
-- The same columns in the same order. The natural key is the primary key: ids are unique by their sequence, and nothing looks up
-- a row by its id alone, which would search every partition.
CREATE TABLE transactions_by_vault (
  id bigint NOT NULL,
  vault_id text COLLATE "C" NOT NULL CONSTRAINT transactions_vault_id_fkey REFERENCES vaults (id),
  network text COLLATE "C" NOT NULL CONSTRAINT transactions_network_fkey REFERENCES networks (name),
  hash text COLLATE "C" NOT NULL,
  index integer NOT NULL CONSTRAINT transactions_index_check CHECK (index >= 0),
  direction text COLLATE "C" NOT NULL CONSTRAINT transactions_direction_check CHECK (direction IN ('inbound', 'outbound')),
  status text COLLATE "C" NOT NULL CONSTRAINT transactions_status_check CHECK (status IN ('pending', 'confirmed', 'failed', 'replaced', 'dropped')),
  asset_id text COLLATE "C" NOT NULL CONSTRAINT transactions_asset_id_fkey REFERENCES assets (id),
  amount numeric NOT NULL CONSTRAINT transactions_amount_check CHECK (amount >= 0),
  from_address text COLLATE "C" NOT NULL,
  to_address text COLLATE "C" NOT NULL,
  timestamp timestamptz(3) NOT NULL,
  json text NOT NULL,
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  CONSTRAINT transactions_by_vault_natural_key PRIMARY KEY (hash, vault_id, network, index, direction)
) PARTITION BY HASH (vault_id);
-- Identity columns of partitioned tables need Postgres 17.
CREATE SEQUENCE transactions_by_vault_id_seq OWNED BY transactions_by_vault.id;
ALTER TABLE transactions_by_vault ALTER COLUMN id SET DEFAULT nextval('transactions_by_vault_id_seq');
DO $$ BEGIN
  FOR n IN 0..31 LOOP
    EXECUTE format('CREATE TABLE transactions_%s PARTITION OF transactions_by_vault FOR VALUES WITH (MODULUS 32, REMAINDER %s)', lpad(n::text, 2, '0'), n);
  END LOOP;
END $$;
CREATE INDEX transactions_by_vault_newest ON transactions_by_vault (vault_id, timestamp DESC, id DESC);
CREATE INDEX transactions_by_vault_by_asset ON transactions_by_vault
  (vault_id, asset_id, (left(status, 1) || left(direction, 1)), timestamp DESC NULLS LAST, id DESC);
CREATE INDEX transactions_by_vault_by_network ON transactions_by_vault
  (vault_id, network, (left(status, 1) || left(direction, 1)), timestamp DESC, id DESC NULLS LAST);
CREATE INDEX transactions_by_vault_by_status ON transactions_by_vault
  (vault_id, (left(status, 1) || left(direction, 1)), timestamp DESC NULLS LAST, id DESC NULLS LAST);

CREATE FUNCTION transactions_wait() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(${TRANSACTION_DELETERS});
  RETURN NULL;
END $$;
CREATE FUNCTION transactions_copy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM transactions_by_vault t WHERE t.vault_id = OLD.vault_id AND t.hash = OLD.hash AND t.network = OLD.network
      AND t.index = OLD.index AND t.direction = OLD.direction;
  ELSE
    INSERT INTO transactions_by_vault SELECT NEW.* ON CONFLICT ON CONSTRAINT transactions_by_vault_natural_key DO UPDATE SET
      id = excluded.id, status = excluded.status, asset_id = excluded.asset_id, amount = excluded.amount,
      from_address = excluded.from_address, to_address = excluded.to_address, timestamp = excluded.timestamp, json = excluded.json,
      updated_at = excluded.updated_at;
  END IF;
  RETURN NULL;
END $$;
-- From here until the commit nobody writes transactions: rows with greater ids than the greatest one are only written with the triggers.
CREATE TRIGGER transactions_wait BEFORE DELETE ON transactions FOR EACH STATEMENT EXECUTE FUNCTION transactions_wait();
CREATE TRIGGER transactions_copy AFTER INSERT OR UPDATE OR DELETE ON transactions FOR EACH ROW EXECUTE FUNCTION transactions_copy();
-- How far the move is: rows up to last_id are in the new table, and those after end_id were written to both.
CREATE TABLE transactions_move (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  last_id bigint NOT NULL DEFAULT 0,
  end_id bigint NOT NULL,
  moved bigint NOT NULL DEFAULT 0,
  -- the transaction and the time of the last part
  last_part xid8 NOT NULL DEFAULT pg_current_xact_id(),
  last_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO transactions_move (end_id) SELECT coalesce(max(id), 0) FROM transactions;
`)
  const found = yield* sql`SELECT 1 FROM transactions LIMIT 1`
  if (found.length === 0) yield* sql.unsafe(exchange)
})
