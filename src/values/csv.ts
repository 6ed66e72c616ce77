/**
 * Cells and lines of CSV (RFC 4180). Spreadsheets read long numbers as floating point and cells that begin with `=` and the
 * like as formulas, so an apostrophe precedes amounts and such cells. Also runs in browsers. C-6.
 */

/** One cell: with an apostrophe if it is an amount or begins like a formula, quoted as RFC 4180 requires. */
export const csvCell = (value: string, isAmount = false): string => {
  const guarded = (isAmount && value !== "") || /^[=+\-@＝＋－＠'\t\r\n]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}

/** A line of cells, with its line break. */
export const csvRow = (cells: ReadonlyArray<string>): string => `${cells.join(",")}\r\n`
