/**
 * Admission: limits how many requests of one organization use the database at the same time in this process. All
 * organizations share one connection pool; without a limit, a few expensive requests of one organization would take all
 * connections. Work past the limit waits for a slot, in order of arrival, and fails with 503 after a second. Background work, such as
 * the pages of streams, waits as long as it takes, in a queue of its own: the two get slots by turns, so that neither keeps the other out.
 * Authentication is not counted: it comes earlier, and its statements are short. Time spent waiting for the client, such
 * as reading a body, does not count either: one slow client would hold up its whole organization. Effect's Semaphore does
 * not keep the order: a newcomer can take a slot that was just given back, and whoever waited for it queues again at the end.
 */
import { Effect } from "effect"
import { handler } from "../../http/handler.ts"
import { problem } from "../../http/Problem.ts"
import { Principal, type PrincipalState } from "../credentials/Principal.ts"

/** Concurrent work of one organization: half of the pool's connections (Database.ts). */
export const CONCURRENCY = 5
/** Longest wait for a slot, in ms. */
const WAIT = 1_000

interface Turns {
  underWay: number
  /** Waiting work of both kinds, in order; each is resumed when it gets a slot. */
  readonly requests: Set<() => void>
  readonly background: Set<() => void>
  /** The kind that gets the next slot, if it waits. */
  next: "requests" | "background"
}

export class Admission extends Effect.Service<Admission>()("custody/Admission", {
  sync: () => {
    /** Organizations with work in flight. */
    const all = new Map<string, Turns>()

    /** Waits for a slot, at most a second unless it is patient. */
    const wait = (turns: Turns, patient: boolean): Effect.Effect<void> =>
      Effect.async((resume) => {
        const waiting = patient ? turns.background : turns.requests
        let held = false
        const given = () => {
          held = true
          clearTimeout(timer)
          resume(Effect.void)
        }
        const refuse = () => {
          waiting.delete(given)
          resume(
            Effect.die(
              problem("service_unavailable", "Your organization has too many requests in progress. Try again.", {
                headers: { "retry-after": "1" }
              })
            )
          )
        }
        const timer = patient ? undefined : setTimeout(refuse, WAIT)
        waiting.add(given)
        return Effect.sync(() => {
          clearTimeout(timer)
          waiting.delete(given)
          // A client that disconnects just when it gets a slot releases it.
          if (held) giveBack(turns)
        })
      })

    /** Gives the slot to the work that has waited longest, of the other kind than the last. */
    const giveBack = (turns: Turns) => {
      const other = turns.next === "requests" ? "background" : "requests"
      const kind = turns[turns.next].size > 0 ? turns.next : other
      const [first] = turns[kind]
      if (first === undefined) turns.underWay--
      else {
        turns.next = kind === "requests" ? "background" : "requests"
        turns[kind].delete(first)
        first()
      }
    }

    const inTurn = <A, E, R>(organizationId: string, work: Effect.Effect<A, E, R>, patient: boolean): Effect.Effect<A, E, R> =>
      Effect.uninterruptibleMask((restore) => {
        const turns: Turns = all.get(organizationId) ?? { underWay: 0, requests: new Set(), background: new Set(), next: "requests" }
        all.set(organizationId, turns)
        const run = Effect.ensuring(
          restore(work),
          Effect.sync(() => {
            giveBack(turns)
            if (turns.underWay === 0) all.delete(organizationId)
          })
        )
        if (turns.underWay >= CONCURRENCY) return Effect.zipRight(restore(wait(turns, patient)), run)
        turns.underWay++
        return run
      })

    return {
      /** Runs work of the caller's organization when it gets a slot. Dies with 503 `service_unavailable` after a second. */
      admit: <A, E, R>({ organizationId }: PrincipalState, work: Effect.Effect<A, E, R>) => inTurn(organizationId, work, false),

      /** The same for background work, which waits as long as it takes. */
      admitPatiently: <A, E, R>({ organizationId }: PrincipalState, work: Effect.Effect<A, E, R>) => inTurn(organizationId, work, true)
    }
  }
}) {
  static readonly layer = this.Default
}

/** Runs work for the request's caller when it gets a slot, for handlers of which only a part needs one. */
export const turns = Effect.map(
  Admission,
  ({ admit }) =>
    <A, E, R>(work: Effect.Effect<A, E, R>) =>
      Effect.flatMap(Principal, (principal) => admit(principal, work))
)

/** Wraps read handlers so that each waits for a slot. */
export const reads = Effect.map(
  turns,
  (inTurn) =>
    <Args extends ReadonlyArray<unknown>, A, E, R>(name: string, run: (...args: Args) => Effect.Effect<A, E, R>) =>
      handler(name, (...args: Args) => inTurn(run(...args)))
)
