/**
 * Starts the workflows of deliveries, holds, recoveries and notices. It is in deliveries/ and not in dispatch/ because
 * deliveries/, recoveries/ and sending/, which start workflows too, are below dispatch/. A workflow has its delivery's id, so
 * starting twice is harmless: a running workflow stays, and one that has ended finds in its first step that the row has ended
 * too. If client and worker share a process, the first task comes back with the start (eager start).
 */
import { WorkflowExecutionAlreadyStartedError, type WorkflowOptions } from "@temporalio/client"
import { NamespaceNotFoundError, WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowNotFoundError } from "@temporalio/common"
import { Data, Duration, Effect, Option, Ref, Schema } from "effect"
import {
  type DeliverInput,
  type FirstAttemptsInput,
  type HoldInput,
  holdIdOf,
  type NotifyInput,
  type OfOrganization,
  type RecoverInput,
  searchKeys,
  signals,
  workflows
} from "../../workflows/contract.ts"
import { Settings } from "../settings/Settings.ts"
import { TemporalConnection, type TemporalUnavailable } from "../temporal/Connection.ts"
import { register } from "../temporal/searchAttributes.ts"
import { grpcErrorOf, INVALID_ARGUMENT, isUnknownAttribute } from "../temporal/temporalCall.ts"
import { hostOf } from "../webhooks/url.ts"

/** Timeout of starting a workflow. */
const START_MS = 5_000

/** An organization in a workflow's input, and in its search attributes if the namespace has them. */
export const organizationIn = (asIndexed: boolean, organizationId: string): OfOrganization => (asIndexed ? { organizationId } : {})

/** A delivery to start, with its search attributes. */
export const ToStart = Schema.Struct({
  id: Schema.String,
  organizationId: Schema.String,
  webhookId: Schema.String,
  eventId: Schema.String,
  entityId: Schema.String,
  kind: Schema.String,
  url: Schema.String
})
export type ToStart = typeof ToStart.Type

/** A workflow could not be started: Temporal is unavailable, or rejects this one. */
export class NotStarted extends Data.TaggedError("NotStarted")<{ readonly cause: unknown }> {
  override get message() {
    const error = grpcErrorOf(this.cause)
    return error === undefined ? (this.cause instanceof Error ? this.cause.message : String(this.cause)) : error.details || error.message
  }

  /** Whether only this start is invalid; otherwise the next would fail too, for example if the namespace is missing. */
  get refused(): boolean {
    if (this.cause instanceof NamespaceNotFoundError || this.cause instanceof WorkflowNotFoundError) return false
    const error = grpcErrorOf(this.cause)
    return error === undefined || error.code === INVALID_ARGUMENT
  }
}

