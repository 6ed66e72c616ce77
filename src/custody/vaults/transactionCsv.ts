/** Transactions as CSV: a header line, then a line per transaction. C-6, C-11. */
import { csvCell, csvRow } from "../../values/csv.ts"
import type { Transaction } from "../../values/Vault.ts"

/** What the rows of a part have besides their transactions: the vault of each, and the names of vaults and assets by id. C-11. */
export interface RowNames {
  readonly vaultIds: ReadonlyArray<string>
  readonly labels: Readonly<Record<string, string>>
  readonly symbols: Readonly<Record<string, string>>
}

interface Row {
  readonly transaction: Transaction
  readonly vaultId: string
  readonly vaultLabel: string | undefined
  readonly symbol: string | undefined
}

/** Whether an apostrophe precedes amounts, so that spreadsheets keep every digit, or not, for programs. */
export type Amounts = "spreadsheet" | "plain"

/** The columns, in the order in which they were introduced: programs may read them by position. */
const columns: ReadonlyArray<readonly [name: string, of: (row: Row) => string | null | undefined, isAmount?: true]> = [
  ["hash", ({ transaction }) => transaction.hash],
  ["network", ({ transaction }) => transaction.network],
  ["status", ({ transaction }) => transaction.status],
  ["direction", ({ transaction }) => transaction.direction],
  ["asset", ({ transaction }) => transaction.asset],
  ["amount", ({ transaction }) => transaction.amount, true],
  ["from", ({ transaction }) => transaction.from],
  ["to", ({ transaction }) => transaction.to],
  ["timestamp", ({ transaction }) => transaction.timestamp],
  ["symbol", ({ symbol }) => symbol],
  ["id", ({ transaction }) => transaction.id],
  ["updatedAt", ({ transaction }) => transaction.updatedAt],
  ["vaultId", ({ vaultId }) => vaultId],
  ["vaultLabel", ({ vaultLabel }) => vaultLabel],
  ["fee", ({ transaction: { fee } }) => fee?.amount, true],
  ["feeAsset", ({ transaction: { fee } }) => fee?.asset],
  ["blockNumber", ({ transaction }) => transaction.blockNumber],
  ["blockHash", ({ transaction }) => transaction.blockHash],
  ["memo", ({ transaction }) => transaction.memo],
  ["externalId", ({ transaction }) => transaction.externalId]
]

/** The header line. */
export const csvHeader = csvRow(columns.map(([name]) => name))

/** The lines of transactions, from their stored JSON texts, each of which ends with a line break. */
export const csvLines = (texts: string, { labels, symbols, vaultIds }: RowNames, amounts: Amounts): string => {
  const apostrophe = amounts === "spreadsheet"
  let lines = ""
  let number = 0
  for (let from = 0, to = texts.indexOf("\n"); to >= 0; from = to + 1, to = texts.indexOf("\n", from)) {
    // The ledger serialized each text from a transaction.
    const transaction = JSON.parse(texts.slice(from, to)) as Transaction
    const vaultId = vaultIds[number++] ?? ""
    const row = { transaction, vaultId, vaultLabel: labels[vaultId], symbol: symbols[transaction.asset] }
    lines += csvRow(columns.map(([, of, isAmount]) => csvCell(of(row) ?? "", isAmount === true && apostrophe)))
  }
  return lines
}
