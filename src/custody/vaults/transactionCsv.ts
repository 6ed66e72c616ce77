/** Transactions as CSV: a header line, then a line per transaction, with fields in the API's order. C-6. */
import { csvCell, csvRow } from "../../values/csv.ts"
import type { Transaction } from "../../values/Vault.ts"

/** The columns: the fields of a {@link Transaction} in the API's order. */
const columns = ["hash", "network", "status", "direction", "asset", "amount", "from", "to", "timestamp"] as const satisfies ReadonlyArray<
  keyof Transaction
>

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
