/**
 * Starting the workflow of a delivery. The workflow's id is the delivery's, so starting twice is harmless: a running
 * one stays, and one that has ended finds, in its first step, that the row has ended too. Where client and worker are
 * one process the first task comes back with the start (eager start).
 */
import { WorkflowIdConflictPolicy, WorkflowIdReusePolicy } from "@temporalio/common"
import { Duration, Effect } from "effect"
import { type DeliverInput, searchKeys, workflows } from "../../workflows/contract.ts"
import { Settings } from "../settings/Settings.ts"
import { TemporalConnection } from "../temporal/Connection.ts"

/** A delivery to start, with what operators find it by. */
export interface ToStart {
  readonly id: string
  readonly webhookId: string
  readonly eventId: string
  readonly entityId: string
  readonly kind: string
  readonly url: string
}

export class Starter extends Effect.Service<Starter>()("custody/Starter", {
  effect: Effect.gen(function* () {
    const temporal = yield* TemporalConnection
    const { webhookRetrySchedule } = yield* Settings
    const waitsMs = webhookRetrySchedule.map(Duration.toMillis)

    return {
      /** Starts the delivery's workflow, or finds it running. Fails when Temporal is away; the sweeper comes again. */
      start: ({ entityId, eventId, id, kind, url, webhookId }: ToStart) =>
        Effect.flatMap(temporal.now, ({ client }) =>
          Effect.tryPromise(() =>
            client.workflow.start(workflows.deliver, {
              workflowId: id,
              taskQueue: temporal.taskQueue,
              args: [{ deliveryId: id, webhookId, waitsMs, retryQueue: temporal.retryQueue } satisfies DeliverInput],
              workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
              workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
              requestEagerStart: true,
              // A worker that is killed inside a task is noticed after this.
              workflowTaskTimeout: "5 seconds",
              staticSummary: `${kind} → ${new URL(url).hostname}`,
              priority: { fairnessKey: webhookId },
              typedSearchAttributes: [
                { key: searchKeys.webhookId, value: webhookId },
                { key: searchKeys.eventId, value: eventId },
                { key: searchKeys.eventKind, value: kind },
                { key: searchKeys.entityId, value: entityId },
                { key: searchKeys.deliveryStatus, value: "PENDING" }
              ]
            })
          )
        )
    }
  })
}) {
  static readonly layer = this.Default
}
