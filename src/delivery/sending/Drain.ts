/**
 * Runs a step of a webhook's drain for its workflow: it moves waiting retries into the queue, cancels what is to be
 * canceled, probes an endpoint that is down, or sends queued deliveries in order. While a webhook has a queue nothing else
 * sends to it, and only one step of its drain runs at a time.
 *
 * A step lasts two seconds; attempts that take longer go on without it, and the next one leaves them their slots. When attempts
 * find the endpoint down, the step begins no other, and the next one begins with a single attempt a second or two later, so that
 * a dead endpoint is not sent the whole queue before its hold begins. A step that finds no slot for anything is repeated after
 * 1, 2, 4 … 15 seconds. C-5.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Fiber, Option } from "effect"
import type { AttemptOutcome, DrainInput, DrainOutcome } from "../../../workflows/contract.ts"
import { failpoint } from "../../runtime/failpoint.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { runCancellation } from "../webhooks/cancelWaiting.ts"
import { isWholePart, queueRetries as queueSomeRetries, RANK } from "../webhooks/queue.ts"
import { Attempts, type StepError } from "./Attempts.ts"
import { IN_FLIGHT } from "./attemptOutcome.ts"
import { type Queue, type Queued, QueueRepo } from "./QueueRepo.ts"
import { type Release, WorkerSlots } from "./Slots.ts"

/** How long a step begins further attempts, in ms. */
const STEP_MS = 2_000
/** How long after that a step waits for attempts, in ms: long enough for each to have begun. */
const LINGER_MS = 500
/** Deliveries per query. */
const PAGE = 64
/** Slots in flight that are kept free for events while only deliveries of recoveries are queued. */
const FREE = 2
/** Longest wait after steps that found no working endpoint, and no slot, in ms; and the wait of a probe that found no slot. */
const LONGEST_MS = { down: 2_000, "no slot": 15_000 } as const,
  NO_SLOT_MS = 30_000
/** Wait after a failure of the service's own proxy, in ms. */
const PROXY_MS = 25_000
/** When to check again, in ms. */
const AGAIN_MS = 1_000,
  SOON_MS = 50,
  TAKEN_MS = 400
/** Attempts in a row that found the endpoint down after which a step stops: a few of many may fail at one that works. */
const DOWN_IN_A_ROW = 3
/** Time per canceled delivery with a workflow, in ms: ending a workflow costs about as much as a delivery. */
const CANCEL_MS = 10

/** How an attempt of a drain went. */
type Turn = "done" | "down" | "proxy" | "again"

/** What an outcome says of the endpoint. */
const turnOf = (outcome: AttemptOutcome): Turn => {
  if (outcome.next === "later" || outcome.next === "in flight") return "again"
  if ("result" in outcome && outcome.result === "proxy_error") return "proxy"
  return "down" in outcome ? "down" : "done"
}

