/** A pace at which work begins, however much of it waits. */
import { Effect } from "effect"

/**
 * Waits for the next turn: turns are `everyMs` apart, and after a pause `atOnce` may be taken at once. Not Effect's
 * RateLimiter: it wakes everyone that waits whenever one may go, so that 2,000 that wait use a whole core.
 */
export const makePace = (everyMs: number, atOnce: number): Effect.Effect<void> => {
  let turn = Number.NEGATIVE_INFINITY
  return Effect.suspend(() => {
    const now = performance.now()
    turn = Math.max(turn, now - atOnce * everyMs) + everyMs
    return turn <= now ? Effect.void : Effect.sleep(turn - now)
  })
}
