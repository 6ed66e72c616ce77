/**
 * Admission of reads: limits how many reads of one organization run at the same time in this process. The reads of all
 * organizations share one connection pool; without a limit, a few expensive reads of one organization would take all
 * connections. A read past the limit waits for its turn, in order of arrival, and fails with 503 after a second.
 * Authentication is not counted: it comes earlier, and its statements are short.
 */
import { Effect } from "effect"
import { Principal, type PrincipalState } from "../credentials/Principal.ts"
import { handler } from "../http/handler.ts"
import { problem } from "../http/Problem.ts"

/** Concurrent reads of one organization: half of the pool's connections (Database.ts). */
export const READS_AT_ONCE = 5
/** Longest wait for a turn, in ms. */
const WAIT = 1_000

interface Turns {
  underWay: number
  /** Waiting reads in order; each is resumed when it gets its turn. */
  readonly waiting: Set<() => void>
}

export class ReadAdmission extends Effect.Service<ReadAdmission>()("custody/ReadAdmission", {
  sync: () => {
    /** Organizations with reads in flight. */
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
          // A client that disconnects just when it gets its turn gives it back.
          if (held) giveBack(turns)
        })
      })

    /** Gives the turn to the read that has waited longest. */
    const giveBack = (turns: Turns) => {
      const [next] = turns.waiting
      if (next === undefined) turns.underWay--
      else {
        turns.waiting.delete(next)
        next()
      }
    }

    return {
      /**
       * Runs a read of the caller's organization when it gets its turn. Dies with 503 `service_unavailable` if that takes
       * more than a second.
       */
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

/** Wraps handlers of reads so that each waits for its turn. */
export const reads = Effect.map(
  ReadAdmission,
  ({ admit }) =>
    <Args extends ReadonlyArray<unknown>, A, E, R>(name: string, run: (...args: Args) => Effect.Effect<A, E, R>) =>
      handler(name, (...args: Args) => Effect.flatMap(Principal, (principal) => admit(principal, run(...args))))
)
