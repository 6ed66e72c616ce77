/** What pages show, as queries: single things, what stands beside rows, and what there is to choose from. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import type { Reach } from "../Overview.ts"
import { ApiProblem, get } from "./api.ts"

/** What the user reaches, and the service's own vocabulary and bounds. */
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
  /** Ports that a webhook's URL may have. */
  readonly webhookPorts: ReadonlyArray<number>
  /** Pages of block explorers by network, with `{hash}` and `{address}` in them. */
  readonly explorers: Readonly<Record<string, { readonly transaction?: string; readonly address?: string }>>
}
export const useSurroundings = () => useQuery({ queryKey: ["context"], queryFn: () => get<Surroundings>("/context"), staleTime: 60_000 })

/** Names of vaults and entities by id; an id that has none stays as it is. */
export const useNames = (): ((id: string) => string) => {
  const { data } = useSurroundings()
  const names = new Map([...(data?.entities ?? []), ...(data?.vaults ?? [])].map(({ id, name }) => [id, name]))
  return (id) => names.get(id) ?? id
}

/** Something that the API answers under a path of its own. `every` reads it again after so many milliseconds. */
export const useOne = <A>(path: string, options: { readonly every?: number; readonly enabled?: boolean } = {}) =>
  useQuery({
    queryKey: [path],
    queryFn: () => get<A>(path),
    enabled: options.enabled ?? true,
    ...(options.every === undefined ? {} : { refetchInterval: options.every })
  })

/** Ids that one request names. */
const BATCH = 100

/** What is shown beside the rows of a list, by their ids; while a row is added, what is known stays. */
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

/** What an asset is called. */
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

/** Whether a second try could help: not where the service has refused. */
export const worthwhile = (failures: number, error: unknown): boolean => failures < 2 && mayHelp(error)

/** Whether the same request might succeed later: the service could not be reached, or could not answer. */
export const mayHelp = (error: unknown): boolean =>
  !(error instanceof ApiProblem && error.status >= 400 && error.status < 500 && error.status !== 429)
