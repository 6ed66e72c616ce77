/**
 * The first attempts of what a claim found, made concurrently within a second. A delivery that finds no slot at its webhook
 * in that time joins the webhook's queue. An attempt that takes longer goes on in this process, and its delivery's own
 * workflow waits for its outcome; so does every other delivery that is not done. The claim's row is removed once every
 * member has begun its request or is queued; the dispatcher, which claims for everybody, hears of it as soon as what is
 * left waits for slots only. Running it again is harmless: what was attempted is in the rows.
 */
import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Deferred, Effect, Fiber, FiberId } from "effect"
import type { AttemptOutcome, FirstAttemptsInput, Member } from "../../../workflows/contract.ts"
import { resolverIsAway } from "../../runtime/processes/resolver.ts"
import { BEGUN_CHANNEL, claimKeyOf, wakeDeliveries } from "../../runtime/temporal/commands.ts"
import { Attempts, RESOLVER_AWAY, type Started, type StepError } from "./Attempts.ts"
import { IN_FLIGHT } from "./attemptOutcome.ts"
import { WorkerSlots } from "./Slots.ts"

/** How long a step waits for slots and for outcomes, in ms. */
export const PATIENCE_MS = 1_000

/** How long it waits at least for the outcome of an attempt that found its slot late, in ms. */
const LEAST_MS = 50
/** When a step that failed before anything was sent is repeated by the delivery's own workflow, in ms. */
const FAILED_MS = 500,
  AWAY_MS = 1_000

export class FirstAttempts extends Effect.Service<FirstAttempts>()("custody/FirstAttempts", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const attempts = yield* Attempts
    const slots = yield* WorkerSlots

    return {
      /** Makes the attempts. Fails if Postgres is unavailable; it is repeated then. */
      run: ({ deliveries, waitsMs }: FirstAttemptsInput) =>
        Effect.gen(function* () {
          const until = performance.now() + PATIENCE_MS
          const [only, ...others] = deliveries
          const claimKey = claimKeyOf(only?.deliveryId ?? "")
          // One that is alone removes the claim's row with the statement that begins its attempt.
          const isAlone = others.length === 0
          const removeClaim = sql`DELETE FROM commands WHERE key = ${claimKey}`
          const allBegun = Deferred.unsafeMake<void>(FiberId.none)
          let isTaken = false
          /** Members that have not begun their request and are not queued. */
          const unbegun = new Set(deliveries)
          const begun = (member: Member) => {
            if (unbegun.delete(member) && unbegun.size === 0) Deferred.unsafeDone(allBegun, Effect.void)
          }
          /** Members that neither have begun, nor wait for a slot, nor are done. */
          const unreached = new Set(deliveries)
          const reached = (member: Member) => {
            if (unreached.delete(member) && unreached.size === 0 && unbegun.size > 0)
              Effect.runFork(Effect.ignore(sql`SELECT pg_notify(${BEGUN_CHANNEL}, ${claimKey})`))
          }
          /** Waits for an attempt until the time is over; it then goes on alone. */
          const outcomeOf = ({ detach, fiber }: Started) =>
            Effect.async<AttemptOutcome, StepError>((resume) => {
              const late = () => {
                detach()
                resume(Effect.succeed(IN_FLIGHT))
              }
              const timer = setTimeout(late, Math.max(LEAST_MS, until - performance.now()))
              fiber.addObserver((exit) => {
                clearTimeout(timer)
                resume(exit)
              })
              return Effect.sync(() => {
                clearTimeout(timer)
                detach()
              })
            })

          const first = (member: Member): Effect.Effect<AttemptOutcome, SqlError.SqlError> =>
            Effect.gen(function* () {
              // Another process may take it from the queue of later attempts.
              if (resolverIsAway()) return { next: "later", waitMs: AWAY_MS, because: RESOLVER_AWAY } satisfies AttemptOutcome
              const release = yield* slots.take(member, until, () => reached(member))
              if (release === undefined) {
                const outcome = yield* attempts.enqueue(member)
                begun(member)
                return outcome
              }
              const asked = { ...member, waitsMs, after: 0, via: "first" as const, ...(isAlone ? { claimKey } : {}) }
              const started = yield* attempts.start(asked, release, () => {
                begun(member)
                reached(member)
              })
              if (started === undefined) return IN_FLIGHT
              isTaken = isAlone
              return yield* outcomeOf(started)
            }).pipe(
              Effect.catchTag("SecretUnreadable", ({ message }) =>
                Effect.succeed<AttemptOutcome>({ next: "later", waitMs: FAILED_MS, because: message })
              ),
              Effect.ensuring(Effect.sync(() => reached(member)))
            )

          const removing = isAlone ? undefined : yield* Effect.fork(Effect.zipRight(Deferred.await(allBegun), removeClaim))
          const outcomes = yield* Effect.forEach(
            deliveries,
            (member) => Effect.map(first(member), (outcome) => [member, outcome] as const),
            { concurrency: "unbounded" }
          )
          if (removing !== undefined && unbegun.size === 0) yield* Fiber.join(removing)
          else if (!isTaken) yield* removeClaim
          // A delivery that is alone goes on in this workflow.
          const goOn = outcomes.flatMap(([member, { next }]) =>
            next === "retry" || next === "later" || next === "in flight" ? [member] : []
          )
          if (!isAlone && goOn.length > 0) yield* wakeDeliveries(sql, goOn)
          return Object.fromEntries(outcomes.map(([{ deliveryId }, outcome]) => [deliveryId, outcome]))
        })
    }
  })
}) {
  static readonly layer = this.Default
}
