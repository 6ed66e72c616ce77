/** The schedule that seals due statements every minute. C-6. */
import { workflows } from "../../../workflows/contract.ts"
import { createSchedule } from "../../runtime/temporal/createSchedule.ts"

/** Creates the schedule if it is missing. */
export const schedule = createSchedule({
  name: "seal-statements",
  workflowType: workflows.sealStatements,
  spec: { intervals: [{ every: "1 minute" }] },
  catchupWindow: "1 minute"
})
