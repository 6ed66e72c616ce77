/**
 * A ping: one signed test request, on its own task queue, so that endpoints that hang do not take slots from deliveries.
 * Spec: ping. Decision D-26.
 */
import { patched, proxyActivities, proxyLocalActivities, workflowInfo } from "@temporalio/workflow"
import { type Activities, type PingInput, type PingOutcome, pingQueueOf } from "./contract.ts"

const once = { startToCloseTimeout: "15 seconds", retry: { maximumAttempts: 1 } } as const
const local = proxyLocalActivities<Activities>(once)
const regular = proxyActivities<Activities>(once)

export async function ping(input: PingInput): Promise<PingOutcome> {
  if (patched("ping-on-its-queue"))
    return await proxyActivities<Activities>({ ...once, taskQueue: pingQueueOf(workflowInfo().taskQueue) }).ping(input)
  return await (patched("ping-inside-the-task") ? local : regular).ping(input)
}
