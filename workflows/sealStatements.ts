/** Seals the statements that are due, a part of the vaults at a time. Started by a schedule every minute. C-6. */
import { continueAsNew, proxyActivities } from "@temporalio/workflow"
import type { Activities, SealInput } from "./contract.ts"

const activities = proxyActivities<Activities>({
  startToCloseTimeout: "10 minutes",
  // A worker that was killed is noticed after this, and another one goes on with the part.
  heartbeatTimeout: "10 seconds",
  retry: { maximumInterval: "1 minute" }
})

/** Parts of one run; a history stays short however many vaults there are. */
const PARTS = 100

export async function sealStatements({ after }: SealInput): Promise<void> {
  let next = after
  for (let part = 0; part < PARTS; part++) {
    const done = await activities.sealStatements({ after: next })
    if (done.after === null) return
    next = done.after
  }
  await continueAsNew<typeof sealStatements>({ after: next })
}
