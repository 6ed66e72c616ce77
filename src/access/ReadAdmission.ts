/**
 * Admission of reads: how many one organization may have under way at once, in this process. The reads of all
 * organizations share the connections of one pool; without a bound a few expensive ones of one organization take them
 * all, and everybody else's wait. A read past the bound waits for its turn, the longest waiting first, and fails with
 * 503 when it had none within a second. Authentication is not counted: it comes before, and its statements are short.
 */
import { Effect } from "effect"
import { Principal, type PrincipalState } from "../credentials/Principal.ts"
import { handler } from "../http/handler.ts"
import { problem } from "../http/Problem.ts"

/** Reads of one organization at once: half of the pool's connections (Database.ts). */
export const READS_AT_ONCE = 5
/** Longest wait for a turn, in ms. */
const WAIT = 1_000

interface Turns {
  underWay: number
  /** Those that wait, in their order: each is told that it has its turn. */
  readonly waiting: Set<() => void>
}

export class ReadAdmission extends Effect.Service<ReadAdmission>()("custody/ReadAdmission", {
  sync: () => {
    /** Organizations with reads under way. */
    const all = new Map<string, Turns>()

    /** Waits for a turn. */
    const wait = (turns: Turns): Effect.Effect<void> =>
      Effect.async((resume) => {
        let held = false
        const given = () => {
          held = true
          clearTimeout(timer)
          resume(Effect.void)
        }
        const timer = setTimeout(() => {
          turns.waiting.delete(given)
          resume(
            Effect.die(
              problem("service_unavailable", "Your organization has too many reads under way. Try again.", {
                headers: { "retry-after": "1" }
              })
            )
          )
        }, WAIT)
        turns.waiting.add(given)
        return Effect.sync(() => {
          clearTimeout(timer)
          turns.waiting.delete(given)
          // A caller who goes away just when its turn has come gives it back.
          if (held) giveBack(turns)
        })
      })

    /** Hands the turn to the one that waits the longest. */
    const giveBack = (turns: Turns) => {
      const [next] = turns.waiting
      if (next === undefined) turns.underWay--
      else {
        turns.waiting.delete(next)
        next()
      }
    }

    return {
      /** Runs a read of the caller's organization in its turn. Dies with 503 `service_unavailable` when it had none within a second. */
      admit: <A, E, R>({ organizationId }: PrincipalState, read: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
        Effect.uninterruptibleMask((restore) => {
          const turns = all.get(organizationId) ?? { underWay: 0, waiting: new Set() }
          all.set(organizationId, turns)
          const inTurn = Effect.ensuring(
            restore(read),
            Effect.sync(() => {
              giveBack(turns)
              if (turns.underWay === 0) all.delete(organizationId)
            })
          )
          if (turns.underWay >= READS_AT_ONCE) return Effect.zipRight(restore(wait(turns)), inTurn)
          turns.underWay++
          return inTurn
        })
    }
  }
}) {
  static readonly layer = this.Default
}

/** Makes handlers of reads: each runs in its turn. */
export const reads = Effect.map(
  ReadAdmission,
  ({ admit }) =>
    <Args extends ReadonlyArray<unknown>, A, E, R>(name: string, run: (...args: Args) => Effect.Effect<A, E, R>) =>
      handler(name, (...args: Args) => Effect.flatMap(Principal, (principal) => admit(principal, run(...args))))
)
