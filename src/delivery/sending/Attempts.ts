/**
 * Makes one attempt of a delivery: begin, request, record. The order makes it safe to be killed at any point: the attempt's
 * row is written before its request is sent, and its outcome after that. A claim's group, a delivery's own workflow and a
 * webhook's drain all use it.
 *
 * An attempt goes on even if the step that began it has ended; its outcome is written however long Postgres is unavailable,
 * so only a dead process can lose one. Another step of the delivery finds it in flight meanwhile. Reliability, attempt and
 * dispatch order. Decisions D-20 to D-23.
 */
import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Cause, Data, Effect, type Fiber, FiberSet, Metric, MetricBoundaries, Schedule } from "effect"
import type { AttemptOutcome, Member } from "../../../workflows/contract.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { batched } from "../../runtime/database/Batch.ts"
import { isUnavailable } from "../../runtime/database/unavailable.ts"
import { failpoint } from "../../runtime/failpoint.ts"
import { TemporalConnection } from "../../runtime/temporal/Connection.ts"
import { wakeDeliveries } from "../../runtime/temporal/commands.ts"
import { waitAfterInterruption } from "../deliveries/retrySchedule.ts"
import * as gateway from "../gateway/gatewayCredentials.ts"
import { enqueue, type Joining } from "../webhooks/queue.ts"
import * as Secret from "../webhooks/signingSecret.ts"
import { AttemptsRepo, type Recorded } from "./AttemptsRepo.ts"
import { AGAIN_MS, ended, IN_FLIGHT, outcomeOf } from "./attemptOutcome.ts"
import { type AttemptStart, beforeAttempt, INTERRUPTIONS } from "./beforeAttempt.ts"
import { isOfDrain, type Via } from "./decide.ts"
import { FailureRecorder } from "./FailureRecorder.ts"
import { recordOutcome, whenBack } from "./recordOutcome.ts"
import { WebhookClient } from "./request/WebhookClient.ts"
import { WorkerProcess } from "./WorkerProcess.ts"

const attemptCount = Metric.counter("custody_delivery_attempts_total", { description: "Attempts by result" })
const attemptSeconds = Metric.histogram(
  "custody_delivery_attempt_seconds",
  MetricBoundaries.fromIterable([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]),
  "Time until the endpoint's response"
)

/** When a process that is not registered checks again, in ms. */
const UNREGISTERED_MS = 1_000
/** When to check again while the resolver is away, in ms: the worker takes no such step before the resolver answers. */
const RESOLVER_MS = 5_000
/** Why no attempt is made while the resolver is away. */
export const RESOLVER_AWAY = "the service's own DNS resolver does not respond"
/** Longest age of the data that a request is based on, in ms; older data is checked again before the request is sent. */
const FRESH_MS = 500
/** How often attempts are looked for that count as in flight and are not. */
const ABANDON_EVERY = "15 seconds"
/** How long attempts in flight may take to write their outcomes on shutdown, after the workers have waited for them. */
const LAST = "2 seconds"

/** An attempt to make. */
export interface Asked extends Member {
  readonly waitsMs: ReadonlyArray<number>
  readonly after: number
  readonly via: Via
  /** The key of the claim, if this is its only delivery. */
  readonly claimKey?: string
}

/** An attempt in flight in this process. */
interface Flight {
  /** Whether nobody waits for the outcome any more, so that the delivery's workflow must hear of it, and whether it will. */
  detached: boolean
  woken: boolean
  /** Called when the endpoint has responded, and when the request may be in flight. Either may be called again later. */
  readonly release: () => void
  readonly begun: () => void
}

/** An attempt that has been started: its fiber, and what to call when nobody waits for its outcome any more. */
export interface Started {
  readonly fiber: Fiber.RuntimeFiber<AttemptOutcome, StepError>
  /** The delivery's own workflow then hears of the outcome. */
  readonly detach: () => void
}

/** No secret of the webhook, or not its headers and OAuth secret, can be decrypted: MASTER_KEY is not the key that encrypted them. Nothing is sent without them. */
class SecretUnreadable extends Data.TaggedError("SecretUnreadable")<{ readonly message: string }> {}
/** The resolver of this process is away: the attempt counts for nothing. */
class ResolverAway extends Data.TaggedError("ResolverAway") {}
/** Why a step failed; it is repeated. */
export type StepError = SqlError.SqlError | SecretUnreadable

