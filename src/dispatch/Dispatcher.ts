/**
 * The dispatcher: from a committed event to a running workflow for each matching webhook. It claims events from the
 * outbox (OutboxRepo.ts) and then starts the workflows of their deliveries. If it crashes in between, the sweeper finds
 * them. Several dispatchers may run.
 *
 * Notifications only wake it; it also polls, because a notification can be lost. While Temporal is unavailable, events
 * stay undispatched. Spec: Emission and log. Architecture, What must hold 1, 6.
 */

import type { SqlError } from "@effect/sql"
import { Array as Arr, Effect, Fiber, Schedule } from "effect"
import { type ChannelListener, Notifications } from "../database/Notifications.ts"
import { firstWait } from "../deliveries/retrySchedule.ts"
import { type ToStart, WorkflowStarter } from "../deliveries/WorkflowStarter.ts"
import { OUTBOX_CHANNEL } from "../events/EventLog.ts"
import { Settings } from "../settings/Settings.ts"
import { loggingFailure } from "../telemetry/loggingFailure.ts"
import { TemporalConnection } from "../temporal/Connection.ts"
import { CANCELLATIONS_CHANNEL, SIGNALS_CHANNEL } from "../webhooks/cancelWaiting.ts"
import { HOLDS_CHANNEL } from "../webhooks/holds.ts"
import { Canceler } from "./Canceler.ts"
import { HoldKeeper } from "./HoldKeeper.ts"
import { OutboxRepo } from "./OutboxRepo.ts"
import { RecentRate } from "./RecentRate.ts"
import { RecoveryKeeper } from "./RecoveryKeeper.ts"
import { SignalRelay } from "./SignalRelay.ts"
import { Sweeper } from "./Sweeper.ts"
import { BUSY_PER_SECOND } from "./WaitingOrganizations.ts"

/** Most deliveries of a claim that each get their own workflow, if first attempts share workflows only in a burst. */
const FEW = 16
/** Deliveries per group, and concurrent groups. */
const GROUP = 50,
  GROUPS = 3
/** How long the dispatcher waits for a full group, and for one that is not full before it claims newer events. */
const GROUP_ENDS = "3 seconds",
  SMALL_GROUP_ENDS = "50 millis"
/**
 * While every group runs, organizations that are not busy get workflows of their own, which are not limited otherwise: at
 * most one delivery in this many ms on average.
 */
const SINGLE_MS = 25
/** Concurrent starts. */
const STARTS = 24
/** Deliveries kept in memory to be started when Temporal is back; the sweeper finds the rest. */
const LEFT = 1_000
/** Poll interval without notifications. */
const POLL = "3 seconds"
/** Interval of sweeps, and wait before failed dispatches, signals and cancellations are retried. */
const SWEEP = "30 seconds",
  FIRST_AGAIN = "4 seconds",
  AGAIN = "1 second"

