/**
 * Transactions as CSV (RFC 4180): a header line, then a line for each, the fields in the API's order. Spreadsheets read
 * long numbers as floating point and cells that begin with `=` and the like as formulas, so amounts and such cells are
 * preceded by an apostrophe. C-6.
 */
import type { Transaction } from "./Vault.ts"

/** The columns: the fields of a {@link Transaction} in the API's order. */
const columns = ["hash", "network", "status", "direction", "asset", "amount", "from", "to", "timestamp"] as const satisfies ReadonlyArray<
  keyof Transaction
>

/** One cell: guarded against formulas where it begins like one or is an amount, quoted where RFC 4180 asks for it. */
export const csvCell = (value: string, isAmount = false): string => {
  const guarded = isAmount || /^[=+\-@'\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}

/** A line of cells, with its end. */
export const csvRow = (cells: ReadonlyArray<string>): string => `${cells.join(",")}\r\n`

/** The header line. */
export const csvHeader = csvRow(columns)

/** The line of a transaction, from the JSON text that it is stored as. */
export const csvLine = (json: string): string => {
  // The ledger wrote the text from a transaction.
  const row = JSON.parse(json) as Transaction
  return csvRow(columns.map((column) => csvCell(row[column], column === "amount")))
}