export class WorkflowStarter extends Effect.Service<WorkflowStarter>()("custody/WorkflowStarter", {
  effect: Effect.gen(function* () {
    const temporal = yield* TemporalConnection
    const { temporalShowHosts, webhookRetrySchedule } = yield* Settings
    /** What a summary names: the endpoint's host, or the webhook if hosts are hidden. */
    const target = (webhookId: string, url: string): string => (temporalShowHosts === "on" ? hostOf(url) : webhookId)
    const waitsMs = webhookRetrySchedule.map(Duration.toMillis)
    /** Whether the namespace has the search attributes; a server that lost its state needs them registered again. */
    const indexed = yield* Ref.make(true)

    /** Starts a workflow, or finds it `running`. */
    const begin = (workflow: string, options: Omit<WorkflowOptions, "taskQueue"> & { readonly args: Array<unknown> }) =>
      Effect.flatMap(temporal.now, ({ client }) =>
        Effect.tryPromise({
          try: async () => {
            const start = () =>
              client.workflow.start(workflow, {
                ...options,
                taskQueue: temporal.taskQueue,
                workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
                workflowIdConflictPolicy: WorkflowIdConflictPolicy.FAIL,
                requestEagerStart: true,
                // A worker that is killed during a task is detected after this time.
                workflowTaskTimeout: "5 seconds"
              })
            await client.withDeadline(Date.now() + START_MS, start)
            return "started" as const
          },
          catch: (cause) => new NotStarted({ cause })
        })
      ).pipe(
        Effect.catchIf(
          (error) => error instanceof NotStarted && error.cause instanceof WorkflowExecutionAlreadyStartedError,
          () => Effect.succeed("running" as const)
        )
      )

    /** Wakes a workflow, or starts it if it is not running. */
    const signalWithStart = (workflow: string, options: Omit<WorkflowOptions, "taskQueue"> & { readonly args: Array<unknown> }) =>
      Effect.flatMap(temporal.now, ({ client }) =>
        Effect.tryPromise({
          try: () =>
            client.withDeadline(Date.now() + START_MS, () =>
              client.workflow.signalWithStart(workflow, {
                ...options,
                taskQueue: temporal.taskQueue,
                signal: signals.wake,
                workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE
              })
            ),
          catch: (cause) => new NotStarted({ cause })
        })
      )

    const startAs = (
      asIndexed: boolean,
      { entityId, eventId, id, kind, organizationId, url, webhookId }: ToStart,
      hostQueue: Option.Option<string>
    ) =>
      begin(workflows.deliver, {
        workflowId: id,
        args: [
          {
            deliveryId: id,
            webhookId,
            ...organizationIn(asIndexed, organizationId),
            waitsMs,
            slowQueue: temporal.slowQueue,
            retryQueue: temporal.retryQueue,
            indexed: asIndexed,
            statusAtEnd: "execution",
            ...(Option.isSome(hostQueue) ? { hostQueue: hostQueue.value } : {})
          } satisfies DeliverInput
        ],
        staticSummary: `${kind} → ${target(webhookId, url)}`,
        priority: { fairnessKey: webhookId },
        ...(asIndexed
          ? {
              typedSearchAttributes: [
                { key: searchKeys.organizationId, value: organizationId },
                { key: searchKeys.webhookId, value: webhookId },
                { key: searchKeys.eventId, value: eventId },
                { key: searchKeys.eventKind, value: kind },
                { key: searchKeys.entityId, value: entityId },
                { key: searchKeys.deliveryStatus, value: "PENDING" }
              ]
            }
          : {})
      })

    const startGroupAs = (asIndexed: boolean, workflowId: string, deliveries: ReadonlyArray<ToStart>) => {
      const webhookIds = [...new Set(deliveries.map((_) => _.webhookId))]
      const organizationIds = [...new Set(deliveries.map((_) => _.organizationId))]
      return begin(workflows.firstAttempts, {
        workflowId,
        args: [
          {
            deliveries: deliveries.map(({ id, organizationId, webhookId }) => ({
              deliveryId: id,
              webhookId,
              ...organizationIn(asIndexed, organizationId)
            })),
            waitsMs
          } satisfies FirstAttemptsInput
        ],
        staticSummary: `first attempts of ${deliveries.length} deliveries to ${webhookIds.length} webhooks`,
        ...(asIndexed
          ? {
              typedSearchAttributes: [
                { key: searchKeys.deliveryIds, value: deliveries.map(({ id }) => id) },
                { key: searchKeys.webhookIds, value: [...webhookIds, ...organizationIds] },
                { key: searchKeys.eventIds, value: [...new Set(deliveries.map(({ eventId }) => eventId))] }
              ]
            }
          : {})
      })
    }

    const ofWebhook = (asIndexed: boolean, organizationId: string, webhookId: string) =>
      asIndexed
        ? {
            typedSearchAttributes: [
              { key: searchKeys.organizationId, value: organizationId },
              { key: searchKeys.webhookId, value: webhookId }
            ]
          }
        : {}

    /** Registers missing attributes; if that is not allowed, continues without them. */
    const registerThenStart = <A, E, R>(start: (asIndexed: boolean) => Effect.Effect<A, E, R>) =>
      Effect.gen(function* () {
        const connected = yield* temporal.now
        const registered = yield* Effect.either(register(connected, temporal.namespace))
        if (registered._tag === "Right") return yield* start(true)
        if (yield* Ref.getAndSet(indexed, false))
          yield* Effect.logWarning("deliveries run without search attributes until an operator registers them; see docs/temporal.md")
        return yield* start(false)
      })

    const withSearchAttributes = <A, R>(start: (asIndexed: boolean) => Effect.Effect<A, NotStarted | TemporalUnavailable, R>) =>
      Effect.flatMap(Ref.get(indexed), (asIndexed) =>
        Effect.catchIf(
          start(asIndexed),
          (error) => error._tag === "NotStarted" && isUnknownAttribute(error.cause),
          () => registerThenStart(start)
        )
      )

    return {
      /**
       * Starts the delivery's workflow, or finds it `running`. `hostQueue` is the queue of the process in which its first
       * attempt is in flight already. Fails if Temporal is unavailable; the caller retries.
       */
      start: (delivery: ToStart, hostQueue: Option.Option<string> = Option.none()) =>
        withSearchAttributes((asIndexed) => startAs(asIndexed, delivery, hostQueue)),

      /** Starts one workflow for the first attempts of deliveries. Returns its id. Fails like `start`. */
      startGroup: (deliveries: ReadonlyArray<ToStart>) => {
        const workflowId = `first-attempts/${deliveries[0]?.id}`
        return Effect.as(
          withSearchAttributes((asIndexed) => startGroupAs(asIndexed, workflowId, deliveries)),
          workflowId
        )
      },

      /** Starts the workflow of a webhook's hold, or wakes it. Fails like `start`. */
      startHold: (organizationId: string, webhookId: string, url: string) =>
        withSearchAttributes((asIndexed) =>
          signalWithStart(workflows.hold, {
            workflowId: holdIdOf(webhookId),
            args: [{ webhookId, ...organizationIn(asIndexed, organizationId), width: 1, failures: 0 } satisfies HoldInput],
            staticSummary: `deliveries held → ${target(webhookId, url)}`,
            ...ofWebhook(asIndexed, organizationId, webhookId)
          })
        ),

      /** Starts the workflow of a recovery, or wakes it. Fails like `start`. */
      startRecovery: (recoveryId: string, organizationId: string, webhookId: string, url: string) =>
        withSearchAttributes((asIndexed) =>
          signalWithStart(workflows.recover, {
            workflowId: recoveryId,
            args: [{ recoveryId, ...organizationIn(asIndexed, organizationId) } satisfies RecoverInput],
            staticSummary: `missed events → ${target(webhookId, url)}`,
            ...ofWebhook(asIndexed, organizationId, webhookId)
          })
        ),

      /** Starts the workflow of a notice, or finds it `running`. Fails like `start`. */
      startNotice: (noticeId: string, organizationId: string, webhookId: string) =>
        withSearchAttributes((asIndexed) =>
          begin(workflows.notify, {
            workflowId: noticeId,
            args: [{ noticeId, ...organizationIn(asIndexed, organizationId) } satisfies NotifyInput],
            ...ofWebhook(asIndexed, organizationId, webhookId)
          })
        ),

      /** Runs a start with search attributes, or without them while the namespace has none. */
      withSearchAttributes,

      /** Waits for a workflow to end in any way, with a timeout. */
      ended: (workflowId: string, atMost: Duration.DurationInput) =>
        Effect.flatMap(temporal.now, ({ client }) => Effect.tryPromise(() => client.workflow.getHandle(workflowId).result())).pipe(
          Effect.timeout(atMost),
          Effect.ignore
        ),

      /** Makes a waiting delivery check whether its next attempt is due. Does nothing if its workflow is not running. */
      wake: (deliveryId: string) =>
        Effect.flatMap(temporal.now, ({ client }) =>
          Effect.ignore(Effect.tryPromise(() => client.workflow.getHandle(deliveryId).signal(signals.wake)))
        ),

      /** Uses the search attributes again from the next start: they may exist by then. */
      retrySearchAttributes: Ref.set(indexed, true)
    }
  })
}) {
  static readonly layer = this.Default
}