export class Dispatcher extends Effect.Service<Dispatcher>()("custody/Dispatcher", {
  scoped: Effect.gen(function* () {
    const outbox = yield* OutboxRepo
    const notifications = yield* Notifications
    const temporal = yield* TemporalConnection
    const starter = yield* WorkflowStarter
    const sweeper = yield* Sweeper
    const signalRelay = yield* SignalRelay
    const canceler = yield* Canceler
    const holds = yield* HoldKeeper
    const recoveries = yield* RecoveryKeeper
    const scope = yield* Effect.scope
    const { webhookFirstAttempts, webhookRetrySchedule } = yield* Settings
    /** Running groups of first attempts, and how many there are, with those that are to be started. */
    const running = yield* Effect.makeSemaphore(GROUPS)
    let groupCount = 0
    /** Deliveries in about the last second: all, and those of organizations that are not busy. */
    const rate = new RecentRate()
    /** When organizations that are not busy may next pass the others, on the monotonic clock. */
    let passFrom = 0
    /** Deliveries whose start failed because Temporal became unavailable: started as soon as it is back. */
    const left = new Map<string, ToStart>()

    const keep = (delivery: ToStart) =>
      Effect.sync(() => {
        if (left.size < LEFT) left.set(delivery.id, delivery)
      })

    /** Starts the workflows; returns whether all were started. The first failure means that Temporal is unavailable. */
    const startAll = (deliveries: ReadonlyArray<ToStart>) =>
      Effect.gen(function* () {
        let away = false
        const startOne = (delivery: ToStart) =>
          Effect.suspend(() => (away ? keep(delivery) : Effect.asVoid(starter.start(delivery)))).pipe(
            Effect.tap(() => {
              // failpoint: started
              if (!away) left.delete(delivery.id)
            }),
            Effect.catchAll((error) => {
              const { message } = error
              if (error._tag === "NotStarted" && error.refused) {
                left.delete(delivery.id)
                return Effect.logError(`Temporal rejected the workflow of ${delivery.id}; the sweeper will retry it: ${message}`)
              }
              away = true
              return Effect.zipRight(keep(delivery), Effect.logWarning(`workflows cannot be started now: ${message}`))
            })
          )
        yield* Effect.forEach(deliveries, startOne, { concurrency: STARTS, discard: true })
        return !away
      })

    /** Whether these first attempts share workflows: many at once, or in the last second. One that is not due immediately has its own wait. */
    const groups = (deliveries: ReadonlyArray<ToStart>, of: "all" | "not busy"): boolean =>
      firstWait(webhookRetrySchedule) === 0 &&
      (webhookFirstAttempts === "grouped" ||
        (webhookFirstAttempts === "burst" && (deliveries.length > FEW || rate.of(of) > BUSY_PER_SECOND)))

    /** Starts a group when its turn comes, and waits for its end. */
    const runGroup = (group: ReadonlyArray<ToStart>) =>
      running.withPermits(1)(
        Effect.gen(function* () {
          const started = yield* Effect.either(left.size > 0 ? Effect.fail(undefined) : starter.startGroup(group))
          // failpoint: group-started
          if (started._tag === "Right") return yield* Effect.interruptible(starter.ended(started.right, GROUP_ENDS))
          if (started.left !== undefined) yield* Effect.logWarning("first attempts cannot be started now", started.left)
          yield* Effect.forEach(group, keep, { discard: true })
        })
      )

    /**
     * Lets groups of first attempts run. Only a few run at a time, so that later claims do not wait behind earlier ones,
     * whether or not the server supports fairness.
     */
    const startGroups = (deliveries: ReadonlyArray<ToStart>, announced: ChannelListener) =>
      Effect.forEach(Arr.chunksOf(deliveries, GROUP), (group) => {
        groupCount++
        const end = Effect.sync(() => {
          groupCount--
          announced.now()
        })
        return Effect.forkIn(Effect.uninterruptible(Effect.ensuring(runGroup(group), end)), scope)
      })

    /**
     * Processes one batch completely: a dispatcher that is stopped starts everything that it has claimed. While every group
     * runs, only events of organizations that are not busy are claimed. Returns whether to continue, after a pause: while a
     * group that is not full runs, more events arrive, which then share a workflow.
     */
    const next = (announced: ChannelListener) =>
      Effect.uninterruptible(
        Effect.gen(function* () {
          const passes = groupCount >= GROUPS
          const { busy, claimed, single } = yield* outbox.claim(passes ? "not busy" : "all")
          // failpoint: dispatched
          const all = [...single, ...busy]
          rate.add("all", all.length)
          rate.add("not busy", single.length)
          if (passes) passFrom = performance.now() + all.length * SINGLE_MS
          const [few, many] =
            (passes && webhookFirstAttempts !== "grouped") || !groups(all, "all")
              ? [all, []]
              : groups(single, "not busy")
                ? [[], all]
                : [single, busy]
          const started = yield* startAll(few)
          const groupsStarted = yield* startGroups(many, announced)
          const pause =
            many.length < GROUP && groupsStarted[0] !== undefined
              ? Effect.timeoutOption(Fiber.await(groupsStarted[0]), SMALL_GROUP_ENDS)
              : Effect.void
          return { pause, goOn: started && claimed }
        })
      )

    /**
     * Dispatches until nothing is left or Temporal is unavailable; events then wait and show as undispatched. Returns
     * whether any event waits.
     */
    const drain = (announced: ChannelListener): Effect.Effect<boolean, SqlError.SqlError> =>
      Effect.gen(function* () {
        if (left.size === 0 && !(yield* outbox.waits)) return false
        if (!(yield* temporal.isAvailable)) return true
        if (left.size > 0 && !(yield* startAll([...left.values()]))) return true
        do {
          const waitMs = groupCount < GROUPS ? 0 : passFrom - performance.now()
          if (waitMs > 0) yield* Effect.sleep(waitMs)
          const { goOn, pause } = yield* next(announced)
          yield* pause
          if (goOn) continue
          if (groupCount < GROUPS) break
          // No organization may pass: waits until a group ends, or another event is recorded.
          yield* Effect.timeoutOption(announced.next, GROUP_ENDS)
        } while (left.size === 0 && (yield* outbox.waits))
        return left.size > 0
      })

    /** Runs when a channel has a notification, and regularly; sooner if the last run left something. */
    const keepPolling = <E, R>(what: string, channel: string, poll: (announced: ChannelListener) => Effect.Effect<boolean, E, R>) =>
      Effect.flatMap(notifications.on(channel), (announced) =>
        Effect.forever(
          Effect.flatMap(loggingFailure(what, poll(announced)), (left) =>
            Effect.timeoutOption(announced.next, left === false ? POLL : AGAIN)
          )
        )
      )

    const sweeps = Effect.zipRight(
      loggingFailure("sweeping deliveries", sweeper.sweep),
      Effect.zipRight(loggingFailure("sweeping notices", sweeper.notices), loggingFailure("sweeping held deliveries", holds.sweep))
    )

    return {
      /** Runs until interrupted. */
      run: Effect.gen(function* () {
        const failed = yield* Effect.makeLatch()
        yield* Effect.forkScoped(
          keepPolling("dispatching", OUTBOX_CHANNEL, (announced) => Effect.onError(drain(announced), () => failed.open))
        )
        yield* Effect.forkScoped(keepPolling("signaling workflows", SIGNALS_CHANNEL, () => signalRelay.relay))
        yield* Effect.forkScoped(keepPolling("canceling deliveries", CANCELLATIONS_CHANNEL, () => canceler.run))
        yield* Effect.forkScoped(keepPolling("holding deliveries", HOLDS_CHANNEL, () => holds.collect))
        yield* Effect.forkScoped(keepPolling("waking holds", HOLDS_CHANNEL, () => holds.wake))
        yield* Effect.forkScoped(keepPolling("waking recoveries", HOLDS_CHANNEL, () => recoveries.wake))
        // Deliveries that a killed dispatcher left do not wait for the interval: the first sweep checks everything that is due,
        // and is repeated for those that were just being started.
        const first = loggingFailure("the first sweep", sweeper.first)
        yield* Effect.zipRight(first, Effect.delay(first, FIRST_AGAIN))
        const oneAtATime = (yield* Effect.makeSemaphore(1)).withPermits(1)
        // A claim that failed because its connection was lost may have been committed; no dispatcher starts its deliveries.
        const soon = loggingFailure("the sweep after a failure", sweeper.sweepSoon)
        const afterFailure = Effect.zipRight(failed.await, Effect.zipRight(failed.close, Effect.delay(oneAtATime(soon), FIRST_AGAIN)))
        yield* Effect.forkScoped(Effect.forever(afterFailure))
        return yield* Effect.schedule(oneAtATime(sweeps), Schedule.spaced(SWEEP))
      }).pipe(Effect.scoped)
    }
  })
}) {
  static readonly layer = this.Default
}
