/**
 * Paginated lists of the API. A live list polls its first rows, as many as are visible and newer: visible rows are updated in place,
 * and rows that were added or removed wait until the user shows them, so that nothing moves under the cursor.
 */
import { type InfiniteData, keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query"
import { useEffect, useRef } from "react"
import type { Page } from "../../client/index.ts"
import { getPage } from "./api.ts"
import type { ListSource, Path, Row } from "./routeTypes.ts"

/** Options of a list. */
export interface ListOptions<A> {
  /** Polling interval in ms; absent if the list is not live. */
  readonly every?: number
  /** Page size; default 25. */
  readonly limit?: number
  /** The key of a row; default: its `id`. */
  readonly keyOf?: (row: A) => string
}

/** A list for display. */
export interface List<A> {
  readonly rows: ReadonlyArray<A> | undefined
  readonly keyOf: (row: A) => string
  readonly error: unknown
  /** New rows that are not shown yet. */
  readonly added: number
  /** Keys of visible rows that are no longer in the list. */
  readonly gone: ReadonlySet<string>
  /** Shows new rows and removes old ones. */
  readonly takeIn: () => void
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  readonly fetchNextPage: () => unknown
  readonly refetch: () => Promise<unknown>
}

/** A list that the API returns in pages. */
export interface PagedList<P extends Path<"GET">> extends List<Row<P>> {
  /** The API path and query, for an export; more parameters can be appended. */
  readonly source: ListSource<P>
}

const PAGE = 25,
  MOST = 500
const idOf = (row: unknown): string => (typeof row === "object" && row !== null && "id" in row ? String(row.id) : "")

/** The difference between the latest first page and the visible rows. */
const compare = <A>(rows: ReadonlyArray<A>, all: boolean, head: Page<A> | undefined, keyOf: (row: A) => string) => {
  if (head === undefined) return { rows, added: [], gone: new Set<string>(), overlaps: true }
  const fresh = new Map(head.data.map((row) => [keyOf(row), row]))
  const known = new Set(rows.map(keyOf))
  const lastPath = head.data.findLastIndex((row) => known.has(keyOf(row)))
  const added = head.data.filter((row, index) => !known.has(keyOf(row)) && (index < lastPath || all || lastPath < 0))
  // Rows up to the last one in both, or all rows if the first page is the whole list.
  const end = head.pagination.nextCursor === null ? rows.length : rows.findLastIndex((row) => fresh.has(keyOf(row)))
  const gone = new Set(rows.slice(0, Math.max(0, end)).flatMap((row) => (fresh.has(keyOf(row)) ? [] : [keyOf(row)])))
  return { rows: rows.map((row) => fresh.get(keyOf(row)) ?? row), added, gone, overlaps: lastPath >= 0 || rows.length === 0 }
}

/** A list of the API. Empty `filters` are ignored. */
export const useList = <P extends Path<"GET">>(
  path: P,
  filters: Readonly<Record<string, string>> = {},
  options: ListOptions<Row<P>> = {}
): PagedList<P> => {
  const client = useQueryClient()
  const { every, keyOf = idOf, limit = PAGE } = options
  const filter = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ""))
  const source: `${P}?${string}` = `${path}?${filter}${filter.size === 0 ? "" : "&"}`
  // Number of visible rows before a reload.
  const memory = `rows ${source}`
  const first = Math.min(MOST, Math.max(limit, Number(sessionStorage.getItem(memory)) || 0))
  const queryKey = [path, filter.toString()]
  const base = useInfiniteQuery<Page<Row<P>>, Error, InfiniteData<Page<Row<P>>>, ReadonlyArray<string>, string>({
    queryKey,
    queryFn: ({ pageParam, signal }) =>
      getPage<P>(pageParam === "" ? `${source}limit=${first}` : `${source}limit=${limit}&cursor=${encodeURIComponent(pageParam)}`, {
        signal
      }),
    initialPageParam: "",
    getNextPageParam: ({ pagination }) => pagination.nextCursor,
    placeholderData: keepPreviousData,
    ...(every === undefined ? {} : { staleTime: Number.POSITIVE_INFINITY, refetchOnMount: "always" as const })
  })
  const shown = base.data?.pages.flatMap(({ data }) => data)
  /** Updates the visible rows for good: newer rows may push one out of what is polled. */
  const update = ({ data }: Page<Row<P>>) => {
    const fresh = new Map(data.map((row) => [keyOf(row), row]))
    const updated = (page: Page<Row<P>>) => ({ ...page, data: page.data.map((row) => fresh.get(keyOf(row)) ?? row) })
    client.setQueryData<InfiniteData<Page<Row<P>>>>(queryKey, (old) => old && { ...old, pages: old.pages.map(updated) }, {
      updatedAt: base.dataUpdatedAt
    })
  }
  /** Rows that are newer than the visible ones. */
  const newer = useRef(0)
  const head = useQuery({
    queryKey: [...queryKey, "head"],
    queryFn: async ({ signal }) => {
      const visible = Math.min(MOST, (shown?.length ?? 0) + newer.current)
      let page = await getPage<P>(`${source}limit=${Math.max(limit, visible)}`, { signal })
      // A page of large rows may be short.
      for (let next = page.pagination.nextCursor; next !== null && page.data.length < visible; next = page.pagination.nextCursor) {
        const rest = await getPage<P>(`${source}limit=${visible - page.data.length}&cursor=${encodeURIComponent(next)}`, { signal })
        page = { ...rest, data: [...page.data, ...rest.data] }
      }
      update(page)
      return page
    },
    enabled: every !== undefined && base.data !== undefined && !base.isPlaceholderData,
    gcTime: 0,
    ...(every === undefined ? {} : { refetchInterval: every })
  })
  const news = head.dataUpdatedAt > base.dataUpdatedAt ? head.data : undefined
  const found = shown === undefined ? undefined : compare(shown, !base.hasNextPage, news, keyOf)
  newer.current = found?.added.length ?? 0

  const takeIn = () => {
    if (found === undefined || news === undefined) return
    client.setQueryData<InfiniteData<Page<Row<P>>>>(queryKey, (old) => {
      const [top, ...rest] = old?.pages ?? []
      if (top === undefined || !found.overlaps) return { pages: [news], pageParams: [""] }
      const kept = (page: Page<Row<P>>) => ({ ...page, data: page.data.filter((row) => !found.gone.has(keyOf(row))) })
      return { pageParams: old?.pageParams ?? [""], pages: [{ ...top, data: [...found.added, ...kept(top).data] }, ...rest.map(kept)] }
    })
  }
  // An empty list has no rows that could move.
  const empty = found !== undefined && found.rows.length === 0 && found.added.length > 0
  const take = useRef(takeIn)
  take.current = takeIn
  useEffect(() => {
    if (empty) take.current()
  }, [empty])

  return {
    rows: found?.rows,
    keyOf,
    error: base.error,
    added: empty ? 0 : (found?.added.length ?? 0),
    gone: found?.gone ?? new Set(),
    takeIn,
    hasNextPage: base.hasNextPage,
    isFetchingNextPage: base.isFetchingNextPage,
    fetchNextPage: () => {
      sessionStorage.setItem(memory, String((shown?.length ?? 0) + limit))
      return base.fetchNextPage()
    },
    refetch: base.refetch,
    source
  }
}

/** A list of rows that are all loaded. */
export const listOf = <A>(rows: ReadonlyArray<A>, keyOf: (row: A) => string): List<A> => ({
  rows,
  keyOf,
  error: null,
  added: 0,
  gone: new Set(),
  takeIn: () => {},
  hasNextPage: false,
  isFetchingNextPage: false,
  fetchNextPage: () => undefined,
  refetch: () => Promise.resolve()
})

/** The first rows of a list without filters, refreshed at an interval, for display beside something else; `isAll`: there are no others. */
export const useFew = <P extends Path<"GET">>(path: P, limit: number, every?: number) => {
  const { data, error, refetch } = useQuery({
    queryKey: [path, "few", limit],
    queryFn: ({ signal }) => getPage<P>(`${path}?limit=${limit}`, { signal }),
    ...(every === undefined ? {} : { refetchInterval: every })
  })
  return { data: data?.data, isAll: data?.pagination.nextCursor === null, error, refetch }
}
