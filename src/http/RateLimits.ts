/**
 * Counting who does something how often, in the memory of the process. It goes by the monotonic clock: when the time
 * of a machine is set back, a count that went by it would stand still until that time has passed once more, and
 * whoever had used up its burst would be refused for as long. Decision D-12.
 */
import { RateLimiter } from "@effect/experimental"
import { Clock, Effect, Layer } from "effect"

const monotonic: Clock.Clock = Object.assign(Clock.make(), { unsafeCurrentTimeMillis: () => performance.now() })

const store = Layer.effect(
  RateLimiter.RateLimiterStore,
  Effect.map(RateLimiter.RateLimiterStore, ({ fixedWindow, tokenBucket }) =>
    RateLimiter.RateLimiterStore.of({
      fixedWindow: (options) => Effect.withClock(fixedWindow(options), monotonic),
      tokenBucket: (options) => Effect.withClock(tokenBucket(options), monotonic)
    })
  )
)

/** A limiter with counts of its own. */
export const layer: Layer.Layer<RateLimiter.RateLimiter> = RateLimiter.layer.pipe(
  Layer.provide(store),
  Layer.provide(RateLimiter.layerStoreMemory)
)
