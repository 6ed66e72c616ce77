/** Lists of things, a page at a time. */
import type { ReactNode } from "react"
import { Button } from "./Button.tsx"
import { Failure, Loading } from "./States.tsx"

interface Listed<A> {
  readonly rows: ReadonlyArray<A> | undefined
  readonly error: unknown
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  readonly fetchNextPage: () => unknown
  readonly refetch: () => unknown
}

export interface RowsProps<A> {
  readonly list: Listed<A>
  readonly label: string
  readonly keyOf: (row: A) => string
  readonly row: (row: A) => ReactNode
  readonly empty: ReactNode
}

export const Rows = <A,>({ empty, keyOf, label, list, row }: RowsProps<A>) => {
  if (list.rows === undefined) {
    return list.error === null ? <Loading /> : <Failure error={list.error} retry={() => list.refetch()} />
  }
  if (list.rows.length === 0) return empty
  return (
    <>
      <ul className="rows" aria-label={label}>
        {list.rows.map((one) => (
          <li key={keyOf(one)}>{row(one)}</li>
        ))}
      </ul>
      {list.hasNextPage ? (
        <p className="more">
          <Button busy={list.isFetchingNextPage} onClick={() => list.fetchNextPage()}>
            Show more
          </Button>
        </p>
      ) : null}
    </>
  )
}
