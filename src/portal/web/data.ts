/** Queries of the pages: single objects, data beside rows, and choices. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import type { Reach } from "../Overview.ts"
import { ApiProblem, get } from "./api.ts"

/** What the user can see, and the service's names and limits. */
export interface Surroundings extends Reach {
  readonly scopes: ReadonlyArray<string>
  readonly kinds: ReadonlyArray<{
    readonly name: string
    readonly when: string
    readonly scope: "vault" | "entity"
    readonly schemaVersion: number
  }>
  readonly deliveryStatuses: ReadonlyArray<string>
  readonly activePerEntity: number
  readonly liveSecrets: number
  readonly rotationGraceSeconds: number
  readonly retentionDays: number
  /** Allowed ports of webhook URLs. */
  readonly webhookPorts: ReadonlyArray<number>
  /** Pages of block explorers by network, with `{hash}` and `{address}` in them. */
  readonly explorers: Readonly<Record<string, { readonly transaction?: string; readonly address?: string }>>
}
export const useSurroundings = () => useQuery({ queryKey: ["context"], queryFn: () => get<Surroundings>("/context"), staleTime: 60_000 })

/** Names of vaults and entities by id; an id without a name is shown as is. */
export const useNames = (): ((id: string) => string) => {
  const { data } = useSurroundings()
  const names = new Map([...(data?.entities ?? []), ...(data?.vaults ?? [])].map(({ id, name }) => [id, name]))
  return (id) => names.get(id) ?? id
}

/** An object of the API by its path. `every` is a refresh interval in ms. */
export const useOne = <A>(path: string, options: { readonly every?: number; readonly enabled?: boolean } = {}) =>
  useQuery({
    queryKey: [path],
    queryFn: () => get<A>(path),
    enabled: options.enabled ?? true,
    ...(options.every === undefined ? {} : { refetchInterval: options.every })
  })

/** Ids per request. */
const BATCH = 100

/** Data shown beside the rows of a list, by id; loaded data stays when rows are added. */
export const useBeside = <A>(path: string, ids: ReadonlyArray<string>, every: number | false) =>
  useQuery({
    queryKey: [path, ids],
    queryFn: async (): Promise<Readonly<Record<string, A>>> => {
      const starts = Array.from({ length: Math.ceil(ids.length / BATCH) }, (_, index) => index * BATCH)
      const parts = await Promise.all(
        starts.map((start) =>
          get<Readonly<Record<string, A>>>(
            `${path}?ids=${ids
              .slice(start, start + BATCH)
              .map(encodeURIComponent)
              .join(",")}`
          )
        )
      )
      return Object.fromEntries(parts.flatMap((part) => Object.entries(part)))
    },
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
    ...(every === false ? { staleTime: 300_000 } : { refetchInterval: every })
  })

/** The name of an asset. */
export interface AssetName {
  readonly symbol: string
  readonly name: string
  readonly decimals: number
}

/** Symbols of assets, from the catalog. */
export const useSymbols = (assets: ReadonlyArray<string>): ((asset: string) => string) => {
  const wanted = [...new Set(assets)].sort()
  const { data } = useBeside<AssetName>("/asset-names", wanted, false)
  return (asset) => data?.[asset]?.symbol ?? asset.slice(asset.indexOf("/") + 1).replace(/^(\w+:.{6}).+(.{4})$/, "$1…$2")
}

/** Whether a retry could help: not after an error response of the service. */
export const worthwhile = (failures: number, error: unknown): boolean => failures < 2 && mayHelp(error)

/** Whether the same request might succeed later: the service was unreachable or unavailable. */
export const mayHelp = (error: unknown): boolean =>
  !(error instanceof ApiProblem && error.status >= 400 && error.status < 500 && error.status !== 429)