export class Attempts extends Effect.Service<Attempts>()("custody/Attempts", {
  scoped: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const attempts = yield* AttemptsRepo
    const failures = yield* FailureRecorder
    const webhookClient = yield* WebhookClient
    const master = yield* MasterKey
    const { id: me } = yield* WorkerProcess
    const { linkTo } = yield* TemporalConnection
    const flights = new Map<string, Flight>()
    const fibers = yield* FiberSet.make<AttemptOutcome, StepError>()
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(FiberSet.awaitEmpty(fibers), LAST)))
    yield* Effect.forkScoped(
      Effect.schedule(Effect.ignore(Effect.suspend(() => attempts.abandonAllBut([...flights.keys()]))), Schedule.spaced(ABANDON_EVERY))
    )
    /** Moves a delivery into its webhook's queue; those that ask together share a statement. */
    const enqueueOne = yield* batched(
      (items: ReadonlyArray<Joining>) => Effect.map(enqueue(sql, items), (moved) => items.map(({ deliveryId }) => moved.has(deliveryId))),
      { size: 200, parallel: 1 }
    )

    const labeled = ({ eventId, id, webhookId }: AttemptStart) =>
      Effect.annotateLogs({ deliveryId: id, webhookId, eventId, workflow: linkTo(id) })
    const warn = (message: string, begun: AttemptStart) => labeled(begun)(Effect.logWarning(message))

    /**
     * Whether the request may be sent: as read when the attempt began, or checked again if that was a while ago. A check
     * that itself took long is repeated only once; otherwise a slow Postgres would block every request.
     */
    const wanted = (begun: AttemptStart, via: Via, readAt: number, times = 2): Effect.Effect<boolean> =>
      Effect.suspend(() => {
        if (times === 0 || performance.now() - readAt < FRESH_MS) return Effect.succeed(true)
        const askedAt = performance.now()
        return Effect.matchEffect(attempts.wanted(begun, via), {
          onFailure: () => Effect.succeed(false),
          onSuccess: (is) => (is ? wanted(begun, via, askedAt, times - 1) : Effect.succeed(false))
        })
      })

    /** Sends and records; the attempt's row exists already. Undefined if the next attempt follows at once. */
    const request = Effect.fnUntraced(function* (
      begun: AttemptStart,
      { number, payload }: { readonly number: number; readonly payload: string },
      { via, waitsMs }: Asked,
      flight: Flight,
      readAt: number,
      fresh: boolean
    ) {
      const secrets = Secret.openAll(master, begun.webhookId, begun.secrets)
      if (secrets.length === 0)
        return yield* new SecretUnreadable({ message: `no secret of ${begun.webhookId} can be decrypted with MASTER_KEY` })
      const credentials = gateway.open(master, begun.webhookId, begun.gatewayCredentials)
      if (credentials === undefined)
        return yield* new SecretUnreadable({
          message: `the headers and OAuth secret of ${begun.webhookId} cannot be decrypted with MASTER_KEY`
        })
      const sent = yield* webhookClient.send({
        webhookId: begun.webhookId,
        url: begun.url,
        eventId: begun.eventId,
        kind: begun.kind,
        deliveryId: begun.id,
        sequence: begun.sequence,
        attempt: number,
        body: payload,
        secrets,
        credentials,
        wanted: wanted(begun, via, readAt),
        fresh
      })
      // Only once for a step.
      const answer = fresh ? { ...sent, stale: false } : sent
      // The attempt that follows at once keeps the slot.
      if (!answer.stale) flight.release()
      failpoint("answered")
      if (answer.resolverAway === true) return yield* new ResolverAway()
      Metric.tagged(attemptCount, "result", answer.result).unsafeUpdate(1, [])
      attemptSeconds.unsafeUpdate(answer.latencyMs / 1_000, [])
      const recorded = (): Omit<Recorded, "answer"> => {
        flight.woken = flight.detached
        return { deliveryId: begun.id, webhookId: begun.webhookId, number, via, wakes: flight.woken }
      }
      const { result } = answer
      if (result === "2xx") {
        yield* recordOutcome(answer, (answer) => attempts.succeed({ ...recorded(), answer }))
        return { next: "delivered", number, result } satisfies AttemptOutcome
      }
      const { decision, status } = yield* recordOutcome(answer, (answer) => failures.record({ ...recorded(), answer }, waitsMs))
      const outcome = outcomeOf(decision, status, { ...answer, number, begun })
      if (decision.disables !== null) yield* warn("a webhook was disabled because its endpoint keeps failing or returned 410", begun)
      if (outcome?.next === "failed") yield* warn(`a delivery failed permanently after ${number} attempts: ${result}`, begun)
      return outcome
    })

    /** Begins and makes an attempt, and the one that follows at once if a kept connection was closed. */
    const make = (asked: Asked, flight: Flight, fresh = false): Effect.Effect<AttemptOutcome, StepError> =>
      Effect.gen(function* () {
        const { after, claimKey = null, deliveryId, via, waitsMs, webhookId } = asked
        const readAt = performance.now()
        const begun = yield* attempts
          .begin({ id: deliveryId, after, via, claimKey })
          // It may have begun although the answer was lost, and would count as in flight as long as this process runs.
          .pipe(Effect.tapError(() => whenBack(attempts.abandon(deliveryId))))
        flight.begun()
        failpoint("begun")
        const before = beforeAttempt(begun, via)
        switch (before._tag) {
          case "Go": {
            if (begun === null) return ended("CANCELED")
            const withdraw = (waitMs: number, because: string) =>
              Effect.as(whenBack(attempts.withdraw(deliveryId, before.number)), { next: "later", waitMs, because } satisfies AttemptOutcome)
            const outcome = yield* request(begun, before, asked, flight, readAt, fresh).pipe(
              // The next step reads the delivery's new state.
              Effect.catchTag("Withdrawn", () => withdraw(AGAIN_MS, "its state changed")),
              Effect.catchTag("ResolverAway", () => withdraw(RESOLVER_MS, RESOLVER_AWAY)),
              Effect.tapErrorTag("SecretUnreadable", () => whenBack(attempts.withdraw(deliveryId, before.number)))
            )
            failpoint("recorded")
            return outcome === undefined ? yield* make({ ...asked, after: before.number }, flight, true) : outcome
          }
          case "Ended":
            return ended(before.status)
          case "Cancel":
            if (begun?.number != null) yield* attempts.withdraw(deliveryId, begun.number)
            return ended(yield* attempts.cancel(deliveryId, before.reason, isOfDrain(via)))
          case "Queue":
            if (!before.isThere && !(yield* enqueueOne({ deliveryId, webhookId, isDue: true })))
              return { next: "later", waitMs: AGAIN_MS, because: "its state changed" }
            return { next: "held", number: begun?.last ?? 0, result: begun?.lastResult ?? null, because: before.because }
          case "InFlight":
            // The process has no other attempt of the delivery in flight: the answer to its beginning was lost.
            if (before.by === me) {
              yield* attempts.abandon(deliveryId)
              return { next: "later", waitMs: AGAIN_MS, because: "its last attempt was not recorded" }
            }
            return IN_FLIGHT
          case "NotDue":
            return { next: "retry", number: begun?.last ?? 0, result: begun?.lastResult ?? "interrupted", waitMs: before.waitMs }
          case "Interrupted": {
            const failed = (begun?.used ?? 0) + (begun?.interruptions ?? INTERRUPTIONS) - INTERRUPTIONS
            const waitMs = waitAfterInterruption(failed, waitsMs, Math.random())
            yield* attempts.postpone(deliveryId, waitMs, isOfDrain(via))
            return { next: "retry", number: begun?.last ?? 0, result: "interrupted", waitMs }
          }
          case "Later":
            return begun?.registered === false
              ? { next: "later", waitMs: UNREGISTERED_MS, because: "the worker is not registered" }
              : { next: "later", waitMs: AGAIN_MS, because: "its state changed" }
        }
      })

    return {
      /**
       * Begins an attempt, which goes on whatever becomes of the caller; undefined if one of the delivery is in flight in this
       * process. `release` is called when the endpoint has responded for good, and `begun` when the request may be in flight. The outcome
       * fails if Postgres is unavailable before anything was sent, or if nothing can be signed.
       */
      start: (asked: Asked, release: () => void, begun: () => void = () => {}) =>
        Effect.suspend((): Effect.Effect<Started | undefined> => {
          const { deliveryId } = asked
          if (flights.has(deliveryId)) {
            release()
            begun()
            return Effect.succeed(undefined)
          }
          const flight: Flight = { detached: false, woken: false, release, begun }
          flights.set(deliveryId, flight)
          const run = make(asked, flight).pipe(
            // The outcome was recorded just before nobody waited for it any more.
            Effect.tap(() => (flight.detached && !flight.woken ? whenBack(wakeDeliveries(sql, [asked])) : Effect.void)),
            Effect.tapErrorCause((cause) =>
              // Readiness reports an unavailable Postgres; any other failure would go unnoticed, as the step is repeated.
              isUnavailable(Cause.squash(cause))
                ? Effect.void
                : Effect.logError(`a step of delivery ${deliveryId} failed and will be repeated`, cause)
            ),
            Effect.ensuring(
              Effect.sync(() => {
                flights.delete(deliveryId)
                release()
                begun()
              })
            )
          )
          return Effect.map(FiberSet.run(fibers, run), (fiber) => ({
            fiber,
            detach: () => {
              flight.detached = true
            }
          }))
        }),

      /** Moves a due delivery that found no slot into its webhook's queue. */
      enqueue: (member: Member): Effect.Effect<AttemptOutcome, SqlError.SqlError> =>
        Effect.map(enqueueOne({ ...member, isDue: false }), (moved) =>
          moved
            ? { next: "held", number: 0, result: null, because: "TURN" }
            : { next: "later", waitMs: UNREGISTERED_MS, because: "no slot is free, and it cannot join the queue now" }
        ),

      /** Cancels the delivery if it waits. */
      cancel: (deliveryId: string) => Effect.map(attempts.cancel(deliveryId, "MANUAL", false), ended)
    }
  })
}) {
  static readonly layer = this.Default
}
