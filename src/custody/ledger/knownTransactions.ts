/** The current rows of the transactions that records name. */
import type { SqlClient } from "@effect/sql"
import { castRows } from "../../runtime/database/decodeRows.ts"
import * as Id from "../../values/Id.ts"
import { keyOf, Transaction } from "./LedgerState.ts"
import type { RecordOf } from "./Record.ts"

// A batch names up to a thousand of them.
const cast = castRows(Transaction)

/** Reads the named rows by their ids. */
export const knownTransactions = (sql: SqlClient.SqlClient, records: ReadonlyArray<RecordOf<"transaction">>) =>
  cast(sql`
    SELECT k.text AS id, t.vault_id AS "vaultId", t.hash, t.network, t.index, t.direction, t.status, t.asset_id AS asset, t.amount::text AS amount,
      t.from_address AS "from", t.to_address AS "to", t.timestamp,
      CASE WHEN t.fee_asset_id IS NOT NULL THEN json_build_object('asset', t.fee_asset_id, 'amount', t.fee_amount::text) END AS fee,
      t.block_number AS "blockNumber", t.block_hash AS "blockHash", t.memo, t.external_id AS "externalId", t.version,
      t.status <> 'pending' OR t.version > 1 AND EXISTS (SELECT 1 FROM transaction_history h
        WHERE h.transaction_id = t.id AND h.state::json ->> 'status' <> 'pending') AS "leftPending",
      t.occurred_at AS "occurredAt", coalesce(t.given_at, t.occurred_at) AS "givenAt", t.updated_at AS "updatedAt", t.event_ids AS "eventIds"
    FROM unnest(${records.map((one) => Id.uuidIn("tx", keyOf.transaction(one)) ?? "")}::uuid[], ${records.map(keyOf.transaction)}::text[]) AS k (id, text)
    JOIN transactions t ON t.id = k.id`)
