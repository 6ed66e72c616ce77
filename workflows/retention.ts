/** Removes data older than the log's 31 days. Started by a schedule. Decision D-31. */
import { proxyActivities } from "@temporalio/workflow"
import type { Activities, Retained } from "./contract.ts"

const activities = proxyActivities<Activities>({
  startToCloseTimeout: "30 minutes",
  heartbeatTimeout: "1 minute",
  retry: { maximumInterval: "10 minutes" }
})

export async function retain(): Promise<Retained> {
  return await activities.retain()
}
