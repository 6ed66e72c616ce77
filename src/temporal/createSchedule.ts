/** Schedules that start a workflow of this service's task queue. */
import { ScheduleAlreadyRunning, type ScheduleOptions, ScheduleOverlapPolicy } from "@temporalio/client"
import { Effect } from "effect"
import { TemporalConnection } from "./Connection.ts"
import { temporalCall } from "./temporalCall.ts"

/** A schedule: its name, the workflow that it starts, and when. Starts never overlap. */
export interface NewSchedule {
  readonly name: string
  readonly workflow: { readonly id: string; readonly type: string; readonly args: ReadonlyArray<unknown> }
  readonly spec: ScheduleOptions["spec"]
  /** How long after its time a start is still made up for, if Temporal was down. */
  readonly catchupWindow: "1 minute" | "1 day"
}

/** Creates a schedule if it is missing. */
export const createSchedule = ({ catchupWindow, name, spec, workflow }: NewSchedule) =>
  Effect.gen(function* () {
    const { ready, taskQueue } = yield* TemporalConnection
    const { client } = yield* ready
    yield* temporalCall(() =>
      client.schedule.create({
        scheduleId: `custody-${name}-${taskQueue}`,
        spec,
        policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow },
        action: {
          type: "startWorkflow",
          workflowType: workflow.type,
          taskQueue,
          args: [...workflow.args],
          workflowId: `${workflow.id}-${taskQueue}`
        }
      })
    ).pipe(
      Effect.catchIf(
        ({ cause }) => cause instanceof ScheduleAlreadyRunning,
        () => Effect.void
      )
    )
  })
