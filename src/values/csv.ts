/**
 * Cells and lines of CSV (RFC 4180). Spreadsheets read long numbers as floating point and cells that begin with `=` and the
 * like as formulas, so an apostrophe precedes amounts and such cells. A spreadsheet may also split lines at semicolons or
 * tabs, and then reads quotes differently, so an apostrophe precedes formulas after these too. Also runs in browsers. C-6.
 */

/** What begins like a formula where a spreadsheet may split a cell. */
const inside = /([;\t\r\n])(?="*[=+\-@＝＋－＠])/g

/** What needs no more than the apostrophe of an amount: most cells, which one test finds. */
const plain = /^[\w.:/][\w.:/ -]*$/

/** One cell: with an apostrophe if it is an amount, and before what a spreadsheet may read as a formula; quoted as RFC 4180 requires. */
export const csvCell = (value: string, isAmount = false): string => {
  if (plain.test(value)) return isAmount ? `'${value}` : value
  const text = value.replace(inside, "$1'")
  const guarded = (isAmount && value !== "") || /^[=+\-@＝＋－＠'\t\r\n]/.test(value) ? `'${text}` : text
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}

/** A line of cells, with its line break. */
export const csvRow = (cells: ReadonlyArray<string>): string => `${cells.join(",")}\r\n`
