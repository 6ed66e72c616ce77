/**
 * The queue of a webhook: the only sender to a webhook that has one. It probes the endpoint while that is down, and sends
 * what is queued in order. It ends when nothing is queued, or the webhook is paused. The queue is in the database, from
 * which a lost drain is started again. C-5.
 */
import {
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo
} from "@temporalio/workflow"
import { type Activities, type DrainInput, signals, stepOptions, taskQueuesOf } from "./contract.ts"

const wake = defineSignal(signals.wake)

export async function drain(input: DrainInput): Promise<string> {
  const attempts = proxyActivities<Activities>({ taskQueue: taskQueuesOf(workflowInfo().taskQueue).attempts, ...stepOptions })
  let woken = false
  const wakeHandler = () => {
    woken = true
  }
  setHandler(wake, wakeHandler, {
    description: "Checks again whether the endpoint must be probed, or queued deliveries may be sent. The service sends it."
  })
  let { failures } = input
  for (;;) {
    woken = false
    const outcome = await CancellationScope.nonCancellable(() => attempts.drain({ ...input, failures }))
    setCurrentDetails(outcome.details)
    if (outcome.next === "ended") {
      if (woken) continue
      return outcome.details
    }
    failures = outcome.failures
    if (outcome.waitMs > 0) await condition(() => woken, outcome.waitMs)
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof drain>({ ...input, failures })
  }
}
