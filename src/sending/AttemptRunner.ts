/**
 * Runs one step of a delivery for its workflow: at most one request, and what comes next. The order makes it safe to be
 * killed at any point: get admission, read the row, write the attempt, send, write the outcome.
 *
 * A step continues even if its activity ends; a repeated activity joins it. Its outcome is written however long Postgres is
 * unavailable, so only a dead process can lose one. The next step then finds the attempt open, closes it as interrupted and
 * sends again under the next number. Reliability, attempt and dispatch order. Decisions D-20 to D-23.
 */
import type { SqlError } from "@effect/sql"
import { Cause, Data, Effect, Layer, Metric, MetricBoundaries } from "effect"
import type { AttemptInput, AttemptOutcome } from "../../workflows/contract.ts"
import { MasterKey } from "../crypto/MasterKey.ts"
import { isUnavailable } from "../database/unavailable.ts"
import { waitAfter, waitAfterInterruption, waitAfterProxyError } from "../deliveries/retrySchedule.ts"
import { Settings } from "../settings/Settings.ts"
import { TemporalConnection } from "../temporal/Connection.ts"
import * as Secret from "../webhooks/signingSecret.ts"
import type { AttemptStart } from "./AttemptStart.ts"
import { AttemptsRepo, INTERRUPTIONS, QUARANTINE } from "./AttemptsRepo.ts"
import { EndpointLimiter } from "./admission/EndpointLimiter.ts"
import { EndpointPermits } from "./admission/EndpointPermits.ts"
import { FailureRecorder } from "./FailureRecorder.ts"
import { makeJoined } from "./joined.ts"
import { isLocalOutage, mayAttempt, outageMs } from "./networkFailures.ts"
import { recordOutcome, whenBack } from "./recordOutcome.ts"
import { WebhookClient } from "./request/WebhookClient.ts"

const attemptCount = Metric.counter("custody_delivery_attempts_total", { description: "Attempts by result" })
const attemptSeconds = Metric.histogram(
  "custody_delivery_attempt_seconds",
  MetricBoundaries.fromIterable([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]),
  "Time until the endpoint's response"
)
const quarantined = Metric.counter("custody_deliveries_quarantined_total", {
  description: "Attempts that left a delivery in quarantine because its worker crashed in 20 or more attempts in a row",
  incremental: true
})

/** A step: when its data was read, and whether it needs a new connection. */
interface Step {
  readonly input: AttemptInput
  readonly readAt: number
  readonly fresh: boolean
}

/** The result of a step, and the endpoint's latency if the step measured it. */
interface Done {
  readonly latencyMs: number | undefined
  readonly outcome: AttemptOutcome
}

/** No secret of the webhook can be decrypted: MASTER_KEY is not the key that encrypted them. Nothing is sent unsigned. */
class SecretUnreadable extends Data.TaggedError("SecretUnreadable")<{ readonly message: string }> {}
type StepError = SqlError.SqlError | SecretUnreadable

/** Wait before a step checks again, in ms; and the same for a workflow from a version without holds. */
const AGAIN_MS = 250,
  UNAWARE_MS = 300_000
/** Longest age of the data that a request is based on, in ms; older data is checked again before the request is sent. */
const FRESH_MS = 500
/** How long steps in flight may take to write their outcomes on shutdown, after the workers have waited for them. */
const LAST = "2 seconds"

