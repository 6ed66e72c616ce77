/** Terminates the workflows of an organization that is being deleted. Decision D-56. */
import { WorkflowNotFoundError } from "@temporalio/common"
import { Effect, Schedule } from "effect"
import { TemporalConnection, TemporalUnavailable } from "../../runtime/temporal/Connection.ts"
import {
  grpcErrorOf,
  isUnknownAttribute,
  PERMISSION_DENIED,
  type TemporalCallFailed,
  temporalCall
} from "../../runtime/temporal/temporalCall.ts"

const CONCURRENCY = 16
const REASON = "its organization is being deleted"
/** Reads in a row of Temporal's list in which workflows have ended already: the list is updated a moment after a workflow. */
const LISTS = 20

/** Makes a call up to six times, a second apart; then Temporal counts as unavailable. */
const retried = <A, R>(call: Effect.Effect<A, TemporalCallFailed, R>): Effect.Effect<A, TemporalUnavailable, R> =>
  call.pipe(
    Effect.retry(Schedule.spaced("1 second").pipe(Schedule.intersect(Schedule.recurs(5)))),
    Effect.mapError(
      ({ message }) =>
        new TemporalUnavailable({
          message: `Temporal cannot terminate workflows of the organization: ${message}. Run the command again to delete the rest.`
        })
    )
  )

/** Terminates workflows by their ids; returns how many were running. Fails if Temporal is unavailable. */
export const terminate = (workflowIds: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { client } = yield* (yield* TemporalConnection).ready
    const ended = yield* Effect.forEach(
      workflowIds,
      (id) =>
        temporalCall(() => client.workflow.getHandle(id).terminate(REASON)).pipe(
          Effect.as(1),
          Effect.catchIf(
            ({ cause }) => cause instanceof WorkflowNotFoundError,
            () => Effect.succeed(0)
          ),
          retried
        ),
      { concurrency: CONCURRENCY }
    )
    return ended.reduce((sum, one) => sum + one, 0)
  })

/**
 * Terminates what Temporal lists as running for a filter, until it lists nothing. Returns how many were running; none, with a
 * warning, if the namespace lacks the search attributes or does not allow lists. Fails if Temporal is unavailable.
 */
export const terminateListed = (filter: string) =>
  Effect.gen(function* () {
    const temporal = yield* TemporalConnection
    const { client } = yield* temporal.ready
    // Another deployment in the same namespace may have an organization with this id.
    const query = `(${filter}) AND TaskQueue = "${temporal.taskQueue}" AND ExecutionStatus = "Running"`
    const listed = temporalCall(async () => {
      const ids: Array<string> = []
      for await (const { workflowId } of client.workflow.list({ query })) {
        ids.push(workflowId)
        if (ids.length === 1_000) break
      }
      return ids
    }).pipe(
      Effect.catchIf(
        ({ cause }) => isUnknownAttribute(cause) || grpcErrorOf(cause)?.code === PERMISSION_DENIED,
        (error) =>
          Effect.as(
            Effect.logWarning(`Temporal cannot list the workflows of ${filter}; waiting workflows end at their next step`, error),
            []
          )
      ),
      retried
    )
    let count = 0
    for (let reads = 0; reads < LISTS; reads++) {
      const ids = yield* listed
      if (ids.length === 0) return count
      const ended = yield* terminate(ids)
      count += ended
      // Those that ended already are still listed for a moment.
      if (ended < ids.length) yield* Effect.sleep("500 millis")
      else reads = 0
    }
    return count
  })
