/** The worker: Temporal workers that run deliveries, holds, recoveries, pings, notices, statements and retention. No other role sends requests to endpoints. */
import { Effect, Layer, Schedule } from "effect"
import { SigningKeys } from "../crypto/SigningKeys.ts"
import { WorkflowStarter } from "../deliveries/WorkflowStarter.ts"
import { DataDir } from "../embedded/DataDir.ts"
import { Notices } from "../notifications/Notices.ts"
import { RecoveryRunner } from "../recoveries/RecoveryRunner.ts"
import * as Retention from "../retention/Retention.ts"
import { AttemptRunner } from "../sending/AttemptRunner.ts"
import { AttemptsRepo } from "../sending/AttemptsRepo.ts"
import { activities } from "../sending/activities.ts"
import { FailureRecorder } from "../sending/FailureRecorder.ts"
import { FirstAttempts } from "../sending/FirstAttempts.ts"
import { HoldRunner } from "../sending/HoldRunner.ts"
import { PingSender } from "../sending/PingSender.ts"
import { WebhookClient } from "../sending/request/WebhookClient.ts"
import { StatementSealer } from "../statements/StatementSealer.ts"
import { schedule as statementSchedule } from "../statements/schedule.ts"
import { bundle } from "../temporal/bundle.ts"
import { TemporalConnection } from "../temporal/Connection.ts"
import { register } from "../temporal/searchAttributes.ts"
import { runWorkers } from "../temporal/Worker.ts"

/** The services of the activities. */
export const layer = Layer.mergeAll(FirstAttempts.layer, HoldRunner.layer, RecoveryRunner.layer).pipe(
  Layer.provideMerge(Layer.mergeAll(AttemptRunner.layer, PingSender.layer)),
  Layer.provide([AttemptsRepo.layer, FailureRecorder.layer, Layer.provide(WebhookClient.layer, SigningKeys.layer), WorkflowStarter.layer]),
  Layer.merge(Layer.mergeAll(Notices.layer, Retention.Retention.layer, Layer.provide(StatementSealer.layer, SigningKeys.layer)))
)

/** Runs the workers until interrupted; waits for Temporal first. */
export const run = Effect.gen(function* () {
  const connection = yield* TemporalConnection
  const dataDir = yield* DataDir
  const connected = yield* connection.ready
  // Repeated, because a Temporal server that lost its state has neither.
  const setUp = Effect.zipRight(
    Effect.catchAll(register(connected, connection.namespace), (error) =>
      Effect.logWarning("search attributes could not be registered; see docs/temporal.md", error)
    ),
    Effect.catchAll(Effect.zipRight(Retention.schedule, statementSchedule), (error) =>
      Effect.logWarning("the schedules of retention and statements could not be created", error)
    )
  )
  yield* setUp
  yield* Effect.forkScoped(Effect.schedule(setUp, Schedule.spaced("5 minutes")))
  const code = yield* bundle(dataDir.at("cache"))
  yield* Effect.logInfo("worker started").pipe(Effect.annotateLogs({ taskQueue: connection.taskQueue }))
  const { hostQueue, namespace, noticeQueue, retryQueue, slowQueue, taskQueue } = connection
  yield* runWorkers({
    connection: connected.connection,
    dataConverter: connected.dataConverter,
    namespace,
    taskQueue,
    slowQueue,
    retryQueue,
    hostQueue,
    noticeQueue,
    bundle: code,
    activities: yield* activities
  })
}).pipe(Effect.scoped)
