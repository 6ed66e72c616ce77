/** Seals due statements, a part of the vaults at a time. Started by a schedule every minute. C-6. */
import { continueAsNew, proxyActivities } from "@temporalio/workflow"
import type { Activities, SealInput } from "./contract.ts"

const activities = proxyActivities<Activities>({
  startToCloseTimeout: "10 minutes",
  // A killed worker is detected after this time, and another one continues with the part.
  heartbeatTimeout: "10 seconds",
  retry: { maximumInterval: "1 minute" }
})

/** Parts per run, so that a history stays short however many vaults there are. */
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
