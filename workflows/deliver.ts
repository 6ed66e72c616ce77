/**
 * One delivery, from its first attempt to its end: DELIVERED ends Completed, FAILED ends Failed, CANCELED ends Canceled.
 * Waits are durable. The first attempt runs inside the workflow task, which makes a healthy endpoint cheap; everything
 * that may take long runs on a separate queue.
 *
 * Histories of running deliveries are replayed through this code, so a change in the order of its commands needs
 * `patched`; test/workflows/replay.test.ts replays recorded ones. Spec: Delivery contract. Decisions D-20, D-22.
 */
import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  patched,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo
} from "@temporalio/workflow"
import { announce } from "./announce.ts"
import { type Activities, type AttemptOutcome, type DeliverInput, EXHAUSTED, quarantineQueueOf, searchKeys, signals } from "./contract.ts"

const retry = { initialInterval: "500 milliseconds", backoffCoefficient: 2, maximumInterval: "15 seconds" } as const

// An attempt ends within seconds, but keeps its outcome for as long as Postgres is unavailable: a step that timed out would
// be sent twice. A dead worker is detected by its heartbeats, not by these timeouts.
const local = proxyLocalActivities<Activities>({ startToCloseTimeout: "20 minutes", localRetryThreshold: "10 seconds", retry })

const on = (taskQueue: string) =>
  proxyActivities<Activities>({ taskQueue, startToCloseTimeout: "6 hours", heartbeatTimeout: "4 seconds", retry })

/** The queue of one process; given up when the process has ended. */
const inProcess = (taskQueue: string) =>
  proxyActivities<Activities>({
    taskQueue,
    scheduleToStartTimeout: "2 seconds",
    startToCloseTimeout: "6 hours",
    heartbeatTimeout: "4 seconds",
    retry: { maximumAttempts: 1 }
  })

export const retryNow = defineSignal(signals.retryNow)
const cancelDelivery = defineSignal(signals.cancel)
export const wake = defineSignal(signals.wake)

/** The current details in the Temporal UI. */
const describe = (outcome: AttemptOutcome, of: number): string => {
  // Attempts that do not use up the schedule have numbers too.
  const attempt = (number: number) => `attempt ${number}${number <= of ? ` of ${of}` : ""}`
  const nextAt = (waitMs: number) => new Date(Date.now() + waitMs).toISOString()
  switch (outcome.next) {
    case "wait":
      return `${attempt(outcome.number)}: ${outcome.result}; next at ${nextAt(outcome.waitMs)}`
    case "busy":
      return `waits for admission at the endpoint, checks again at ${nextAt(outcome.waitMs)}; no attempt is used up`
    case "delivered":
    case "failed":
      return `${attempt(outcome.number)}: ${outcome.result}`
    case "ended":
      return `ended as ${outcome.status} before this step`
    case "held":
      return "held: the webhook is paused, or its endpoint is down or cannot keep up; no attempt is made or used up until its turn"
    case "elsewhere":
      return "the first attempt is in progress"
  }
}

