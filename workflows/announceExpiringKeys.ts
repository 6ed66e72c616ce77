/** Announces API keys that expire soon. Started by a schedule. C-13. */
import { proxyActivities, workflowInfo } from "@temporalio/workflow"
import { type Activities, type AnnouncedKeys, taskQueuesOf } from "./contract.ts"

export async function announceExpiringKeys(): Promise<AnnouncedKeys> {
  const activities = proxyActivities<Activities>({
    taskQueue: taskQueuesOf(workflowInfo().taskQueue).background,
    startToCloseTimeout: "30 minutes",
    heartbeatTimeout: "10 seconds",
    retry: { maximumInterval: "1 minute" }
  })
  return await activities.announceExpiringKeys()
}
