/**
 * The workers of a process, one for each task queue: workflows with the first attempts inside their tasks, later attempts
 * with probes and drains, pings, mail, and background work. Each has its own slots, so neither a hanging endpoint or mail server
 * nor a flood of retries delays first attempts. On shutdown they accept no new work and finish what is in flight.
 */
import type { DataConverter } from "@temporalio/common"
import { type NativeConnection, Worker, type WorkerOptions } from "@temporalio/worker"
import { Data, Duration, Effect, Schedule } from "effect"
import { type Activities, taskQueuesOf } from "../../../workflows/contract.ts"

/** What the workers need. */
export interface Work {
  readonly connection: NativeConnection
  readonly dataConverter: DataConverter
  readonly namespace: string
  readonly taskQueue: string
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

/** Slots of background work, and of mail: a mail server that hangs must not delay recoveries and statements. */
const BACKGROUND = 20,
  MAIL = 10

const workersOf = (work: Work) => {
  const queues = taskQueuesOf(work.taskQueue)
  const { announceExpiringKeys, attempt, drain, ping, recover, retain, sealStatements, sendNotice } = work.activities
  const attempts: WorkerOptions = {
    ...common(work),
    taskQueue: queues.attempts,
    activities: { attempt, drain },
    maxConcurrentActivityTaskExecutions: 1_000
  }
  const others: ReadonlyArray<WorkerOptions> = [
    {
      ...common(work),
      taskQueue: queues.deliveries,
      workflowBundle: work.bundle,
      activities: work.activities,
      enableNonLocalActivities: false,
      // A workflow task holds its slot while first attempts run inside it, so there are many more slots than cores.
      maxConcurrentWorkflowTaskExecutions: 400,
      maxConcurrentLocalActivityExecutions: 500,
      maxCachedWorkflows: 500,
      // A killed worker is detected after this time, and its workflows continue elsewhere.
      stickyQueueScheduleToStartTimeout: "1 second"
    },
    { ...common(work), taskQueue: queues.pings, activities: { ping }, maxConcurrentActivityTaskExecutions: 500 },
    { ...common(work), taskQueue: queues.mail, activities: { sendNotice }, maxConcurrentActivityTaskExecutions: MAIL },
    {
      ...common(work),
      taskQueue: queues.background,
      // A notice that began before mail had its own queue goes on in this one.
      activities: { announceExpiringKeys, recover, retain, sealStatements, sendNotice },
      maxConcurrentActivityTaskExecutions: BACKGROUND
    }
  ]
  return { attempts, others }
}

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

/**
 * Runs the workers until interrupted; restarts one that ends unexpectedly. `whileAble` runs an effect while the process can
 * make attempts: the worker that makes later attempts stops meanwhile, so that another process takes them.
 */
export const runWorkers = (work: Work, whileAble: <E>(attempts: Effect.Effect<unknown, E>) => Effect.Effect<unknown, E>) => {
  const { attempts, others } = workersOf(work)
  const surviving = (options: WorkerOptions) =>
    run(options).pipe(
      Effect.tapErrorCause((cause) => Effect.logError(`the worker of ${options.taskQueue} ended`, cause)),
      Effect.retry(Schedule.spaced("2 seconds"))
    )
  return Effect.all([whileAble(surviving(attempts)), ...others.map(surviving)], { concurrency: "unbounded", discard: true })
}
