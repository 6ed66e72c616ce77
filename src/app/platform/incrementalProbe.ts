/** Probes of the oldest waiting row, whose cost does not depend on rows that no longer wait. */
import { Effect } from "effect"

/** How often a probe starts at the beginning, in ms: a crash of Postgres can bring back earlier rows. */
const WHOLE_MS = 60_000

/**
 * A probe that starts where the previous one ended, so that dead index entries, which remain while a backup holds a snapshot,
 * are not read again. It returns its value and the position where the next one starts. Each process remembers its own.
 */
export const incrementalProbe = <Position, A, E>(
  beginning: Position,
  probe: (from: Position) => Effect.Effect<readonly [A, Position], E>
): Effect.Effect<A, E> => {
  let from = beginning,
    wholeAt = Number.NEGATIVE_INFINITY
  return Effect.suspend(() => {
    const begun = performance.now()
    const whole = begun - wholeAt > WHOLE_MS
    return Effect.map(probe(whole ? beginning : from), ([value, next]) => {
      if (whole) wholeAt = begun
      from = next
      return value
    })
  })
}
