/** What pages show, as queries: who is signed in, what there is to choose from, and lists a page at a time. */
import { type InfiniteData, keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query"
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

/** Asks again who is signed in, once somebody else may be, and forgets what was shown to whoever it was before. */
export const useSignedIn = () => {
  const client = useQueryClient()
  return async () => {
    client.removeQueries({ type: "inactive" })
    await client.invalidateQueries({ queryKey: SESSION })
  }
}

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
export const useOne = <A>(path: string, options: { readonly every?: number } = {}) =>
  useQuery({
    queryKey: [path],
    queryFn: () => get<A>(path),
    ...(options.every === undefined ? {} : { refetchInterval: options.every })
  })

/** Rows that the service is asked about at once. */
const AT_ONCE = 100

/** What is shown beside the rows of a list, by their ids; while a row is added, what is known stays. */
export const useBeside = <A>(path: string, ids: ReadonlyArray<string>, every: number) =>
  useQuery({
    queryKey: [path, ids],
    queryFn: async (): Promise<Readonly<Record<string, A>>> => {
      const starts = Array.from({ length: Math.ceil(ids.length / AT_ONCE) }, (_, index) => index * AT_ONCE)
      const parts = await Promise.all(
        starts.map((start) => get<Readonly<Record<string, A>>>(`${path}?ids=${ids.slice(start, start + AT_ONCE).join(",")}`))
      )
      return Object.fromEntries(parts.flatMap((part) => Object.entries(part)))
    },
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: every
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
