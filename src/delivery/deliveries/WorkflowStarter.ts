/**
 * Starts and signals workflows. A delivery's workflow has the delivery's id, so starting twice is harmless: a running
 * workflow stays, and one that is started for a delivery that has ended finds that in its first step. If client and worker share a
 * process, the first task comes back with the start (eager start). Each task's fairness key is its organization.
 */
import { type WorkflowClient, WorkflowExecutionAlreadyStartedError, type WorkflowOptions } from "@temporalio/client"
import { NamespaceNotFoundError, WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowNotFoundError } from "@temporalio/common"
import { Data, Duration, Effect, Ref, Schema } from "effect"
import {
  type DeliverInput,
  type DrainInput,
  drainIdOf,
  type NotifyInput,
  type RecoverInput,
  searchKeys,
  signals,
  workflows
} from "../../../workflows/contract.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { TemporalConnection, type TemporalUnavailable } from "../../runtime/temporal/Connection.ts"
import { register } from "../../runtime/temporal/searchAttributes.ts"
import { grpcErrorOf, INVALID_ARGUMENT, isUnknownAttribute } from "../../runtime/temporal/temporalCall.ts"
import { hostOf } from "../webhooks/url.ts"

/** Timeout of starting or signaling a workflow. */
const CALL_MS = 5_000
/** The fairness key of a group of several organizations, which took turns in its claim. */
const MIXED = "mixed"

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

/** A webhook whose drain or recovery is to be started. */
export interface OfWebhook {
  readonly organizationId: string
  readonly webhookId: string
  readonly url: string
}

/** What a notice is about: a webhook, or something else of the organization. */
export interface OfNotice {
  readonly organizationId: string
  readonly webhookId: string | null
}

/** A workflow could not be started or signaled: Temporal is unavailable, or rejects this call. */
export class NotStarted extends Data.TaggedError("NotStarted")<{ readonly cause: unknown }> {
  override get message() {
    const error = grpcErrorOf(this.cause)
    return error === undefined ? (this.cause instanceof Error ? this.cause.message : String(this.cause)) : error.details || error.message
  }

  /** Whether only this call is invalid; otherwise the next would fail too, for example if the namespace is missing. */
  get refused(): boolean {
    if (this.cause instanceof NamespaceNotFoundError || this.cause instanceof WorkflowNotFoundError) return false
    const error = grpcErrorOf(this.cause)
    return error === undefined || error.code === INVALID_ARGUMENT
  }
}

type Options = Omit<WorkflowOptions, "taskQueue" | "args"> & { readonly args: Array<unknown> }

