/**
 * A ping: one signed test request, on its own task queue, so that endpoints that hang do not take slots from deliveries.
 * Spec: ping. Decision D-26.
 */
import { proxyActivities, workflowInfo } from "@temporalio/workflow"
import { type Activities, type PingInput, type PingOutcome, taskQueuesOf } from "./contract.ts"

export async function ping(input: PingInput): Promise<PingOutcome> {
  const { ping: send } = proxyActivities<Activities>({
    taskQueue: taskQueuesOf(workflowInfo().taskQueue).pings,
    // 5 seconds for an access token, 10 for the response and one for its body.
    startToCloseTimeout: "18 seconds",
    retry: { maximumAttempts: 1 }
  })
  return await send(input)
}
