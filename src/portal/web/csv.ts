/** Lists as CSV. */

import type { Page } from "../../client/index.ts"
import { csvCell, csvRow } from "../../values/csv.ts"
import { getPage } from "./api.ts"
import type { ListSource, Path, Row } from "./routeTypes.ts"

/** Rows per request, and most rows per export. */
const PAGE = 500,
  MOST = 20_000

const cell = (name: string, value: unknown): string => {
  const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value)
  return csvCell(text, name === "amount")
}

/** Every row of a list, up to 20,000, as the lines that `linesOf` makes of a page; `complete` is false if there are more. */
export const toCsv = async <P extends Path<"GET">>(
  source: ListSource<P>,
  linesOf: (rows: ReadonlyArray<Row<P>>) => Promise<ReadonlyArray<unknown>>
): Promise<{ readonly text: string; readonly rows: number; readonly complete: boolean }> => {
  const rows: Array<unknown> = []
  let cursor: string | null = ""
  while (cursor !== null && rows.length < MOST) {
    const page: Page<Row<P>> = await getPage<P>(`${source}limit=${PAGE}${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`)
    rows.push(...(await linesOf(page.data)))
    cursor = page.pagination.nextCursor
  }
  const names = Object.keys(rows[0] ?? {})
  const lineOf = (row: unknown): string => {
    const values = new Map<string, unknown>(Object.entries(row ?? {}))
    return csvRow(names.map((name) => cell(name, values.get(name))))
  }
  return { text: [csvRow(names), ...rows.map(lineOf)].join(""), rows: rows.length, complete: cursor === null }
}