export class WorkflowStarter extends Effect.Service<WorkflowStarter>()("custody/WorkflowStarter", {
  effect: Effect.gen(function* () {
    const temporal = yield* TemporalConnection
    const { temporalShowHosts, webhookRetrySchedule } = yield* Settings
    /** What a summary names: the endpoint's host, or the webhook if hosts are hidden. */
    const target = ({ url, webhookId }: Pick<OfWebhook, "url" | "webhookId">): string =>
      temporalShowHosts === "on" ? hostOf(url) : webhookId
    const waitsMs = webhookRetrySchedule.map(Duration.toMillis)
    /** Whether the namespace has the search attributes; a server that lost its state needs them registered again. */
    const indexed = yield* Ref.make(true)

    const call = (make: (workflow: WorkflowClient) => Promise<unknown>) =>
      Effect.flatMap(temporal.now, ({ client }) =>
        Effect.tryPromise({
          try: () => client.withDeadline(Date.now() + CALL_MS, () => make(client.workflow)),
          catch: (cause) => new NotStarted({ cause })
        })
      ).pipe(Effect.asVoid)
    /** Does nothing if the call fails for this reason. */
    const unless = <A, R>(effect: Effect.Effect<A, NotStarted | TemporalUnavailable, R>, reason: new (...args: never) => Error) =>
      Effect.catchIf(
        effect,
        (error) => error instanceof NotStarted && error.cause instanceof reason,
        () => Effect.void
      )

    const common = {
      taskQueue: temporal.taskQueue,
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
      // A worker that is killed during a task is detected after this time.
      workflowTaskTimeout: "5 seconds"
    } as const

    /** Starts a workflow unless it is running. */
    const begin = (type: string, options: Options) =>
      unless(
        call((workflow) =>
          workflow.start(type, { ...common, ...options, workflowIdConflictPolicy: WorkflowIdConflictPolicy.FAIL, requestEagerStart: true })
        ),
        WorkflowExecutionAlreadyStartedError
      )

    /** Wakes a workflow, or starts it if it is not running. */
    const wakeOrBegin = (type: string, signalArgs: Array<unknown>, options: Options) =>
      call((workflow) => workflow.signalWithStart(type, { ...common, ...options, signal: signals.wake, signalArgs }))

    const ofDelivery = (asIndexed: boolean, delivery: ToStart, first: boolean): Options & { readonly workflowId: string } => {
      const { entityId, eventId, id, kind, organizationId, webhookId } = delivery
      return {
        workflowId: id,
        args: [{ deliveries: [{ deliveryId: id, webhookId, organizationId }], waitsMs, indexed: asIndexed, first } satisfies DeliverInput],
        staticSummary: `${kind} → ${target(delivery)}`,
        priority: { fairnessKey: organizationId },
        ...(asIndexed
          ? {
              typedSearchAttributes: [
                { key: searchKeys.organizationId, value: organizationId },
                { key: searchKeys.webhookId, value: webhookId },
                { key: searchKeys.eventId, value: eventId },
                { key: searchKeys.eventKind, value: kind },
                { key: searchKeys.entityId, value: entityId },
                { key: searchKeys.deliveryStatus, value: first ? "PENDING" : "RETRYING" }
              ]
            }
          : {})
      }
    }

    const ofGroup = (asIndexed: boolean, deliveries: ReadonlyArray<ToStart>): Options & { readonly workflowId: string } => {
      const webhookIds = [...new Set(deliveries.map((_) => _.webhookId))]
      const [organizationId = MIXED, ...others] = new Set(deliveries.map((_) => _.organizationId))
      return {
        workflowId: `group/${deliveries[0]?.id}`,
        args: [
          {
            deliveries: deliveries.map(({ id, organizationId, webhookId }) => ({ deliveryId: id, webhookId, organizationId })),
            waitsMs,
            indexed: asIndexed,
            first: true
          } satisfies DeliverInput
        ],
        staticSummary: `first attempts of ${deliveries.length} deliveries to ${webhookIds.length} webhooks`,
        priority: { fairnessKey: others.length === 0 ? organizationId : MIXED },
        ...(asIndexed
          ? {
              typedSearchAttributes: [
                { key: searchKeys.deliveryIds, value: deliveries.map(({ id }) => id) },
                { key: searchKeys.webhookIds, value: webhookIds }
              ]
            }
          : {})
      }
    }

    const ofWebhook = (asIndexed: boolean, { organizationId, webhookId }: OfNotice) => ({
      priority: { fairnessKey: organizationId },
      ...(asIndexed
        ? {
            typedSearchAttributes: [
              { key: searchKeys.organizationId, value: organizationId },
              ...(webhookId === null ? [] : [{ key: searchKeys.webhookId, value: webhookId }])
            ]
          }
        : {})
    })

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

    /** A call to a workflow that need not be running. */
    const ifRunning = (make: (workflow: WorkflowClient) => Promise<unknown>) => unless(call(make), WorkflowNotFoundError)

    return {
      /** Starts one workflow for the first attempts of what a claim found. Fails if Temporal is unavailable or rejects it. */
      startClaim: (deliveries: ReadonlyArray<ToStart>) =>
        withSearchAttributes((asIndexed) => {
          const [only] = deliveries
          return begin(
            workflows.deliver,
            deliveries.length === 1 && only !== undefined ? ofDelivery(asIndexed, only, true) : ofGroup(asIndexed, deliveries)
          )
        }),

      /** Wakes the delivery's workflow, with the time in ms until its next step is due; starts it if it is not running. Fails like `startClaim`. */
      wakeDelivery: (delivery: ToStart, waitMs: number) =>
        withSearchAttributes((asIndexed) => wakeOrBegin(workflows.deliver, [waitMs], ofDelivery(asIndexed, delivery, false))),

      /** Makes a delivery's workflow read its row, if it is running. */
      wakeIfRunning: (deliveryId: string) => ifRunning((workflow) => workflow.getHandle(deliveryId).signal(signals.wake, 0)),

      /** Requests the cancellation of a delivery's workflow, if it is running. */
      cancelIfRunning: (deliveryId: string) => ifRunning((workflow) => workflow.getHandle(deliveryId).cancel()),

      /** Starts a webhook's drain, or wakes it. Fails like `startClaim`. */
      wakeDrain: (webhook: OfWebhook) =>
        withSearchAttributes((asIndexed) =>
          wakeOrBegin(workflows.drain, [], {
            workflowId: drainIdOf(webhook.webhookId),
            args: [{ webhookId: webhook.webhookId, organizationId: webhook.organizationId, waitsMs, failures: 0 } satisfies DrainInput],
            staticSummary: `queue → ${target(webhook)}`,
            ...ofWebhook(asIndexed, webhook)
          })
        ),

      /** Starts the workflow of a recovery, or wakes it. Fails like `startClaim`. */
      wakeRecovery: (recoveryId: string, webhook: OfWebhook) =>
        withSearchAttributes((asIndexed) =>
          wakeOrBegin(workflows.recover, [], {
            workflowId: recoveryId,
            args: [{ recoveryId } satisfies RecoverInput],
            staticSummary: `missed events → ${target(webhook)}`,
            ...ofWebhook(asIndexed, webhook)
          })
        ),

      /** Starts the workflow of a notice, unless it is running. Fails like `startClaim`. */
      startNotice: (noticeId: string, about: OfNotice) =>
        withSearchAttributes((asIndexed) =>
          begin(workflows.notify, {
            workflowId: noticeId,
            args: [{ noticeId } satisfies NotifyInput],
            ...ofWebhook(asIndexed, about)
          })
        ),

      /** Runs a start with search attributes, or without them while the namespace has none. */
      withSearchAttributes,

      /** Uses the search attributes again from the next start: they may exist by then. */
      retrySearchAttributes: Ref.set(indexed, true)
    }
  })
}) {
  static readonly layer = this.Default
}
