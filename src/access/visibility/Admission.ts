/**
 * Admission: limits how many requests of one organization use the database at the same time in this process. All
 * organizations share one connection pool; without a limit, a few expensive requests of one organization would take all
 * connections. Work past the limit waits for a slot and fails with 503 after a second; background work, such as the pages of streams,
 * waits as long as it takes. Users, and the requests and the background work of each, get slots by turns, so that none keeps another out.
 * Authentication is not counted: it comes earlier, and its statements are short. Time spent waiting for the client, such
 * as reading a body, does not count either: one slow client would hold up its whole organization. Effect's Semaphore does
 * not keep the order: a newcomer can take a slot that was just given back, and whoever waited for it queues again at the end.
 */
import { Deferred, Effect, FiberId } from "effect"
import { handler } from "../../http/handler.ts"
import { problem } from "../../http/Problem.ts"
import { Principal, type PrincipalState } from "../credentials/Principal.ts"

/** Concurrent work of one organization: half of the pool's connections (Database.ts). */
export const CONCURRENCY = 5
/** Longest wait for a slot, in ms. */
const WAIT = 1_000

interface Turns {
  underWay: number
  /** Waiting work, in order, by user and kind; the first queue gets the next slot. Each is resumed when it gets one. */
  readonly queues: Map<string, Set<() => void>>
}

export class Admission extends Effect.Service<Admission>()("custody/Admission", {
  sync: () => {
    /** Organizations with work in flight. */
    const all = new Map<string, Turns>()

    /** Gives the slot to the work that has waited longest, of the queue whose turn it is. */
    const giveBack = (organizationId: string, turns: Turns) => {
      for (const [name, waiting] of turns.queues) {
        turns.queues.delete(name)
        for (const first of waiting) {
          waiting.delete(first)
          if (waiting.size > 0) turns.queues.set(name, waiting)
          return first()
        }
      }
      turns.underWay--
      if (turns.underWay === 0) all.delete(organizationId)
    }

    /** Asks for a slot. `turn` waits for it, at most a second unless it is patient; `leave` gives it back, or leaves the queue. */
    const ask = ({ organizationId, userId }: PrincipalState, patient: boolean) => {
      const turns: Turns = all.get(organizationId) ?? { underWay: 0, queues: new Map() }
      all.set(organizationId, turns)
      if (turns.underWay < CONCURRENCY) {
        turns.underWay++
        return { turn: Effect.void, leave: () => giveBack(organizationId, turns) }
      }
      const name = `${patient ? "background" : "requests"}/${userId}`,
        waiting = turns.queues.get(name) ?? new Set()
      turns.queues.set(name, waiting)
      const turn = Deferred.unsafeMake<void>(FiberId.none)
      let held = false
      const given = () => {
        held = true
        clearTimeout(timer)
        Deferred.unsafeDone(turn, Effect.void)
      }
      const refuse = () => {
        waiting.delete(given)
        const refused = problem("service_unavailable", "Your organization has too many requests in progress. Try again.", {
          headers: { "retry-after": "1" }
        })
        Deferred.unsafeDone(turn, Effect.die(refused))
      }
      const timer = patient ? undefined : setTimeout(refuse, WAIT)
      waiting.add(given)
      const leave = () => {
        clearTimeout(timer)
        if (held) giveBack(organizationId, turns)
        else waiting.delete(given)
      }
      return { turn: Deferred.await(turn), leave }
    }

    const inTurn = <A, E, R>(principal: PrincipalState, work: Effect.Effect<A, E, R>, patient: boolean): Effect.Effect<A, E, R> =>
      Effect.acquireUseRelease(
        Effect.sync(() => ask(principal, patient)),
        ({ turn }) => Effect.zipRight(turn, work),
        ({ leave }) => Effect.sync(leave)
      )

    return {
      /** Runs work of the caller's organization when it gets a slot. Dies with 503 `service_unavailable` after a second. */
      admit: <A, E, R>(principal: PrincipalState, work: Effect.Effect<A, E, R>) => inTurn(principal, work, false),

      /** The same for background work, which waits as long as it takes. */
      admitPatiently: <A, E, R>(principal: PrincipalState, work: Effect.Effect<A, E, R>) => inTurn(principal, work, true)
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
