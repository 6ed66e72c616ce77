/**
 * What changed sealed days since: transactions of a day, and balances, which may change the days after it too. The ledger notes
 * them while it holds the organization's event stream. C-10.
 */
import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import type { Because } from "../../values/Statement.ts"

/** Most causes that a statement's event names. */
const NAMED = 20

/** `transactions` counts those of the day. */
const Change = Schema.Struct({ date: Schema.String, cause: Schema.String, isAsset: Schema.Boolean, transactions: Schema.Number })
type Change = typeof Change.Type
const decode = decodeRows(Change)

/** The changes of some days: the first transactions of each, and every asset whose balance changed. */
export interface LateChanges {
  readonly transactions: ReadonlyArray<Change>
  readonly assets: ReadonlyArray<Change>
}

/** The changes of the days from one to the day before another. */
export const lateChanges = (sql: SqlClient.SqlClient, vaultId: string, from: string, before: string) =>
  Effect.map(
    decode(sql`
      SELECT date, cause, is_asset AS "isAsset", transactions FROM (
        SELECT n.date::text AS date, n.cause, k.is_asset, count(*) FILTER (WHERE NOT k.is_asset) OVER (PARTITION BY n.date) AS transactions,
          row_number() OVER (PARTITION BY n.date, k.is_asset ORDER BY n.cause) AS place
        FROM statement_changes n CROSS JOIN LATERAL (SELECT position('/' IN n.cause) > 0 AS is_asset) k
        WHERE n.vault_id = ${vaultId} AND n.date >= ${from}::date AND n.date < ${before}::date
      ) n WHERE is_asset OR place <= ${NAMED} ORDER BY date, cause`),
    (rows): LateChanges => ({ transactions: rows.filter(({ isAsset }) => !isAsset), assets: rows.filter(({ isAsset }) => isAsset) })
  )

/** What changed a day whose lines of these assets differ. */
export const becauseOf = (changes: LateChanges, date: string, changed: ReadonlySet<string>): Because => {
  const transactions = changes.transactions.filter((one) => one.date === date)
  const assets = [...new Set(changes.assets.filter((one) => one.date <= date && changed.has(one.cause)).map(({ cause }) => cause))]
  const transactionIds = transactions.map(({ cause }) => cause)
  const named = assets.slice(0, NAMED - transactionIds.length)
  const all = (transactions[0]?.transactions ?? 0) + assets.length
  return { transactionIds, assets: named, more: all - transactionIds.length - named.length }
}

/** Removes the changes of these days, which were compared, and passes balances on to the next day. */
export const takeChanges = (sql: SqlClient.SqlClient, vaultId: string, from: string, before: string, passed: ReadonlyArray<Change>) => sql`
  WITH taken AS (DELETE FROM statement_changes WHERE vault_id = ${vaultId} AND date >= ${from}::date AND date < ${before}::date)
  INSERT INTO statement_changes (vault_id, date, cause)
  SELECT DISTINCT ${vaultId}, ${before}::date, n.cause FROM unnest(${passed.map(({ cause }) => cause)}::text[]) AS n (cause) ON CONFLICT DO NOTHING`
