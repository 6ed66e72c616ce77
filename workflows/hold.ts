/**
 * The hold of a webhook whose endpoint is down: probes it, and sends the held deliveries after a successful probe or when
 * the webhook is resumed. It ends when nothing is held. Its state is in the database, from which a lost hold is started
 * again. C-5.
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
import { announce } from "./announce.ts"
import { type Activities, type HoldInput, holdQueueOf, signals, stepOptions } from "./contract.ts"

const wakeHold = defineSignal(signals.wake)

export async function hold(input: HoldInput): Promise<string> {
  const activities = proxyActivities<Activities>({ taskQueue: holdQueueOf(workflowInfo().taskQueue), ...stepOptions })
  let woken = false
  const wakeHandler = () => {
    woken = true
  }
  setHandler(wakeHold, wakeHandler, {
    description: "Checks again whether the endpoint must be probed, or held deliveries may be sent. The service sends it."
  })
  let { failures, width } = input
  for (;;) {
    woken = false
    const outcome = await CancellationScope.nonCancellable(() => activities.hold({ webhookId: input.webhookId, width, failures }))
    setCurrentDetails(outcome.details)
    if (outcome.notices.length > 0) await CancellationScope.nonCancellable(() => announce(outcome.notices, () => input.organizationId))
    if (outcome.next === "ended") {
      if (woken) continue
      return outcome.details
    }
    failures = outcome.failures
    width = outcome.width
    if (outcome.waitMs > 0) await condition(() => woken, outcome.waitMs)
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof hold>({ ...input, width, failures })
  }
}
