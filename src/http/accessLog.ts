/**
 * The access log: one line per response, with the request and its outcome. It has the key's id, never the secret, and no
 * query, which may contain a cursor. Anyone can send requests without a key or a session: they are only counted after the first
 * ten of an address and minute, whatever the response, so that they cannot fill a disk.
 */
import { Effect, Runtime } from "effect"
import { networkOf } from "./ClientAddress.ts"
import { pathOf } from "./errorBoundary.ts"
import { targetOf } from "./listener.ts"
import type { RequestState } from "./RequestContext.ts"

/** Characters of a path that are logged. */
const MAX_PATH = 200
/** Requests of an address without a key or a session that are logged one by one in each minute. */
const LOGGED = 10
/** Addresses that are counted apart; all others are counted as one. */
const ADDRESSES = 1_000
const MINUTE = 60_000

/**
 * Logs a response; not an Effect, for speed. Successful reads are logged only if `reads` is set, at debug level, because
 * there can be thousands per second. `period` is the time, in ms, after which an address's requests are logged one by one again.
 */
export const accessLog = (reads: boolean, runtime: Runtime.Runtime<never>, period = MINUTE) => {
  const run = Runtime.runFork(runtime)
  let unknown = new Map<string, Record<string, number>>()

  const summarize = () => {
    const counted = unknown
    unknown = new Map()
    for (const [client, statuses] of counted) {
      const count = Object.values(statuses).reduce((sum, one) => sum + one, 0)
      if (count > LOGGED) run(Effect.logInfo("requests without a key or session").pipe(Effect.annotateLogs({ client, count, statuses })))
    }
  }

  /** Counts a request without a key or a session; returns whether it is one of the first of its address. */
  const isLogged = (address: string, status: number): boolean => {
    if (unknown.size === 0) setTimeout(summarize, period).unref()
    const client = unknown.has(address) || unknown.size < ADDRESSES ? address : "others"
    const statuses = unknown.get(client) ?? {}
    unknown.set(client, statuses)
    statuses[status] = (statuses[status] ?? 0) + 1
    return Object.values(statuses).reduce((sum, one) => sum + one, 0) <= LOGGED
  }

  return (request: Request, { client, isKnown, keyId, requestId, startedAt }: RequestState, status: number): void => {
    const quiet = status < 300 && request.method === "GET"
    if (quiet && !reads) return
    const address = client === undefined ? "unknown" : networkOf(client)
    if (keyId === undefined && !isKnown && !isLogged(address, status)) return
    run(
      (quiet ? Effect.logDebug : Effect.logInfo)("request").pipe(
        Effect.annotateLogs({
          requestId,
          method: request.method,
          path: pathOf(targetOf(request.url)).slice(0, MAX_PATH),
          status,
          ms: Math.round((performance.now() - startedAt) * 10) / 10,
          ...(keyId === undefined ? {} : { keyId }),
          client: client?.toString() ?? "unknown"
        })
      )
    )
  }
}
