/**
 * A recovery: creates deliveries for events that a webhook missed, in parts, until everything was checked and all created
 * deliveries have ended. Its state is in the database; canceling the workflow cancels the recovery. C-4.
 */
import {
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo
} from "@temporalio/workflow"
import { type Activities, type RecoverInput, signals, stepOptions, taskQueuesOf } from "./contract.ts"

const wakeRecovery = defineSignal(signals.wake)

export async function recover(input: RecoverInput): Promise<string> {
  const { recoveryId } = input
  const activities = proxyActivities<Activities>({ taskQueue: taskQueuesOf(workflowInfo().taskQueue).background, ...stepOptions })
  let woken = false
  const wakeHandler = () => {
    woken = true
  }
  setHandler(wakeRecovery, wakeHandler, { description: "Checks the state of the recovery again. The service sends it." })
  /** The requested cancellation, kept to end as Canceled. */
  let canceled: unknown
  let waits = 0
  for (;;) {
    woken = false
    const step = { recoveryId, waits, cancel: canceled !== undefined }
    const outcome = await CancellationScope.nonCancellable(() => activities.recover(step))
    setCurrentDetails(outcome.details)
    if (outcome.next === "ended") {
      if (canceled !== undefined) throw canceled
      if (woken) continue
      return outcome.details
    }
    waits = outcome.idle ? waits + 1 : 0
    const { waitMs } = outcome
    try {
      if (waitMs === null) await condition(() => woken)
      else if (waitMs > 0) await condition(() => woken, waitMs)
      if (CancellationScope.current().consideredCancelled) await CancellationScope.current().cancelRequested
    } catch (error) {
      if (!isCancellation(error)) throw error
      canceled = error
      continue
    }
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof recover>(input)
  }
}
