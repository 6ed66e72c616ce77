/** Schedules that start a workflow of this service's task queue. */
import { ScheduleAlreadyRunning, type ScheduleOptions, ScheduleOverlapPolicy } from "@temporalio/client"
import { Effect } from "effect"
import { TemporalConnection } from "./Connection.ts"
import { temporalCall } from "./temporalCall.ts"

/** A schedule. Starts never overlap, and have no arguments: they would stay encrypted with the master key of the schedule's first day. */
export interface NewSchedule {
  /** Begins the ids of the schedule and of its workflows. */
  readonly name: string
  readonly workflowType: string
  readonly spec: ScheduleOptions["spec"]
  /** How long after its time a start is still made up for, if Temporal was down. */
  readonly catchupWindow: "1 minute" | "1 day"
}

/** Creates a schedule if it is missing. */
export const createSchedule = ({ catchupWindow, name, spec, workflowType }: NewSchedule) =>
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
          workflowType,
          taskQueue,
          workflowId: `${name}-${taskQueue}`
        }
      })
    ).pipe(
      Effect.catchIf(
        ({ cause }) => cause instanceof ScheduleAlreadyRunning,
        () => Effect.void
      )
    )
  })
