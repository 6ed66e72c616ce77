/** Statements as CSV, formatted like exports. C-6, C-10. */
import { csvCell, csvRow } from "../../values/csv.ts"
import type { StatementLine } from "../../values/Statement.ts"

const columns = ["asset", "symbol", "opening", "inbound", "outbound", "fees", "other", "closing", "transactionCount"] as const
const amounts = ["inbound", "outbound", "fees", "other"] as const

/** Whether anything moved, or something unexplained happened. */
export const isMoved = (line: StatementLine): boolean => line.transactionCount > 0 || amounts.some((name) => line[name] !== "0")

const cellsOf = (line: StatementLine): ReadonlyArray<string> =>
  columns.map((column) =>
    csvCell(String(line[column]), column === "opening" || column === "closing" || amounts.some((name) => name === column))
  )

/** A header line and the lines. */
export const csvOfLines = (lines: ReadonlyArray<StatementLine>): string => [columns, ...lines.map(cellsOf)].map(csvRow).join("")

/** A header line, and a line for each day and asset. */
export const csvOfDays = (
  days: ReadonlyArray<{ readonly date: string; readonly revision: number; readonly lines: ReadonlyArray<StatementLine> }>
): string =>
  [
    ["date", "revision", ...columns],
    ...days.flatMap(({ date, lines, revision }) => lines.map((line) => [date, String(revision), ...cellsOf(line)]))
  ]
    .map(csvRow)
    .join("")
