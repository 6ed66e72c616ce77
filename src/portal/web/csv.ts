/** Lists as CSV by RFC 4180. Spreadsheets keep every digit of an amount and run no formula. */
import type { Page } from "../../client/index.ts"
import { getPage } from "./api.ts"
import type { ListSource, Path, Row } from "./routeTypes.ts"

/** Rows per request, and most rows per export. */
const PAGE = 500,
  MOST = 20_000

const cell = (name: string, value: unknown): string => {
  const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value)
  // An apostrophe stops spreadsheets from reading a number or a formula.
  const kept = (name === "amount" && text !== "") || /^[=+\-@＝＋－＠'\t\r\n]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(kept) ? `"${kept.replaceAll('"', '""')}"` : kept
}

/** Every row of a list, up to 20,000; `complete` is false if there are more. */
export const toCsv = async (source: ListSource): Promise<{ readonly text: string; readonly rows: number; readonly complete: boolean }> => {
  const rows: Array<Row<Path<"GET">>> = []
  let cursor: string | null = ""
  while (cursor !== null && rows.length < MOST) {
    const page: Page<Row<Path<"GET">>> = await getPage<Path<"GET">>(
      `${source}limit=${PAGE}${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`
    )
    rows.push(...page.data)
    cursor = page.pagination.nextCursor
  }
  const names = Object.keys(rows[0] ?? {})
  const lineOf = (row: object): string => {
    const values = new Map<string, unknown>(Object.entries(row))
    return names.map((name) => cell(name, values.get(name))).join(",")
  }
  const lines = [names.join(","), ...rows.map(lineOf)]
  return { text: `${lines.join("\r\n")}\r\n`, rows: rows.length, complete: cursor === null }
}