export class AttemptRunner extends Effect.Service<AttemptRunner>()("custody/AttemptRunner", {
  scoped: Effect.gen(function* () {
    const attempts = yield* AttemptsRepo
    const failures = yield* FailureRecorder
    const webhookClient = yield* WebhookClient
    const master = yield* MasterKey
    const { linkTo } = yield* TemporalConnection
    const { webhookHold } = yield* Settings
    const limiter = new EndpointLimiter(yield* EndpointPermits)
    /** Steps in flight in this process: a repeated step joins the first. */
    const steps = yield* makeJoined<AttemptOutcome, StepError>()
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(steps.ended, LAST)))

    const ended = (status: string, notices: ReadonlyArray<string> = []): AttemptOutcome => ({
      next: "ended",
      notices,
      status: status === "DELIVERED" || status === "FAILED" ? status : "CANCELED"
    })

    const labeled = ({ eventId, id, webhookId }: AttemptStart) =>
      Effect.annotateLogs({ deliveryId: id, webhookId, eventId, workflow: linkTo(id) })
    const warn = (message: string, begun: AttemptStart) => labeled(begun)(Effect.logWarning(message))

    const failed = (begun: AttemptStart, number: number, result: string, notices: ReadonlyArray<string>) =>
      Effect.as(warn(`a delivery failed permanently after ${number} attempts: ${result}`, begun), {
        next: "failed",
        number,
        result,
        notices
      } satisfies AttemptOutcome)

    /**
     * Whether the request may be sent: as read when the attempt began, or checked again if that was a while ago. A check
     * that itself took long is repeated only once; otherwise a slow Postgres would block every request.
     */
    const wanted = (deliveryId: string, held: boolean, readAt: number, times = 2): Effect.Effect<boolean> =>
      Effect.suspend(() => {
        if (times === 0 || performance.now() - readAt < FRESH_MS) return Effect.succeed(true)
        const askedAt = performance.now()
        return Effect.matchEffect(attempts.wanted(deliveryId, held), {
          onFailure: () => Effect.succeed(false),
          onSuccess: (is) => (is ? wanted(deliveryId, held, askedAt, times - 1) : Effect.succeed(false))
        })
      })

    const waits = (status: string) => status === "RETRYING" || status === "HELD"

    /** Sends and records; the attempt row exists already. `undefined` if the next attempt follows immediately. */
    const request = Effect.fnUntraced(function* (begun: AttemptStart, number: number, payload: string, { fresh, input, readAt }: Step) {
      const secrets = Secret.openAll(master, begun.webhookId, begun.secrets)
      if (secrets.length === 0) {
        yield* whenBack(attempts.withdraw(begun.id, number))
        return yield* new SecretUnreadable({ message: `no secret of ${begun.webhookId} can be decrypted with MASTER_KEY` })
      }
      const answer = yield* webhookClient.send({
        webhookId: begun.webhookId,
        url: begun.url,
        eventId: begun.eventId,
        kind: begun.kind,
        deliveryId: begun.id,
        sequence: begun.sequence,
        attempt: number,
        body: payload,
        secrets,
        wanted: wanted(begun.id, input.held !== undefined, readAt),
        fresh
      })
      // failpoint: answered
      Metric.tagged(attemptCount, "result", answer.result).unsafeUpdate(1, [])
      attemptSeconds.unsafeUpdate(answer.latencyMs / 1_000, [])
      if (yield* isLocalOutage(begun.webhookId, answer)) {
        yield* whenBack(attempts.withdraw(begun.id, number))
        return { latencyMs: undefined, outcome: { next: "busy", waitMs: outageMs() } satisfies AttemptOutcome }
      }
      const recorded = {
        deliveryId: begun.id,
        webhookId: begun.webhookId,
        number,
        held: input.held === undefined ? undefined : { probe: input.held === "probe", wake: begun.started }
      }
      const { latencyMs, result } = answer
      if (result === "2xx") {
        yield* recordOutcome(answer, (answer) => attempts.succeed({ ...recorded, answer }))
        return { latencyMs, outcome: { next: "delivered", number, result } satisfies AttemptOutcome }
      }
      if (answer.stale) {
        const status = yield* recordOutcome(answer, (answer) => attempts.recordUncounted({ ...recorded, answer }, 0))
        return { latencyMs: undefined, outcome: waits(status) ? ("again" as const) : ended(status) }
      }
      if (answer.result === "proxy_error") {
        const waitMs = waitAfterProxyError(input.jitter)
        const status = yield* recordOutcome(answer, (answer) => attempts.recordUncounted({ ...recorded, answer }, waitMs))
        return {
          latencyMs: undefined,
          outcome: waits(status) ? ({ next: "wait", number, result, waitMs, notices: [] } satisfies AttemptOutcome) : ended(status)
        }
      }
      const waitMs = waitAfter(begun.used + 1, answer, input.waitsMs, input.jitter)
      const { disabled, notices, status } = yield* recordOutcome(answer, (answer) => failures.record({ ...recorded, answer }, waitMs))
      if (disabled) yield* warn("a webhook was disabled because its endpoint keeps failing or returned 410", begun)
      const outcome: AttemptOutcome =
        status === "RETRYING" && waitMs !== undefined
          ? { next: "wait", number, result, waitMs, notices }
          : status === "FAILED"
            ? yield* failed(begun, number, result, notices)
            : status === "HELD"
              ? { next: "held", number, notices }
              : ended(status, notices)
      return { latencyMs, outcome }
    })

    /** The outcome for a held delivery: a workflow from before holds existed checks again at intervals. */
    const heldOf = (begun: AttemptStart, { holds }: AttemptInput): AttemptOutcome =>
      holds === true ? { next: "held", number: begun.last, notices: [] } : { next: "busy", waitMs: UNAWARE_MS }

    /** The outcome for a delivery whose last attempts were interrupted repeatedly. */
    const afterInterruptions = Effect.fnUntraced(function* (begun: AttemptStart, { jitter, waitsMs }: AttemptInput) {
      const inQuarantine = begun.interruptions >= QUARANTINE
      const waitMs = begun.newlyInterrupted ? waitAfterInterruption(begun.used, inQuarantine, waitsMs, jitter) : AGAIN_MS
      if (begun.newlyInterrupted) yield* attempts.postpone(begun.id, waitMs)
      if (begun.newlyInterrupted && inQuarantine) {
        quarantined.unsafeUpdate(1, [])
        const times = `a delivery's worker crashed ${begun.interruptions} times in a row`
        yield* labeled(begun)(Effect.logError(`${times}: the delivery is in quarantine and retried every 15 minutes`))
      }
      return { next: "wait", number: begun.last, result: "interrupted", waitMs, notices: [], alone: inQuarantine } satisfies AttemptOutcome
    })

    /** The next action for a delivery after admission. */
    const proceed = Effect.fnUntraced(function* (begun: AttemptStart | null, step: Step) {
      const { input } = step
      const without = (outcome: AttemptOutcome) => ({ latencyMs: undefined, outcome })
      if (begun === null) return without(ended("CANCELED"))
      if (begun.status !== "PENDING" && begun.status !== "RETRYING" && begun.status !== "HELD") return without(ended(begun.status))
      if (begun.cancelAs !== null) return without(ended(yield* attempts.cancel(begun.id, begun.cancelAs)))
      if (input.held === undefined ? begun.status === "HELD" : begun.number === null && begun.status !== "HELD")
        return without(heldOf(begun, input))
      if (begun.holding && input.held === undefined) {
        const status = yield* attempts.hold(begun.id, begun.webhookId)
        return without(status === "HELD" ? heldOf(begun, input) : { next: "busy", waitMs: AGAIN_MS })
      }
      if (begun.dueInMs !== null) {
        const inQuarantine = begun.interruptions >= QUARANTINE
        return without({
          next: "wait",
          number: begun.last,
          result: begun.lastResult ?? "interrupted",
          waitMs: begun.dueInMs,
          notices: [],
          alone: inQuarantine
        })
      }
      if (begun.number === null) {
        if (begun.used >= input.waitsMs.length) {
          const notices = yield* failures.exhaust(begun.id, begun.webhookId)
          return without(yield* failed(begun, begun.last, begun.lastResult ?? "interrupted", notices))
        }
        if (begun.interruptions >= INTERRUPTIONS) return without(yield* afterInterruptions(begun, input))
        return without({ next: "busy", waitMs: AGAIN_MS })
      }
      if (begun.payload === null) {
        yield* attempts.withdraw(begun.id, begun.number)
        return without(ended(yield* attempts.cancel(begun.id, "MANUAL")))
      }
      const { number } = begun
      return yield* Effect.catchTag(request(begun, number, begun.payload, step), "Withdrawn", () =>
        // The next step reads the delivery's new state.
        Effect.as(whenBack(attempts.withdraw(begun.id, number)), without({ next: "busy", waitMs: AGAIN_MS }))
      )
    })

    /** Begins and makes an attempt, and the one that follows immediately if a kept connection was closed. */
    const attempt = (input: AttemptInput, fresh: boolean): Effect.Effect<Done, StepError> =>
      Effect.gen(function* () {
        const readAt = performance.now()
        const begun = yield* attempts.begin({
          id: input.deliveryId,
          limit: input.waitsMs.length,
          after: input.after,
          inQuarantine: input.alone === true,
          held: input.held !== undefined
        })
        // failpoint: begun
        const { latencyMs, outcome } = yield* proceed(begun, { input, readAt, fresh })
        // failpoint: recorded
        return outcome === "again" ? yield* attempt({ ...input, after: begun?.number ?? input.after }, true) : { latencyMs, outcome }
      })

    /** The outcome for a delivery that was not admitted. At an endpoint that is slow but works it is held until its turn. */
    const notAdmitted = Effect.fnUntraced(function* ({ alone, deliveryId, held, holds, webhookId }: AttemptInput, waitMs: number) {
      const may = webhookHold === "auto" && holds === true && held === undefined && alone !== true && limiter.isSlow(webhookId)
      const isHeld = may && (yield* attempts.holdForTurn(deliveryId, webhookId)) === "HELD"
      return (isHeld ? { next: "held", number: 0, notices: [] } : { next: "busy", waitMs }) satisfies AttemptOutcome
    })

    const take = Effect.fnUntraced(function* (input: AttemptInput) {
      if (input.cancel) return ended(yield* attempts.cancel(input.deliveryId, "MANUAL"))
      if (!mayAttempt()) return { next: "busy", waitMs: outageMs() } satisfies AttemptOutcome
      const admission = yield* limiter.admit({ ...input, first: input.after === 0 })
      if (admission.go === "elsewhere") return { next: "elsewhere" } satisfies AttemptOutcome
      if (admission.go === "later") return yield* notAdmitted(input, admission.waitMs)
      let latencyMs: number | undefined
      return yield* Effect.gen(function* () {
        const done = yield* attempt(input, false)
        latencyMs = done.latencyMs
        return done.outcome
      }).pipe(Effect.ensuring(Effect.sync(() => admission.release(latencyMs))))
    })

    return {
      /** Runs the step. Fails if Postgres is unavailable before anything was sent, or if nothing can be signed. */
      step: (input: AttemptInput): Effect.Effect<AttemptOutcome, StepError> =>
        steps.join(
          input.deliveryId,
          Effect.tapErrorCause(take(input), (cause) =>
            // Readiness reports an unavailable Postgres; any other failure would go unnoticed, as the step is repeated.
            isUnavailable(Cause.squash(cause))
              ? Effect.logDebug("a delivery step is waiting for Postgres", cause)
              : Effect.logError("a delivery step failed and will be retried", cause).pipe(
                  Effect.annotateLogs({ deliveryId: input.deliveryId, workflow: linkTo(input.deliveryId) })
                )
          )
        )
    }
  })
}) {
  static readonly layer = Layer.provide(this.Default, EndpointPermits.layer)
}
