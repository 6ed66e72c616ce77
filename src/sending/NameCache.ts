/**
 * What name servers answered, kept for as long as the answer says and no longer than half a minute. Only the answer is
 * kept and never the judgement of it: the guard judges every address again at each use. Decision D-30.
 */
import { LRUCache } from "lru-cache"

/** Longest that an answer is kept, and how long a failure is, in seconds. */
const KEPT_SECONDS = 30,
  FAILED_SECONDS = 5
/** Names that are remembered at the most. */
const NAMES = 10_000

/** Addresses of a name, and for how many seconds they hold; none when the name could not be resolved. */
export interface Resolved {
  readonly addresses: ReadonlyArray<string>
  readonly ttlSeconds: number
}

/** Answers a name from what is known of it, or asks `resolve`; attempts that ask at the same time share one question. */
export const cached = (resolve: (hostname: string) => Promise<Resolved>): ((hostname: string) => Promise<ReadonlyArray<string>>) => {
  const known = new LRUCache<string, ReadonlyArray<string>>({ max: NAMES })
  const asking = new Map<string, Promise<ReadonlyArray<string>>>()

  const ask = async (hostname: string) => {
    const askedAt = performance.now()
    try {
      const { addresses, ttlSeconds } = await resolve(hostname)
      const seconds = addresses.length === 0 ? FAILED_SECONDS : Math.min(KEPT_SECONDS, ttlSeconds)
      const left = Math.floor(seconds * 1_000 - (performance.now() - askedAt))
      // To the cache 0 means for ever.
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
