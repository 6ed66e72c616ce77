/** Lists as CSV by RFC 4180. Spreadsheets keep every digit of an amount and run no formula. */
import { get } from "./api.ts"

/** Rows of one request, and of an export at the most. */
const PAGE = 500,
  MOST = 20_000

interface PageOf {
  readonly data: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly pagination: { readonly nextCursor: string | null }
}

const cell = (name: string, value: unknown): string => {
  const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value)
  // A leading apostrophe keeps a spreadsheet from reading a number or a formula.
  const kept = (name === "amount" && text !== "") || /^[=+\-@'\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(kept) ? `"${kept.replaceAll('"', '""')}"` : kept
}

/** Every row of the list behind a path with its query, up to 20,000; `complete` is false where there are more. */
export const toCsv = async (source: string): Promise<{ readonly text: string; readonly rows: number; readonly complete: boolean }> => {
  const rows: Array<Readonly<Record<string, unknown>>> = []
  let cursor: string | null = ""
  while (cursor !== null && rows.length < MOST) {
    const page: PageOf = await get<PageOf>(`${source}limit=${PAGE}${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`)
    rows.push(...page.data)
    cursor = page.pagination.nextCursor
  }
  const names = Object.keys(rows[0] ?? {})
  const lines = [names.join(","), ...rows.map((row) => names.map((name) => cell(name, row[name])).join(","))]
  return { text: `${lines.join("\r\n")}\r\n`, rows: rows.length, complete: cursor === null }
}
