/** What pages show, as queries: who is signed in, what there is to choose from, and lists a page at a time. */
import { type InfiniteData, keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query"
import type { Reach } from "../Overview.ts"
import { ApiProblem, get } from "./api.ts"

/** Where the browser stands. */
export interface Standing {
  readonly state: "signed_out" | "enrolment" | "second_factor" | "signed_in"
  readonly user: User | null
  /** The identity provider's name, null without one. */
  readonly provider: string | null
  readonly passwordMin: number
}

export interface User {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly organization: { readonly id: string; readonly name: string }
  readonly isOwner: boolean
  readonly hasPassword: boolean
}

export const SESSION = ["session"]
export const useStanding = () => useQuery({ queryKey: SESSION, queryFn: () => get<Standing>("/session"), refetchInterval: 60_000 })

/** The signed-in user; pages behind the gate have one. */
export const useUser = (): User => {
  const { data } = useStanding()
  if (data?.user == null) throw new Error("nobody is signed in")
  return data.user
}

/** What the user reaches, and the service's own vocabulary and bounds. */
export interface Surroundings extends Reach {
  readonly scopes: ReadonlyArray<string>
  readonly kinds: ReadonlyArray<{ readonly name: string; readonly when: string; readonly scope: "vault" | "entity" }>
  readonly deliveryStatuses: ReadonlyArray<string>
  readonly activePerEntity: number
  readonly liveSecrets: number
  readonly rotationGraceSeconds: number
  readonly retentionDays: number
}
export const useSurroundings = () => useQuery({ queryKey: ["context"], queryFn: () => get<Surroundings>("/context"), staleTime: 60_000 })

/** Something that the API answers by a path of its own. */
export const useOne = <A>(path: string, options: { readonly every?: number; readonly enabled?: boolean } = {}) =>
  useQuery({
    queryKey: [path],
    queryFn: () => get<A>(path),
    enabled: options.enabled ?? true,
    ...(options.every === undefined ? {} : { refetchInterval: options.every })
  })

interface PageOf<A> {
  readonly data: ReadonlyArray<A>
  readonly pagination: { readonly limit: number; readonly nextCursor: string | null }
}

/** A list of the API, a page at a time. `every` asks anew after so many milliseconds while only its first page is shown. */
export const useList = <A>(
  path: string,
  filters: Readonly<Record<string, string>> = {},
  options: { readonly every?: number; readonly limit?: number } = {}
) => {
  const query = new URLSearchParams(Object.entries({ ...filters, limit: String(options.limit ?? 25) }).filter(([, value]) => value !== ""))
  const { every } = options
  const found = useInfiniteQuery<PageOf<A>, Error, InfiniteData<PageOf<A>>, ReadonlyArray<string>, string>({
    queryKey: [path, query.toString()],
    queryFn: ({ pageParam }) => get<PageOf<A>>(`${path}?${query}${pageParam === "" ? "" : `&cursor=${encodeURIComponent(pageParam)}`}`),
    initialPageParam: "",
    getNextPageParam: ({ pagination }) => pagination.nextCursor,
    placeholderData: keepPreviousData,
    ...(every === undefined ? {} : { refetchInterval: ({ state }) => ((state.data?.pages.length ?? 1) > 1 ? false : every) })
  })
  return { ...found, rows: found.data?.pages.flatMap(({ data }) => data) }
}

/** Whether asking again could help: not where the service has said no. */
export const worthwhile = (failures: number, error: unknown): boolean =>
  failures < 2 && !(error instanceof ApiProblem && error.status >= 400 && error.status < 500)
