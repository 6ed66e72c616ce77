/** The current rows of the transactions that records name. Decision D-60. */
import type { SqlClient } from "@effect/sql"
import { castRows } from "../../runtime/database/decodeRows.ts"
import { Transaction } from "./LedgerState.ts"
import type { Record } from "./Record.ts"

// A batch names up to a thousand of them.
const cast = castRows(Transaction)

/**
 * Reads the named rows of a table: all transactions, or a partition. One partition is read per record, by the natural key: the
 * ORDER BY prevents Postgres, on a table that was never analyzed, from using the index of vaults instead, by which it would
 * read the vault's whole history for each record.
 */
export const knownTransactions = (
  sql: SqlClient.SqlClient,
  table: string,
  records: ReadonlyArray<Extract<Record, { readonly type: "transaction" }>>
) =>
  cast(sql`
    SELECT t.vault_id AS "vaultId", t.hash, t.network, t.index, t.direction, t.status, t.asset_id AS asset, t.amount::text AS amount,
      t.from_address AS "from", t.to_address AS "to", t.timestamp
    FROM unnest(${records.map((_) => _.hash)}::text[], ${records.map((_) => _.vaultId)}::text[], ${records.map((_) => _.network)}::text[],
      ${records.map((_) => _.index)}::int[], ${records.map((_) => _.direction)}::text[]) AS k (hash, vault_id, network, index, direction)
    CROSS JOIN LATERAL (SELECT * FROM ${sql.literal(table)} t WHERE t.hash = k.hash AND t.vault_id = k.vault_id
      AND t.network IS NOT DISTINCT FROM k.network AND t.index IS NOT DISTINCT FROM k.index AND t.direction IS NOT DISTINCT FROM k.direction
      ORDER BY t.network, t.index, t.direction) t`)
