/** The schedule that seals due statements every minute. C-6. */
import { ScheduleAlreadyRunning, ScheduleOverlapPolicy } from "@temporalio/client"
import { Effect } from "effect"
import { workflows } from "../../workflows/contract.ts"
import { TemporalConnection } from "../temporal/Connection.ts"
import { temporalCall } from "../temporal/temporalCall.ts"

/** Creates the schedule if it is missing. */
export const schedule = Effect.gen(function* () {
  const temporal = yield* TemporalConnection
  const { client } = yield* temporal.ready
  yield* temporalCall(() =>
    client.schedule.create({
      scheduleId: `custody-seal-statements-${temporal.taskQueue}`,
      spec: { intervals: [{ every: "1 minute" }] },
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: "1 minute" },
      action: {
        type: "startWorkflow",
        workflowType: workflows.sealStatements,
        taskQueue: temporal.taskQueue,
        args: [{ after: "" }],
        workflowId: `seal-statements-${temporal.taskQueue}`
      }
    })
  ).pipe(
    Effect.catchIf(
      ({ cause }) => cause instanceof ScheduleAlreadyRunning,
      () => Effect.void
    )
  )
})
