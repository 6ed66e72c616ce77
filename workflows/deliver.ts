/**
 * One delivery, from its first attempt to its end: DELIVERED ends Completed, FAILED ends Failed, CANCELED ends
 * Canceled. Waits are durable. The first attempt runs inside the workflow task, which is what makes a healthy
 * endpoint cheap; whatever may take long runs on a queue of its own.
 *
 * Histories of running deliveries are replayed through this code, so a change of the order of its commands needs
 * `patched`; test/deliveries/replay.test.ts replays recorded ones. Spec: Delivery contract. Decisions D-20, D-22.
 */
import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
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

// An attempt ends by itself within seconds, but holds on to its outcome for as long as Postgres is away: a step that
// times out is one that would be sent twice. That a worker is gone shows in its heartbeats, not in these timeouts.
const local = proxyLocalActivities<Activities>({ startToCloseTimeout: "20 minutes", localRetryThreshold: "10 seconds", retry })

const on = (taskQueue: string) =>
  proxyActivities<Activities>({ taskQueue, startToCloseTimeout: "6 hours", heartbeatTimeout: "4 seconds", retry })

/** The queue of one process, which is given up when the process is gone. */
const inProcess = (taskQueue: string) =>
  proxyActivities<Activities>({
    taskQueue,
    scheduleToStartTimeout: "2 seconds",
    startToCloseTimeout: "6 hours",
    heartbeatTimeout: "4 seconds",
    retry: { maximumAttempts: 1 }
  })

export const retryNow = defineSignal(signals.retryNow)
export const cancelDelivery = defineSignal(signals.cancel)
export const wake = defineSignal(signals.wake)

/** What the Temporal UI shows of a running delivery. */
const describe = (outcome: AttemptOutcome, of: number): string => {
  // Attempts that use up nothing of the schedule have numbers, too.
  const attempt = (number: number) => `attempt ${number}${number <= of ? ` of ${of}` : ""}`
  const nextAt = (waitMs: number) => new Date(Date.now() + waitMs).toISOString()
  switch (outcome.next) {
    case "wait":
      return `${attempt(outcome.number)}: ${outcome.result}; next at ${nextAt(outcome.waitMs)}`
    case "busy":
      return `waits for room at the endpoint, asks again at ${nextAt(outcome.waitMs)}; no attempt is used up`
    case "delivered":
    case "failed":
      return `${attempt(outcome.number)}: ${outcome.result}`
    case "ended":
      return `ended as ${outcome.status} before this step`
    case "held":
      return "held: the webhook is paused or its endpoint is down; no attempt is made or used up until it goes on"
    case "elsewhere":
      return "the first attempt is under way"
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
    description: "Looks again whether the next attempt is due and the endpoint has room. The service sends it to what is overdue."
  })
  setHandler(cancelDelivery, cancelHandler, { description: "Ends the delivery as CANCELED, unless an attempt under way delivers it." })

  const become = (next: string) => {
    if (next === status) return
    status = next
    if (next !== "RETRYING" && next !== "HELD" && input.statusAtEnd === "execution") return
    if (indexed) upsertSearchAttributes([{ key: searchKeys.deliveryStatus, value: next }])
  }

  /**
   * Waits, unless somebody asks for the next attempt now or that it be looked again. A cancellation ends the wait; the
   * next step then reads what became of the delivery. Whether the wait is over: one that was merely woken may not be,
   * because what a signal was sent for can have passed when it comes. A wake that comes during an attempt is kept: what
   * it was sent for may be newer than the attempt's outcome.
   */
  const pause = async (waitMs: number): Promise<boolean> => {
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
  /** Whether the next attempt is to be made alone, because the senders of the last ones died. */
  let alone = false
  await pause(waitsMs[0] ?? 0)
  for (;;) {
    const step = { deliveryId, webhookId, waitsMs, after, jitter: Math.random(), cancel, holds: true }
    // An attempt that has begun is finished and recorded, whatever is asked meanwhile.
    const outcome = await CancellationScope.nonCancellable(async () => {
      if (alone) return await quarantine.attempt({ ...step, local: false, alone })
      if (last > 0) return await retries.attempt({ ...step, local: false })
      if (hostQueue !== undefined) {
        const queue = hostQueue
        hostQueue = undefined
        try {
          return await inProcess(queue).attempt({ ...step, local: false })
        } catch (error) {
          // The process is gone, and its attempt is interrupted: another one is made here.
          if (!(error instanceof ActivityFailure)) throw error
        }
      }
      const here = await local.attempt({ ...step, local: true })
      if (here.next !== "elsewhere") return here
      setCurrentDetails(describe(here, waitsMs.length))
      return await slow.attempt({ ...step, local: false })
    })
    setCurrentDetails(describe(outcome, waitsMs.length))
    if ("notices" in outcome && outcome.notices.length > 0) await CancellationScope.nonCancellable(() => announce(outcome.notices))

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
        // Only a workflow that was asked to cancel can end as Canceled; one that was is past this line by an exception.
        await local.cancelSelf()
        await condition(() => false)
        break
      case "wait":
        last = outcome.number
        alone = outcome.alone === true
        become("RETRYING")
        after = (await pause(outcome.waitMs)) ? last : last - 1
        break
      case "busy":
        // Thousands of deliveries may wait for a dead endpoint for days; a step of a fresh run knows when it is due.
        if (workflowInfo().continueAsNewSuggested && !cancel && !CancellationScope.current().consideredCancelled)
          await continueAsNew<typeof deliver>(input)
        await pause(outcome.waitMs)
        break
      case "held":
        if (outcome.number > last) last = outcome.number
        become("HELD")
        if (workflowInfo().continueAsNewSuggested && !cancel && !CancellationScope.current().consideredCancelled)
          await continueAsNew<typeof deliver>(input)
        // Without a timer: whoever lets the webhook's deliveries go on wakes those that have a workflow.
        await held()
        after = Math.max(0, last - 1)
        break
      case "elsewhere":
        break
    }
  }
}
