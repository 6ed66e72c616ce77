/**
 * Caches DNS responses for their TTL, at most half a minute. Only the addresses are cached, never the result of the
 * check: the SSRF guard checks every address again at each use. Decision D-30.
 */
import { LRUCache } from "lru-cache"

/** Longest time that a response is cached, and time for a failure, in seconds. */
const KEPT_SECONDS = 30,
  FAILED_SECONDS = 5
/** Most names in the cache. */
const NAMES = 10_000

/** Addresses of a name and their remaining seconds; none if the name could not be resolved. */
export interface Resolved {
  readonly addresses: ReadonlyArray<string>
  readonly ttlSeconds: number
}

/** Resolves a name from the cache, or with `resolve`; concurrent attempts share one query. */
export const cached = (resolve: (hostname: string) => Promise<Resolved>): ((hostname: string) => Promise<ReadonlyArray<string>>) => {
  const known = new LRUCache<string, ReadonlyArray<string>>({
    max: NAMES,
    fetchMethod: async (hostname, _, { options }) => {
      const askedAt = performance.now()
      const { addresses, ttlSeconds } = await resolve(hostname)
      const seconds = addresses.length === 0 ? FAILED_SECONDS : Math.min(KEPT_SECONDS, ttlSeconds)
      // For the cache, 0 means forever.
      options.ttl = Math.max(1, Math.floor(seconds * 1_000 - (performance.now() - askedAt)))
      return addresses
    }
  })
  return (hostname) => known.forceFetch(hostname)
}
