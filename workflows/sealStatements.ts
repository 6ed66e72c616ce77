/** Seals due statements, a part of the vaults at a time. Started by a schedule every minute. C-6. */
import { continueAsNew, proxyActivities, workflowInfo } from "@temporalio/workflow"
import { type Activities, type SealInput, taskQueuesOf } from "./contract.ts"

/** Parts per run, so that a history stays short however many vaults there are. */
const PARTS = 100

export async function sealStatements({ after }: SealInput = { after: "" }): Promise<void> {
  const activities = proxyActivities<Activities>({
    taskQueue: taskQueuesOf(workflowInfo().taskQueue).background,
    startToCloseTimeout: "10 minutes",
    // A killed worker is detected after this time, and another one continues with the part.
    heartbeatTimeout: "10 seconds",
    retry: { maximumInterval: "1 minute" }
  })
  let next = after
  for (let part = 0; part < PARTS; part++) {
    const done = await activities.sealStatements({ after: next })
    if (done.after === null) return
    next = done.after
  }
  await continueAsNew<typeof sealStatements>({ after: next })
}
