/** One operational notice, retried until it is sent. Decision D-23. */
import { proxyActivities, workflowInfo } from "@temporalio/workflow"
import { type Activities, type NotifyInput, taskQueuesOf } from "./contract.ts"

export async function notify(input: NotifyInput): Promise<{ readonly channel: string }> {
  const { sendNotice } = proxyActivities<Activities>({
    taskQueue: taskQueuesOf(workflowInfo().taskQueue).mail,
    // A message is not sent again while a slow mail server is still accepting it; heartbeats detect a dead worker.
    startToCloseTimeout: "10 minutes",
    heartbeatTimeout: "20 seconds",
    // As long as the sweep looks for unsent notices. A workflow with a shorter limit fails and is started again.
    scheduleToCloseTimeout: "31 days",
    retry: { initialInterval: "2 seconds", backoffCoefficient: 2, maximumInterval: "15 minutes" }
  })
  return await sendNotice(input)
}
