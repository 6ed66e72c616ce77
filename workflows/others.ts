/** The short workflows: a ping, a notice, the daily retention. */
import { patched, proxyActivities, proxyLocalActivities, workflowInfo } from "@temporalio/workflow"
import { type Activities, type NotifyInput, noticeQueueOf, type PingInput, type PingOutcome, type Retained } from "./contract.ts"

const once = { startToCloseTimeout: "15 seconds", scheduleToCloseTimeout: "15 seconds", retry: { maximumAttempts: 1 } } as const
const here = proxyLocalActivities<Activities>(once)
const elsewhere = proxyActivities<Activities>(once)
const patient = () =>
  proxyActivities<Activities>({
    taskQueue: noticeQueueOf(workflowInfo().taskQueue),
    // A message that a slow mail server is still taking is not sent a second time; a dead worker shows in its heartbeats.
    startToCloseTimeout: "10 minutes",
    heartbeatTimeout: "20 seconds",
    // As long as the sweeper looks for notices that were not sent: a mail server that is away for longer is not waited for.
    scheduleToCloseTimeout: "3 days",
    retry: { initialInterval: "2 seconds", backoffCoefficient: 2, maximumInterval: "15 minutes" }
  })
const long = proxyActivities<Activities>({
  startToCloseTimeout: "30 minutes",
  heartbeatTimeout: "1 minute",
  retry: { maximumInterval: "10 minutes" }
})

/**
 * One signed test request, sent by the worker, inside the workflow task: somebody waits for it, and each further task
 * would stand in line behind the deliveries of everybody. Spec: ping. Decision D-26.
 */
export async function ping(input: PingInput): Promise<PingOutcome> {
  return await (patched("ping-inside-the-task") ? here : elsewhere).ping(input)
}

/** One operational notice, tried until it is sent, for three days at the most. Decision D-23. */
export async function notify(input: NotifyInput): Promise<{ readonly channel: string }> {
  return await patient().sendNotice(input)
}

/** Drops what is older than the log's 31 days. Started by a schedule. Decision D-31. */
export async function retain(): Promise<Retained> {
  return await long.retain()
}
