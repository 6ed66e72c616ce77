/**
 * Transactions as CSV (RFC 4180): a header line, then a line per transaction, with fields in the API's order.
 * Spreadsheets read long numbers as floating point and cells that begin with `=` and the like as formulas, so an
 * apostrophe precedes amounts and such cells. C-6.
 */
import type { Transaction } from "./Vault.ts"

/** The columns: the fields of a {@link Transaction} in the API's order. */
const columns = ["hash", "network", "status", "direction", "asset", "amount", "from", "to", "timestamp"] as const satisfies ReadonlyArray<
  keyof Transaction
>

/** One cell: with an apostrophe if it is an amount or begins like a formula, quoted as RFC 4180 requires. */
export const csvCell = (value: string, isAmount = false): string => {
  const guarded = isAmount || /^[=+\-@＝＋－＠'\t\r\n]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}

/** A line of cells, with its line break. */
export const csvRow = (cells: ReadonlyArray<string>): string => `${cells.join(",")}\r\n`

/** The header line. */
export const csvHeader = csvRow(columns)

/** The lines of transactions, from their stored JSON texts, each of which ends with a line break. */
export const csvLines = (texts: string): string => {
  let lines = ""
  for (let from = 0, to = texts.indexOf("\n"); to >= 0; from = to + 1, to = texts.indexOf("\n", from)) {
    // The ledger serialized each text from a transaction.
    const row = JSON.parse(texts.slice(from, to)) as Transaction
    lines += csvRow(columns.map((column) => csvCell(row[column], column === "amount")))
  }
  return lines
}
