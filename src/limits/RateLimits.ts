/**
 * Counting who does something how often, in the memory of the process. It goes by the monotonic clock: when the time
 * of a machine is set back, a count that went by it would stand still until that time has passed once more, and
 * whoever had used up its burst would be refused for as long. The library's store never forgets a key, so each key has
 * a store of its own, and the keys that were used last are kept. Decision D-12.
 */
import { RateLimiter } from "@effect/experimental"
import { Clock, Effect, Layer } from "effect"
import { LRUCache } from "lru-cache"
import { REMEMBERED } from "./SlidingWindow.ts"

const monotonic: Clock.Clock = Object.assign(Clock.make(), { unsafeCurrentTimeMillis: () => performance.now() })

const storeOfOneKey = () => Effect.runSync(Effect.provide(RateLimiter.RateLimiterStore, RateLimiter.layerStoreMemory))

const store = Layer.sync(RateLimiter.RateLimiterStore, () => {
  const stores = new LRUCache<string, ReturnType<typeof storeOfOneKey>>({ max: REMEMBERED, memoMethod: storeOfOneKey })
  const of = (key: string) => stores.memo(key)
  return RateLimiter.RateLimiterStore.of({
    fixedWindow: (options) => Effect.suspend(() => Effect.withClock(of(options.key).fixedWindow(options), monotonic)),
    tokenBucket: (options) => Effect.suspend(() => Effect.withClock(of(options.key).tokenBucket(options), monotonic))
  })
})

/** A limiter with counts of its own. */
export const layer: Layer.Layer<RateLimiter.RateLimiter> = Layer.provide(RateLimiter.layer, store)
