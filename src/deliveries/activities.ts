/** The activities that the worker runs, each bridged from its Effect. */
import { Context } from "@temporalio/activity"
import { Effect } from "effect"
import type { Activities, AttemptInput, NotifyInput, PingInput } from "../../workflows/contract.ts"
import { activity } from "../temporal/activity.ts"
import { TemporalConnection } from "../temporal/Connection.ts"
import { Notices } from "./Notices.ts"
import { PingSender } from "./Pings.ts"
import { Retention } from "./Retention.ts"
import { Stepper } from "./Stepper.ts"

/** Every activity, with the services that they stand on. */
export const activities = Effect.gen(function* () {
  const stepper = yield* Stepper
  const pings = yield* PingSender
  const notices = yield* Notices
  const retention = yield* Retention
  const temporal = yield* TemporalConnection
  const make = activity(yield* Effect.runtime<never>())

  const retain = make("retain", (_: undefined) => retention.retain)
  const cancelSelf = make("cancelSelf", (_: undefined) =>
    Effect.flatMap(temporal.ready, ({ client }) => {
      const { runId, workflowId = "" } = Context.current().info.workflowExecution ?? {}
      return Effect.tryPromise(() => client.workflow.getHandle(workflowId, runId).cancel())
    }).pipe(Effect.asVoid)
  )

  return {
    attempt: make("attempt", (input: AttemptInput) => stepper.step(input)),
    ping: make("ping", ({ eventId, webhookId }: PingInput) => pings.send(webhookId, eventId)),
    sendNotice: make("sendNotice", ({ noticeId }: NotifyInput) => notices.send(noticeId)),
    retain: () => retain(undefined),
    cancelSelf: () => cancelSelf(undefined)
  } satisfies Activities
})
