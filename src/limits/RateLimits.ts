/**
 * Rate limits in the memory of the process. They use the monotonic clock: if the machine's clock were set back, counts
 * based on it would stop until the old time is reached again, and clients that had used up their burst would be rejected
 * for that long. The library's store never forgets a key, so each key has its own store, and the most recently used keys
 * are kept. Decision D-12.
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

/** A limiter with its own counts. */
export const layer: Layer.Layer<RateLimiter.RateLimiter> = Layer.provide(RateLimiter.layer, store)
