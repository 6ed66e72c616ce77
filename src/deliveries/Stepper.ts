/**
 * One step of a delivery, as the workflow asks for it: at most one request, and what comes next. The order is what
 * makes it safe to be killed at any point: read the row, take room, write the attempt, send, write the outcome.
 * Reliability, attempt and dispatch order. Decisions D-20 to D-23.
 */
import { Deferred, Effect, type Exit, FiberId, Metric, MetricBoundaries, Schedule } from "effect"
import type { AttemptInput, AttemptOutcome } from "../../workflows/contract.ts"
import { MasterKey } from "../http/MasterKey.ts"
import * as Secret from "../webhooks/Secret.ts"
import { Attempts, type Begun } from "./Attempts.ts"
import { Failures } from "./Failures.ts"
import { Permits } from "./Permits.ts"
import { Sender } from "./Sender.ts"
import { waitAfter } from "./schedule.ts"

const attemptCount = Metric.counter("custody_delivery_attempts_total", { description: "Attempts by result" })
const attemptSeconds = Metric.histogram(
  "custody_delivery_attempt_seconds",
  MetricBoundaries.fromIterable([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]),
  "Time until the endpoint's answer"
)

/** How long the outcome of a request is written again and again while Postgres is away, before the attempt is given up as interrupted. */
const persistently = Effect.retry({ schedule: Schedule.spaced("500 millis").pipe(Schedule.upTo("90 seconds")) })

/** A short pause after another process took the same step. */
const CONFLICT_MS = 1_000

export class Stepper extends Effect.Service<Stepper>()("custody/Stepper", {
  effect: Effect.gen(function* () {
    const attempts = yield* Attempts
    const failures = yield* Failures
    const sender = yield* Sender
    const master = yield* MasterKey
    const permits = new Permits()
    /** Steps under way in this process: one that is asked for again joins the first. */
    const underWay = new Map<string, Deferred.Deferred<AttemptOutcome, unknown>>()

    const ended = (status: string, notices: ReadonlyArray<string> = []): AttemptOutcome => ({
      next: "ended",
      notices,
      status: status === "DELIVERED" || status === "FAILED" ? status : "CANCELED"
    })

    const cancel = Effect.fnUntraced(function* (deliveryId: string, reason: "WEBHOOK_DISABLED" | "WEBHOOK_DELETED" | "MANUAL") {
      yield* attempts.cancel(deliveryId, reason)
      return ended((yield* attempts.status(deliveryId)) ?? "CANCELED")
    })

    const opened = (begun: Begun) =>
      begun.secrets.flatMap((ciphertext) => {
        const secret = Secret.open(master, begun.webhookId, ciphertext)
        return secret === undefined ? [] : [secret]
      })

    /** Sends and records; the attempt row is there already. */
    const request = Effect.fnUntraced(function* (begun: Begun, number: number, payload: string, { jitter, waitsMs }: AttemptInput) {
      const answer = yield* sender.send({
        url: begun.url,
        eventId: begun.eventId,
        kind: begun.kind,
        deliveryId: begun.id,
        attempt: number,
        body: payload,
        secrets: opened(begun)
      })
      Metric.tagged(attemptCount, "result", answer.result).unsafeUpdate(1, [])
      attemptSeconds.unsafeUpdate(answer.latencyMs / 1_000, [])
      const recorded = { deliveryId: begun.id, webhookId: begun.webhookId, number, answer }
      if (answer.result === "2xx") {
        yield* persistently(attempts.succeed(recorded))
        return { latencyMs: answer.latencyMs, outcome: { next: "delivered", number, result: "2xx" } as AttemptOutcome }
      }
      const waitMs = waitAfter(number, answer, waitsMs, jitter)
      const { notices, status } = yield* persistently(failures.record(recorded, waitMs))
      const outcome: AttemptOutcome =
        status === "RETRYING" && waitMs !== undefined
          ? { next: "wait", number, result: answer.result, waitMs, notices }
          : status === "FAILED"
            ? { next: "failed", number, result: answer.result, notices }
            : ended(status, notices)
      return { latencyMs: answer.latencyMs, outcome }
    })

    /** What is to be done with a delivery that was read, when room is taken. */
    const proceed = Effect.fnUntraced(function* (begun: Begun | null, input: AttemptInput) {
      const without = (outcome: AttemptOutcome) => ({ latencyMs: undefined, outcome })
      if (begun === null) return without(ended("CANCELED"))
      if (begun.status !== "PENDING" && begun.status !== "RETRYING") return without(ended(begun.status))
      if (!begun.active) return without(yield* cancel(begun.id, begun.deleted ? "WEBHOOK_DELETED" : "WEBHOOK_DISABLED"))
      if (begun.number === null) {
        if (begun.last < input.waitsMs.length) return without({ next: "busy", waitMs: CONFLICT_MS })
        yield* failures.exhaust(begun.id, begun.webhookId)
        return without({ next: "failed", number: begun.last, result: "interrupted", notices: [] })
      }
      if (begun.payload === null) return without(yield* cancel(begun.id, "MANUAL"))
      return yield* request(begun, begun.number, begun.payload, input)
    })

    const step = Effect.fnUntraced(function* (input: AttemptInput) {
      if (input.cancel) return yield* cancel(input.deliveryId, "MANUAL")
      const room = yield* permits.ask(input.webhookId, input.local)
      if (room.go === "elsewhere") return { next: "elsewhere" } as AttemptOutcome
      if (room.go === "later") return { next: "busy", waitMs: room.waitMs } as AttemptOutcome
      let latencyMs: number | undefined
      return yield* Effect.gen(function* () {
        const done = yield* proceed(yield* attempts.begin(input.deliveryId, input.waitsMs.length), input)
        latencyMs = done.latencyMs
        return done.outcome
      }).pipe(Effect.ensuring(Effect.sync(() => room.release(latencyMs))))
    })

    return {
      /** Takes the step. Fails only when Postgres cannot be reached; then nothing was sent, or its outcome is still open. */
      step: (input: AttemptInput): Effect.Effect<AttemptOutcome, unknown> =>
        Effect.suspend(() => {
          const first = underWay.get(input.deliveryId)
          if (first !== undefined) return Deferred.await(first)
          const deferred = Deferred.unsafeMake<AttemptOutcome, unknown>(FiberId.none)
          underWay.set(input.deliveryId, deferred)
          return Effect.onExit(step(input), (exit: Exit.Exit<AttemptOutcome, unknown>) =>
            Effect.sync(() => {
              underWay.delete(input.deliveryId)
              Deferred.unsafeDone(deferred, exit)
            })
          )
        })
    }
  })
}) {
  static readonly layer = this.Default
}