export class Drain extends Effect.Service<Drain>()("custody/Drain", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const queues = yield* QueueRepo
    const attempts = yield* Attempts
    const slots = yield* WorkerSlots
    const { webhookMaxInFlight } = yield* Settings

    const ended = (details: string): DrainOutcome => ({ next: "ended", details })
    const wait = (waitMs: number, details: string, failures = 0): DrainOutcome => ({
      next: "wait",
      waitMs: Math.max(0, Math.round(waitMs)),
      failures,
      details
    })
    /** Waits longer the more steps in a row had to. */
    const backOff = (webhookId: string, because: keyof typeof LONGEST_MS, failures: number, details: string) => {
      const waitMs = Math.min(LONGEST_MS[because], 1_000 * 2 ** Math.min(failures, 10))
      return Effect.as(queues.postponeSending(webhookId, waitMs), wait(waitMs, details, failures + 1))
    }

    const attempt = (
      { organizationId, waitsMs, webhookId }: DrainInput,
      { id }: Queued,
      via: "probe" | "drain",
      release: Release
    ): Effect.Effect<AttemptOutcome, StepError> =>
      Effect.flatMap(attempts.start({ deliveryId: id, webhookId, organizationId, waitsMs, after: 0, via }, release), (started) =>
        started === undefined ? Effect.succeed(IN_FLIGHT) : Fiber.join(started.fiber)
      )

    /** Cancels a part of what is to be canceled. */
    const cancel = Effect.fnUntraced(function* (webhookId: string) {
      const { done, started } = yield* runCancellation(sql, webhookId)
      return wait(started * CANCEL_MS + (done ? 0 : 1), "canceling what waited")
    })

    /** Moves waiting retries into the queue. Returns whether all were moved. */
    const queueRetries = Effect.fnUntraced(function* (webhookId: string, until: number) {
      while (performance.now() < until) {
        const [{ moved } = { moved: 0 }] = yield* queueSomeRetries(sql, webhookId)
        failpoint("retries-queued")
        if (isWholePart(moved)) continue
        yield* queues.retriesQueued(webhookId)
        return true
      }
      return false
    })

    const probe = Effect.fnUntraced(function* (input: DrainInput, { probes }: Queue) {
      const { webhookId } = input
      const chosen = yield* queues.nextProbe(webhookId)
      if (chosen === undefined) return yield* finish(webhookId, "the endpoint is down, and nothing is queued")
      const release = slots.takeNow(input)
      if (release === undefined) return yield* Effect.as(queues.postpone(webhookId, NO_SLOT_MS), wait(NO_SLOT_MS, "no slot is free"))
      const outcome = yield* attempt(input, chosen, "probe", release)
      const turn = turnOf(outcome)
      if (turn === "proxy") yield* queues.postpone(webhookId, PROXY_MS)
      const now = yield* queues.begin(webhookId)
      if (now === undefined) return ended("nothing is queued any more")
      const result = "result" in outcome && outcome.result !== null ? outcome.result : outcome.next
      return wait(Math.max(now.dueInMs, turn === "again" ? AGAIN_MS : 0), `probe ${probes + 1}: ${result}`)
    })

    /** Ends an empty queue. What is still there is looked at again, later if it may be in flight. */
    const finish = (webhookId: string, details: string, waitMs = SOON_MS) =>
      Effect.map(queues.end(webhookId), (end) =>
        end === "ended" ? ended("nothing is queued any more") : end === "changed" ? wait(waitMs, details) : ended("a recovery is paused")
      )

    const send = Effect.fnUntraced(function* (input: DrainInput) {
      const { failures, webhookId } = input
      const until = performance.now() + STEP_MS
      let load = yield* queues.load(webhookId)
      const isCareful = () => failures > 0 || load.downFailures >= DOWN_IN_A_ROW
      const room = () => Math.min(webhookMaxInFlight - load.inFlight, isCareful() ? 1 - load.queued : webhookMaxInFlight)
      // Attempts that began before there was a queue, or in an earlier step, end within seconds.
      while (room() <= 0 && performance.now() < until) load = yield* Effect.delay(queues.load(webhookId), TAKEN_MS)
      const careful = isCareful(),
        width = room()
      if (width <= 0) return wait(0, "all slots in flight are taken", failures)
      let buffer: ReadonlyArray<Queued> = []
      let after = { rank: -1, sequence: 0 }
      let isAll = false
      let sent = 0
      let lingering = 0
      let isShort = false
      let downInARow = 0
      let stop: Exclude<Turn, "done"> | undefined
      const one = (yield* Effect.makeSemaphore(1)).withPermits(1)

      /** The next delivery, unless the step is over; the last senders leave their slots free for events. */
      const next = (sender: number) =>
        one(
          Effect.gen(function* () {
            if (stop !== undefined || performance.now() > until) return undefined
            if (buffer.length === 0 && !isAll) {
              buffer = yield* queues.next(webhookId, after, PAGE)
              isAll = buffer.length < PAGE
              const last = buffer.at(-1)
              if (last !== undefined) after = { rank: last.rank, sequence: last.sequence }
              if (buffer[0]?.rank === RANK.recovery) yield* queues.onlyRecoveries(webhookId)
            }
            const [first, ...others] = buffer
            if (first === undefined || (first.rank === RANK.recovery && sender > 0 && sender >= webhookMaxInFlight - FREE)) return undefined
            buffer = others
            return first
          })
        )
      const sender = (index: number): Effect.Effect<void, Effect.Effect.Error<ReturnType<typeof attempt>>> =>
        Effect.gen(function* () {
          for (;;) {
            // Before a delivery, so that those that have a slot go on in order.
            const release = slots.takeNow(input)
            if (release === undefined) {
              isShort = true
              return
            }
            const queued = yield* Effect.onError(next(index), () => Effect.sync(release))
            if (queued === undefined) return release()
            const answered = yield* Effect.timeoutOption(
              attempt(input, queued, "drain", release),
              Math.max(0, until + LINGER_MS - performance.now())
            )
            if (Option.isNone(answered)) {
              lingering++
              return
            }
            const outcome = answered.value
            const turn = turnOf(outcome)
            if (turn === "done") {
              sent++
              downInARow = 0
              continue
            }
            if (turn === "down") downInARow++
            // A step that begins again carefully stops at its first failure, and any step when a hold has begun.
            const enough = careful && sent === 0 ? 1 : DOWN_IN_A_ROW
            if (turn !== "down" || outcome.next === "held" || downInARow >= enough) stop ??= turn
          }
        })
      yield* Effect.forEach(
        // Attempts of earlier steps have taken the first slots.
        Array.from({ length: width }, (_, index) => load.queued + index),
        sender,
        { concurrency: "unbounded", discard: true }
      )

      if (stop === "proxy") return yield* Effect.as(queues.postpone(webhookId, PROXY_MS), wait(PROXY_MS, "the service's proxy fails"))
      if (stop === "down") return yield* backOff(webhookId, stop, failures, `sent ${sent}; the endpoint fails again`)
      if (stop === "again") return wait(AGAIN_MS, `sent ${sent}; an attempt is in flight`)
      if (isShort && sent === 0)
        return slots.of(webhookId) > 0
          ? wait(AGAIN_MS, "no other slot is free")
          : yield* backOff(webhookId, "no slot", failures, "no slot is free")
      if (isAll && buffer.length === 0) return yield* finish(webhookId, `sent ${sent}`, lingering + load.inFlight > 0 ? AGAIN_MS : SOON_MS)
      // Only the slots that are kept free for events are left.
      if (sent + lingering === 0) return wait(AGAIN_MS, "all slots of recoveries are taken")
      return wait(0, `sent ${sent}, at most ${width} in flight`)
    })

    return {
      /** Runs the step. Fails if Postgres is unavailable; it is repeated then. */
      step: (input: DrainInput) =>
        Effect.gen(function* () {
          const { webhookId } = input
          const queue = yield* queues.begin(webhookId)
          if (queue === undefined) return ended("nothing is queued")
          if (queue.canceling || queue.status === "DISABLED") return yield* cancel(webhookId)
          // It is started again when the webhook is resumed.
          if (queue.status === "PAUSED") return ended("the webhook is paused")
          const until = performance.now() + STEP_MS
          if (!queue.retriesQueued && !(yield* queueRetries(webhookId, until)))
            return wait(0, "moving waiting retries into the queue", input.failures)
          if (queue.dueInMs > 0) return wait(queue.dueInMs, queue.down ? "the endpoint is down and is probed" : "waits", input.failures)
          return queue.down ? yield* probe(input, queue) : yield* send(input)
        })
    }
  })
}) {
  static readonly layer = this.Default
}
