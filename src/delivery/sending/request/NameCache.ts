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
  const known = new LRUCache<string, ReadonlyArray<string>>({ max: NAMES })
  const asking = new Map<string, Promise<ReadonlyArray<string>>>()

  const ask = async (hostname: string) => {
    const askedAt = performance.now()
    try {
      const { addresses, ttlSeconds } = await resolve(hostname)
      const seconds = addresses.length === 0 ? FAILED_SECONDS : Math.min(KEPT_SECONDS, ttlSeconds)
      const left = Math.floor(seconds * 1_000 - (performance.now() - askedAt))
      // For the cache, 0 means forever.
      if (left > 0) known.set(hostname, addresses, { ttl: left })
      return addresses
    } finally {
      asking.delete(hostname)
    }
  }

  return (hostname) => {
    const answer = known.get(hostname)
    if (answer !== undefined) return Promise.resolve(answer)
    const other = asking.get(hostname)
    if (other !== undefined) return other
    const mine = ask(hostname)
    asking.set(hostname, mine)
    return mine
  }
}
