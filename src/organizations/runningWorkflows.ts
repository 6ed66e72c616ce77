/** Terminates the workflows of an organization that is being deleted. Decision D-56. */
import { WorkflowNotFoundError } from "@temporalio/common"
import { Effect, Schedule } from "effect"
import { TemporalConnection } from "../temporal/Connection.ts"

const CONCURRENCY = 16
const REASON = "its organization is being deleted"
/** Waits for Temporal's list, which is updated a moment after the workflow, that many times. */
const LISTS = 20

/** Whether the failed call says that the workflow is not running. */
const isGone = (error: unknown) => error instanceof WorkflowNotFoundError

/** Terminates workflows by their ids; returns how many were running. Temporal has to be available. */
export const terminate = (workflowIds: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { client } = yield* (yield* TemporalConnection).ready
    const ended = yield* Effect.forEach(
      workflowIds,
      (id) =>
        Effect.tryPromise({ try: () => client.workflow.getHandle(id).terminate(REASON), catch: (error) => error }).pipe(
          Effect.as(1),
          Effect.catchIf(isGone, () => Effect.succeed(0)),
          Effect.retry(Schedule.recurs(5).pipe(Schedule.addDelay(() => "1 second"))),
          Effect.orDie
        ),
      { concurrency: CONCURRENCY }
    )
    return ended.reduce((sum, one) => sum + one, 0)
  })

/**
 * Terminates what Temporal lists as running for a filter, until it lists nothing. Returns how many were running; none if the
 * namespace lacks the search attributes, with a warning.
 */
export const terminateListed = (filter: string) =>
  Effect.gen(function* () {
    const temporal = yield* TemporalConnection
    const { client } = yield* temporal.ready
    // Another deployment in the same namespace may have an organization with this id.
    const query = `(${filter}) AND TaskQueue = "${temporal.taskQueue}" AND ExecutionStatus = "Running"`
    const listed = Effect.tryPromise(async () => {
      const ids: Array<string> = []
      for await (const { workflowId } of client.workflow.list({ query })) {
        ids.push(workflowId)
        if (ids.length === 1_000) break
      }
      return ids
    })
    let count = 0
    for (let look = 0; look < LISTS; look++) {
      const ids = yield* listed
      if (ids.length === 0) return count
      const ended = yield* terminate(ids)
      count += ended
      // Those that ended already are still listed for a moment.
      if (ended < ids.length) yield* Effect.sleep("500 millis")
      else look = 0
    }
    return count
  }).pipe(
    Effect.catchTag("UnknownException", (error) =>
      Effect.as(
        Effect.logWarning(
          `Temporal cannot list the workflows of ${filter}; those that wait end when they next look at their delivery`,
          error
        ),
        0
      )
    )
  )
