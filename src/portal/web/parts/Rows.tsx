/** Paginated lists, and their new rows. */
import { ArrowUp } from "lucide-react"
import type { ReactNode } from "react"
import type { List } from "../list.ts"
import { Button } from "./Button.tsx"
import { Failure, Loading } from "./States.tsx"

export interface RowsProps<A> {
  readonly list: List<A>
  readonly label: string
  readonly row: (row: A) => ReactNode
  readonly empty: ReactNode
}

/** Placeholder of a list without rows: loading, failed or empty. */
export const Waiting = <A,>({ empty, list }: { readonly list: List<A>; readonly empty: ReactNode }) => {
  if (list.rows !== undefined) return empty
  return list.error === null ? <Loading /> : <Failure error={list.error} retry={() => list.refetch()} />
}

/** New rows, shown on request, so that nothing moves before. */
export const News = <A,>({ list: { added, gone, takeIn } }: { readonly list: List<A> }) => {
  const parts = [...(added > 0 ? [`${added} new`] : []), ...(gone.size > 0 ? [`${gone.size} changed`] : [])]
  return (
    <div className="news" role="status">
      {parts.length === 0 ? null : (
        <button type="button" className="pill" onClick={takeIn}>
          <ArrowUp aria-hidden size={14} /> {parts.join(", ")}
        </button>
      )}
    </div>
  )
}

/** The next page of a list. */
export const More = <A,>({ list }: { readonly list: List<A> }) =>
  list.hasNextPage ? (
    <p className="more">
      <Button busy={list.isFetchingNextPage} onClick={() => list.fetchNextPage()}>
        Show more
      </Button>
    </p>
  ) : null

export const Rows = <A,>({ empty, label, list, row }: RowsProps<A>) => {
  if (list.rows === undefined || list.rows.length === 0) return <Waiting list={list} empty={empty} />
  return (
    <>
      <News list={list} />
      <ul className="rows" aria-label={label}>
        {list.rows.map((one) => {
          const key = list.keyOf(one)
          return (
            <li key={key} className={list.gone.has(key) ? "gone" : undefined}>
              {row(one)}
            </li>
          )
        })}
      </ul>
      <More list={list} />
    </>
  )
}
