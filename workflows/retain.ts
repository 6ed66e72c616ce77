/** Removes data older than the log's 31 days. Started by a schedule. Decision D-31. */
import { proxyActivities, workflowInfo } from "@temporalio/workflow"
import { type Activities, type Retained, taskQueuesOf } from "./contract.ts"

export async function retain(): Promise<Retained> {
  const activities = proxyActivities<Activities>({
    taskQueue: taskQueuesOf(workflowInfo().taskQueue).background,
    startToCloseTimeout: "30 minutes",
    heartbeatTimeout: "1 minute",
    retry: { maximumInterval: "10 minutes" }
  })
  return await activities.retain()
}
