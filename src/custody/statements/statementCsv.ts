/** Statements as CSV, formatted like exports. C-6, C-10. */
import { csvCell, csvRow } from "../../values/csv.ts"
import type { StatementLine } from "../../values/Statement.ts"

const amounts = ["inbound", "outbound", "fees", "other"] as const
const columns = ["asset", "symbol", "opening", ...amounts, "closing", "transactionCount"] as const

/** Whether anything moved, or something unexplained happened. */
export const isMoved = (line: StatementLine): boolean => line.transactionCount > 0 || amounts.some((name) => line[name] !== "0")

const row = (first: string, { asset, closing, fees, inbound, opening, other, outbound, symbol, transactionCount }: StatementLine): string =>
  `${first}${csvCell(asset)},${csvCell(symbol)},${csvCell(opening, true)},${csvCell(inbound, true)},${csvCell(outbound, true)},` +
  `${csvCell(fees, true)},${csvCell(other, true)},${csvCell(closing, true)},${transactionCount}\r\n`

/** A header line and the lines. */
export const csvOfLines = (lines: ReadonlyArray<StatementLine>): string => {
  let text = csvRow(columns)
  for (const line of lines) text += row("", line)
  return text
}

/** The header line of days. */
export const daysHeader = csvRow(["date", "revision", ...columns])

/** The lines of a day, after its date and revision. */
export const csvOfDay = (date: string, revision: number, lines: ReadonlyArray<StatementLine>): string => {
  let text = ""
  for (const line of lines) text += row(`${date},${revision},`, line)
  return text
}