export async function deliver(input: DeliverInput): Promise<{ attempts: number; result: string }> {
  const { deliveryId, indexed, retryQueue, slowQueue, waitsMs, webhookId } = input
  const slow = on(slowQueue)
  const retries = on(retryQueue)
  const quarantine = on(quarantineQueueOf(workflowInfo().taskQueue))
  let hurry = false
  let woken = false
  let cancel = false
  let status = "PENDING"
  const retryNowHandler = () => {
    hurry = true
  }
  const cancelHandler = () => {
    cancel = true
  }
  const wakeHandler = () => {
    woken = true
  }
  setHandler(retryNow, retryNowHandler, {
    description: "Ends the wait: the next attempt is made now."
  })
  setHandler(wake, wakeHandler, {
    description: "Checks again whether the next attempt is due and admitted at the endpoint. The service sends it to overdue deliveries."
  })
  setHandler(cancelDelivery, cancelHandler, { description: "Ends the delivery as CANCELED, unless an attempt in progress delivers it." })

  const become = (next: string) => {
    if (next === status) return
    status = next
    if (next !== "RETRYING" && next !== "HELD" && input.statusAtEnd === "execution") return
    if (indexed) upsertSearchAttributes([{ key: searchKeys.deliveryStatus, value: next }])
  }

  /**
   * Waits until the time is over or a signal asks for the next attempt or another check. A cancellation ends the wait;
   * the next step then reads the delivery's state. Returns whether the wait is over: after a wake it may not be, because
   * the reason may have passed by then. A wake during an attempt is kept: its reason may be newer than the attempt's
   * outcome. A retry that is requested during an attempt is kept as well, because it made the next attempt due.
   */
  const pause = async (waitMs: number): Promise<boolean> => {
    if (hurry && patched("retry-during-attempt")) woken = true
    hurry = false
    try {
      if (waitMs > 0) await condition(() => hurry || woken || cancel, waitMs)
    } catch (error) {
      if (!isCancellation(error)) throw error
      cancel = true
    }
    const over = hurry || !woken
    woken = false
    return over
  }

  /** Waits for a signal, however long. */
  const held = async (): Promise<void> => {
    try {
      await condition(() => hurry || woken || cancel)
    } catch (error) {
      if (!isCancellation(error)) throw error
      cancel = true
    }
    hurry = false
    woken = false
  }

  /** The last attempt, and the last one whose wait is over. */
  let last = 0,
    after = 0
  let { hostQueue } = input
  /** Whether the next attempt runs in quarantine, because the worker crashed during the last ones. */
  let inQuarantine = false
  await pause(waitsMs[0] ?? 0)
  for (;;) {
    const step = { deliveryId, webhookId, waitsMs, after, jitter: Math.random(), cancel, holds: true }
    // An attempt in flight is finished and recorded, whatever is requested meanwhile.
    const outcome = await CancellationScope.nonCancellable(async () => {
      if (inQuarantine) return await quarantine.attempt({ ...step, local: false, alone: inQuarantine })
      if (last > 0) return await retries.attempt({ ...step, local: false })
      if (hostQueue !== undefined) {
        const queue = hostQueue
        hostQueue = undefined
        try {
          return await inProcess(queue).attempt({ ...step, local: false })
        } catch (error) {
          // The process has ended and its attempt was interrupted: the next one is made here.
          if (!(error instanceof ActivityFailure)) throw error
        }
      }
      const here = await local.attempt({ ...step, local: true })
      if (here.next !== "elsewhere") return here
      setCurrentDetails(describe(here, waitsMs.length))
      return await slow.attempt({ ...step, local: false })
    })
    setCurrentDetails(describe(outcome, waitsMs.length))
    if ("notices" in outcome && outcome.notices.length > 0)
      await CancellationScope.nonCancellable(() => announce(outcome.notices, () => input.organizationId))

    switch (outcome.next) {
      case "delivered":
        become("DELIVERED")
        return { attempts: outcome.number, result: outcome.result }
      case "failed":
        become("FAILED")
        throw ApplicationFailure.nonRetryable(
          `the schedule is used up; the last of ${outcome.number} attempts: ${outcome.result}`,
          EXHAUSTED
        )
      case "ended":
        become(outcome.status)
        if (outcome.status === "DELIVERED") return { attempts: last, result: "2xx" }
        if (outcome.status === "FAILED") throw ApplicationFailure.nonRetryable("the schedule is used up", EXHAUSTED)
        // Only a workflow that was asked to cancel can end as Canceled; if it was asked, the cancellation
        // has already been thrown before this line.
        await local.cancelSelf()
        await condition(() => false)
        break
      case "wait":
        last = outcome.number
        inQuarantine = outcome.alone === true
        become("RETRYING")
        after = (await pause(outcome.waitMs)) ? last : last - 1
        break
      case "busy":
        // Thousands of deliveries may wait for a dead endpoint for days; a step of a new run reads when the delivery is due.
        if (workflowInfo().continueAsNewSuggested && !cancel && !CancellationScope.current().consideredCancelled)
          await continueAsNew<typeof deliver>(input)
        await pause(outcome.waitMs)
        break
      case "held":
        if (outcome.number > last) last = outcome.number
        become("HELD")
        if (workflowInfo().continueAsNewSuggested && !cancel && !CancellationScope.current().consideredCancelled)
          await continueAsNew<typeof deliver>(input)
        // No timer: whatever releases the webhook's deliveries wakes those with a workflow.
        await held()
        after = Math.max(0, last - 1)
        break
      case "elsewhere":
        break
    }
  }
}
