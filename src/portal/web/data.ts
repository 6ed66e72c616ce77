/** Queries of the pages: single objects, data beside rows, and choices. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { ApiProblem, get, getById } from "./api.ts"
import type { ById, Path } from "./routeTypes.ts"

export const usePortalContext = () => useQuery({ queryKey: ["context"], queryFn: () => get("/context"), staleTime: 60_000 })

/** Names of vaults and entities by id; an id without a name is shown as is. */
export const useNames = (): ((id: string) => string) => {
  const { data } = usePortalContext()
  const names = new Map([...(data?.entities ?? []), ...(data?.vaults ?? [])].map(({ id, name }) => [id, name]))
  return (id) => names.get(id) ?? id
}

/** An object of the API by its path. `every` is a refresh interval in ms; `keep` shows the object of the path before until there is one. */
export const useOne = <P extends Path<"GET">>(
  path: P,
  options: { readonly every?: number; readonly enabled?: boolean; readonly keep?: boolean } = {}
) =>
  useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => get(path, { signal }),
    enabled: options.enabled ?? true,
    ...(options.keep === true ? { placeholderData: keepPreviousData } : {}),
    ...(options.every === undefined ? {} : { refetchInterval: options.every })
  })

/** Ids per request. */
const BATCH = 100

/** Data shown beside the rows of a list, by id; loaded data stays when rows are added. */
export const useBeside = <P extends Path<"GET">>(path: P, ids: ReadonlyArray<string>, every: number | false) =>
  useQuery({
    queryKey: [path, ids],
    queryFn: async ({ signal }): Promise<Readonly<Record<string, ById<P>>>> => {
      const starts = Array.from({ length: Math.ceil(ids.length / BATCH) }, (_, index) => index * BATCH)
      const parts = await Promise.all(starts.map((start) => getById(path, ids.slice(start, start + BATCH), { signal })))
      return Object.fromEntries(parts.flatMap((part) => Object.entries(part)))
    },
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
    ...(every === false ? { staleTime: 300_000 } : { refetchInterval: every })
  })

/** Symbols of assets, from the catalog. */
export const useSymbols = (assets: ReadonlyArray<string>): ((asset: string) => string) => {
  const wanted = [...new Set(assets)].sort()
  const { data } = useBeside("/asset-names", wanted, false)
  return (asset) => data?.[asset]?.symbol ?? asset.slice(asset.indexOf("/") + 1).replace(/^(\w+:.{6}).+(.{4})$/, "$1…$2")
}

/** Whether to repeat a query at once: not after an error response of the service. While it is busy, the request itself waits. */
export const worthwhile = (failures: number, error: unknown): boolean =>
  failures < 2 && mayHelp(error) && !(error instanceof ApiProblem && error.status === 503)

/** Whether the same request might succeed later: the service was unreachable or unavailable. */
export const mayHelp = (error: unknown): boolean =>
  !(error instanceof ApiProblem && error.status >= 400 && error.status < 500 && error.status !== 429)
