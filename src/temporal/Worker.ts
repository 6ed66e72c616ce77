/**
 * The workers of a process: for workflows with the attempts inside their tasks, for slow first attempts, for retries, for
 * quarantined deliveries, for pings, for endpoints that are down and the deliveries held for them, for recoveries and for
 * mail. Each has its own slots, so neither a hanging endpoint or mail server nor a flood of retries delays first
 * attempts. On shutdown they accept no new work and finish what is in flight.
 */
import type { DataConverter } from "@temporalio/common"
import { type NativeConnection, Worker, type WorkerOptions } from "@temporalio/worker"
import { Data, Duration, Effect, Schedule } from "effect"
import { type Activities, holdQueueOf, pingQueueOf, quarantineQueueOf, recoveryQueueOf } from "../../workflows/contract.ts"

/** What the workers need. */
export interface Work {
  readonly connection: NativeConnection
  readonly dataConverter: DataConverter
  readonly namespace: string
  readonly taskQueue: string
  readonly slowQueue: string
  readonly retryQueue: string
  readonly hostQueue: string
  readonly noticeQueue: string
  readonly bundle: { readonly code: string }
  readonly activities: Activities
}

/** How long attempts in flight may take on shutdown; longer ones are interrupted. */
const GRACE = Duration.seconds(12),
  FORCE = Duration.seconds(13)

const common = ({
  connection,
  dataConverter,
  namespace
}: Work): Pick<
  WorkerOptions,
  "connection" | "dataConverter" | "namespace" | "shutdownGraceTime" | "shutdownForceTime" | "maxHeartbeatThrottleInterval"
> => ({
  connection,
  dataConverter,
  namespace,
  // By default a heartbeat is sent after four fifths of its timeout: a delay of 0.8 s would end a live attempt.
  maxHeartbeatThrottleInterval: "1 second",
  shutdownGraceTime: Duration.toMillis(GRACE),
  shutdownForceTime: Duration.toMillis(FORCE)
})

const workflowWorker = (work: Work): WorkerOptions => ({
  ...common(work),
  taskQueue: work.taskQueue,
  workflowBundle: work.bundle,
  activities: work.activities,
  enableNonLocalActivities: true,
  // A workflow task holds its slot while an attempt runs inside it, so there are many more slots than cores.
  maxConcurrentWorkflowTaskExecutions: 400,
  maxConcurrentLocalActivityExecutions: 500,
  maxConcurrentActivityTaskExecutions: 50,
  maxCachedWorkflows: 500,
  // A killed worker is detected after this time, and its workflows continue elsewhere.
  stickyQueueScheduleToStartTimeout: "1 second"
})

const attemptWorker = (work: Work, taskQueue: string, concurrency = 1_000): WorkerOptions => ({
  ...common(work),
  taskQueue,
  activities: { attempt: work.activities.attempt },
  maxConcurrentActivityTaskExecutions: concurrency
})

const pingWorker = (work: Work): WorkerOptions => ({
  ...common(work),
  taskQueue: pingQueueOf(work.taskQueue),
  activities: { ping: work.activities.ping },
  maxConcurrentActivityTaskExecutions: 500
})

const holdWorker = (work: Work): WorkerOptions => ({
  ...common(work),
  taskQueue: holdQueueOf(work.taskQueue),
  activities: { hold: work.activities.hold },
  maxConcurrentActivityTaskExecutions: 100
})

/** Few at a time, so that however many recoveries run, most of the process is there for new events. */
const recoveryWorker = (work: Work): WorkerOptions => ({
  ...common(work),
  taskQueue: recoveryQueueOf(work.taskQueue),
  activities: { recover: work.activities.recover },
  maxConcurrentActivityTaskExecutions: 4
})

const noticeWorker = (work: Work): WorkerOptions => ({
  ...common(work),
  taskQueue: work.noticeQueue,
  activities: { sendNotice: work.activities.sendNotice },
  maxConcurrentActivityTaskExecutions: 20
})

/** A worker could not be created, failed, or stopped although nobody asked it to. */
class WorkerEnded extends Data.TaggedError("WorkerEnded")<{ readonly message: string; readonly cause?: unknown }> {}

const failed = (cause: unknown) => new WorkerEnded({ message: cause instanceof Error ? cause.message : String(cause), cause })

const run = (options: WorkerOptions) =>
  Effect.gen(function* () {
    const worker = yield* Effect.tryPromise({ try: () => Worker.create(options), catch: failed })
    yield* Effect.async<never, WorkerEnded>((resume) => {
      const finished = worker.run()
      finished.then(
        () => resume(new WorkerEnded({ message: "it stopped unexpectedly" })),
        (cause) => resume(failed(cause))
      )
      return Effect.promise(async () => {
        if (worker.getState() === "RUNNING") worker.shutdown()
        await finished.catch(() => {})
      })
    })
  })

/** Runs the workers until interrupted; restarts one that ends unexpectedly. */
export const runWorkers = (work: Work) =>
  Effect.all(
    [
      workflowWorker(work),
      attemptWorker(work, work.slowQueue),
      attemptWorker(work, work.retryQueue),
      { ...attemptWorker(work, work.hostQueue), maxConcurrentActivityTaskPolls: 1 },
      attemptWorker(work, quarantineQueueOf(work.taskQueue), 1),
      pingWorker(work),
      holdWorker(work),
      recoveryWorker(work),
      noticeWorker(work)
    ].map((options) =>
      run(options).pipe(
        Effect.tapErrorCause((cause) => Effect.logError(`the worker of ${options.taskQueue} ended`, cause)),
        Effect.retry(Schedule.spaced("2 seconds"))
      )
    ),
    { concurrency: "unbounded", discard: true }
  )
