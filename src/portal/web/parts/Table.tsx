/**
 * Tables: columns on wide pages, a card per row on narrow ones, of which the first few are shown until asked for more.
 * Sorting by a column is possible only if every row is loaded; otherwise the API's order applies.
 */
import { ArrowDown, ArrowUp } from "lucide-react"
import { type ReactNode, useState } from "react"
import type { List } from "../list.ts"
import { Button } from "./Button.tsx"
import { More, News, Waiting } from "./Rows.tsx"

export interface Column<A> {
  readonly label: string
  readonly cell: (row: A) => ReactNode
  readonly align?: "right"
  /** The first column is the row's header. */
  readonly heads?: boolean
  /** Hidden if there is less room; cards have every column. */
  readonly from?: "medium" | "wide"
  /** How to sort by it. */
  readonly compare?: (a: A, b: A) => number
  /** Label in a card; default: the column's label, none if "". */
  readonly card?: string
}

/** Rows that are shown first where each is a card. */
const CARDS = 6

export interface TableProps<A> {
  readonly list: List<A>
  readonly label: string
  readonly columns: ReadonlyArray<Column<A>>
  readonly empty: ReactNode
  /** Rows to show; default: all. */
  readonly only?: (row: A) => boolean
  readonly foot?: (rows: ReadonlyArray<A>) => ReactNode
}

export const Table = <A,>({ columns, empty, foot, label, list, only }: TableProps<A>) => {
  const [sort, setSort] = useState<{ readonly by: string; readonly down: boolean } | null>(null)
  // Kept for the way back to the list.
  const memory = `all ${location.pathname} ${label}`
  const [all, setAll] = useState(() => sessionStorage.getItem(memory) !== null)
  const showAll = () => {
    sessionStorage.setItem(memory, "yes")
    setAll(true)
  }
  if (list.rows === undefined || list.rows.length === 0) return <Waiting list={list} empty={empty} />
  const sortable = !list.hasNextPage
  const by = columns.find((column) => column.label === sort?.by)?.compare
  const kept = only === undefined ? list.rows : list.rows.filter(only)
  const rows = by === undefined || !sortable ? kept : kept.toSorted((a, b) => (sort?.down === true ? by(b, a) : by(a, b)))
  const shown = all ? rows.length : CARDS
  const press = (by: string) => setSort(sort?.by !== by ? { by, down: false } : sort.down ? null : { by, down: true })
  return (
    <>
      <News list={list} />
      <div className="table">
        {/* Card layout removes the table's implicit roles, so they are set explicitly. */}
        <table role="table" aria-label={label}>
          <thead role="rowgroup">
            <tr role="row">
              {columns.map(({ align, compare, from, label }) => (
                <th
                  key={label}
                  role="columnheader"
                  scope="col"
                  className={`${align ?? ""} ${from ?? ""}`}
                  {...(sort?.by === label && sortable ? { "aria-sort": sort.down ? "descending" : "ascending" } : {})}
                >
                  {compare === undefined || !sortable ? (
                    label
                  ) : (
                    <button type="button" onClick={() => press(label)}>
                      {label}
                      {sort?.by !== label ? null : sort.down ? <ArrowDown aria-hidden size={13} /> : <ArrowUp aria-hidden size={13} />}
                    </button>
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {rows.map((row, index) => {
              const key = list.keyOf(row)
              return (
                <tr key={key} role="row" className={`${list.gone.has(key) ? "gone" : ""} ${index < shown ? "" : "later"}`}>
                  {columns.map(({ align, card, cell, from, heads, label }) => {
                    const Cell = heads === true ? "th" : "td"
                    return (
                      <Cell
                        key={label}
                        role={heads === true ? "rowheader" : "cell"}
                        {...(heads === true ? { scope: "row" } : {})}
                        className={`${align ?? ""} ${from ?? ""}`}
                        data-label={card ?? (heads === true ? "" : label)}
                      >
                        {cell(row)}
                      </Cell>
                    )
                  })}
                </tr>
              )
            })}
          </tbody>
        </table>
        {rows.length <= shown ? null : (
          <p className="more cards">
            <Button onClick={showAll}>{list.hasNextPage ? "Show more" : `Show all ${rows.length}`}</Button>
          </p>
        )}
        <More list={list} />
      </div>
      {foot?.(rows)}
    </>
  )
}
