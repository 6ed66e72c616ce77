/**
 * What a claim found, 1 to 50 deliveries. One delivery is carried from its first attempt to its end: DELIVERED ends
 * Completed, FAILED ends Failed, CANCELED ends Canceled; one that joins its webhook's queue ends Completed with `held`, and
 * its webhook's drain goes on with it. A group ends after its first attempts: its members that wait for another attempt have
 * workflows of their own. First attempts run inside the workflow task, which makes a healthy endpoint cheap.
 *
 * Histories of running deliveries are replayed through this code, so a change in the order of its commands needs
 * `patched`; test/workflows/replay.test.ts replays recorded ones. Spec: Delivery contract. Decisions D-20, D-22.
 */
import {
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
import {
  type Activities,
  type AttemptOutcome,
  type DeliverInput,
  EXHAUSTED,
  type Member,
  searchKeys,
  signals,
  stepOptions,
  taskQueuesOf
} from "./contract.ts"

// First attempts return within a second; a request that takes longer goes on in its process.
const inTask = proxyLocalActivities<Activities>({
  startToCloseTimeout: "20 minutes",
  localRetryThreshold: "10 seconds",
  retry: stepOptions.retry
})

const retryNow = defineSignal(signals.retryNow)
const cancelDelivery = defineSignal(signals.cancel)
const wake = defineSignal<[number?]>(signals.wake)

const reasons = {
  PAUSED: "the webhook or its recovery is paused",
  DOWN: "the endpoint is down",
  TURN: "the webhook has its maximum of attempts in flight"
} as const

/** An outcome in words, for the details in the Temporal UI. */
const describe = (outcome: AttemptOutcome, of: number): string => {
  // Attempts that do not use up the schedule have numbers too.
  const attempt = (number: number) => `attempt ${number}${number <= of ? ` of ${of}` : ""}`
  const nextAt = (waitMs: number) => new Date(Date.now() + waitMs).toISOString()
  switch (outcome.next) {
    case "delivered":
    case "failed":
      return `${attempt(outcome.number)}: ${outcome.result}`
    case "retry":
      return `${attempt(outcome.number)}: ${outcome.result}; next at ${nextAt(outcome.waitMs)}`
    case "held":
      return `${outcome.result === null ? "" : `${attempt(outcome.number)}: ${outcome.result}; `}held in the webhook's queue: ${reasons[outcome.because]}`
    case "in flight":
      return "an attempt is in flight"
    case "later":
      return `${outcome.because}; checks again at ${nextAt(outcome.waitMs)}; no attempt is used up`
    case "ended":
      return `ended as ${outcome.status} before this step`
  }
}

export async function deliver(input: DeliverInput) {
  const [only] = input.deliveries
  return input.deliveries.length === 1 && only !== undefined ? await one(input, only) : await group(input)
}

/** The first attempts of several deliveries. */
const group = async ({ deliveries, waitsMs }: DeliverInput): Promise<Readonly<Record<string, AttemptOutcome>>> => {
  const firstWait = waitsMs[0] ?? 0
  if (firstWait > 0) await condition(() => false, firstWait)
  setCurrentDetails(`first attempts of ${deliveries.map(({ deliveryId }) => deliveryId).join(", ")}`)
  const outcomes = await inTask.firstAttempts({ deliveries, waitsMs })
  setCurrentDetails(
    Object.entries(outcomes)
      .map(([deliveryId, outcome]) => `${deliveryId}: ${describe(outcome, waitsMs.length)}`)
      .join("\n")
  )
  return outcomes
}

/** One delivery, until it has ended or joined its webhook's queue. */
const one = async (input: DeliverInput, member: Member): Promise<{ attempts: number; result: string }> => {
  const { first, indexed, waitsMs } = input
  const attempts = proxyActivities<Activities>({ taskQueue: taskQueuesOf(workflowInfo().taskQueue).attempts, ...stepOptions })
  /** What signals asked for: another attempt now, to cancel, and the time in ms until the next step is due. */
  let retryRequested = false
  let cancel = false
  let dueInMs: number | undefined
  const retryNowHandler = () => {
    retryRequested = true
  }
  const cancelHandler = () => {
    cancel = true
  }
  const wakeHandler = (waitMs = 0) => {
    dueInMs = waitMs
  }
  setHandler(retryNow, retryNowHandler, { description: "Ends the wait: the next attempt is made now." })
  setHandler(cancelDelivery, cancelHandler, { description: "Ends the delivery as CANCELED, unless an attempt in progress delivers it." })
  setHandler(wake, wakeHandler, { description: "Checks again whether the next attempt is due. The service sends it." })

  const become = (status: string) => {
    if (indexed) upsertSearchAttributes([{ key: searchKeys.deliveryStatus, value: status }])
  }

  /**
   * Waits until the time is over or a signal asks for something. A cancellation ends the wait; the next step then reads the
   * delivery's state. Returns whether the wait has ended; after a signal of the service the row decides.
   */
  const pause = async (waitMs: number): Promise<boolean> => {
    let left = waitMs
    let waitEnded = true
    for (;;) {
      if (dueInMs !== undefined) {
        left = dueInMs
        waitEnded = false
        dueInMs = undefined
      }
      if (left <= 0) break
      try {
        const asked = await condition(() => retryRequested || cancel || dueInMs !== undefined, left)
        if (!asked) break
      } catch (error) {
        if (!isCancellation(error)) throw error
        cancel = true
      }
      if (retryRequested || cancel) break
    }
    waitEnded ||= retryRequested
    retryRequested = false
    return waitEnded
  }

  /** The last attempt, and the last one whose wait is over. */
  let last = input.resumed?.last ?? 0
  let after = 0
  // A first attempt may have a wait of its own; a delivery that waits for a later one hears of it by the signal that started it.
  const waitEnded = await pause(input.resumed?.waitMs ?? (first ? (waitsMs[0] ?? 0) : 0))
  if (input.resumed !== undefined && waitEnded) after = last
  for (let step = 0; ; step++) {
    // An attempt in flight is finished and recorded, whatever is requested meanwhile.
    const outcome = await CancellationScope.nonCancellable(async () => {
      if (first && step === 0 && input.resumed === undefined && !cancel)
        return (await inTask.firstAttempts({ deliveries: [member], waitsMs }))[member.deliveryId]
      return await attempts.attempt({ ...member, waitsMs, after, cancel })
    })
    if (outcome === undefined) throw ApplicationFailure.nonRetryable("a first attempt has no outcome")
    setCurrentDetails(describe(outcome, waitsMs.length))
    switch (outcome.next) {
      case "delivered":
        return { attempts: outcome.number, result: outcome.result }
      case "failed":
        throw ApplicationFailure.nonRetryable(
          `the schedule is used up; the last of ${outcome.number} attempts: ${outcome.result}`,
          EXHAUSTED
        )
      case "ended":
        if (outcome.status === "DELIVERED") return { attempts: last, result: "2xx" }
        if (outcome.status === "FAILED") throw ApplicationFailure.nonRetryable("the schedule is used up", EXHAUSTED)
        // Only a workflow that was asked to cancel can end as Canceled; if it was asked, the cancellation
        // has already been thrown before this line.
        await inTask.cancelSelf()
        await condition(() => false)
        break
      case "held":
        if (dueInMs === undefined && !retryRequested && !cancel) {
          become("HELD")
          return { attempts: outcome.number, result: "held" }
        }
        // A signal that came meanwhile may be newer than the outcome.
        dueInMs = undefined
        retryRequested = false
        continue
      case "retry":
        if (outcome.number !== last) become("RETRYING")
        last = outcome.number
        break
    }
    if (outcome.next === "in flight")
      // Whatever is requested meanwhile, its outcome comes first.
      await CancellationScope.nonCancellable(() => condition(() => dueInMs !== undefined, outcome.waitMs))
    const waitMs = outcome.next === "retry" || outcome.next === "later" ? outcome.waitMs : 0
    cancel ||= CancellationScope.current().consideredCancelled
    // A signal that came during the attempt may not know its outcome.
    if (dueInMs !== undefined && outcome.next === "retry") dueInMs = Math.min(dueInMs, waitMs)
    if (workflowInfo().continueAsNewSuggested && !cancel)
      await continueAsNew<typeof deliver>({ ...input, resumed: { last, waitMs: dueInMs ?? (retryRequested ? 0 : waitMs) } })
    const waitEnded = await pause(waitMs)
    after = waitEnded && outcome.next !== "in flight" ? last : Math.max(0, last - 1)
  }
}
