/** The worker: Temporal workers that run deliveries, queues, recoveries, pings, notices, statements, retention and expiring keys. No other role sends requests to endpoints. */
import { Effect, Layer, Schedule } from "effect"
import { StatementSealer } from "../../custody/statements/StatementSealer.ts"
import { schedule as statementSchedule } from "../../custody/statements/schedule.ts"
import * as ExpiringKeys from "../../delivery/notices/ExpiringKeys.ts"
import { Notices } from "../../delivery/notices/Notices.ts"
import { RecoveryRunner } from "../../delivery/recoveries/RecoveryRunner.ts"
import { Attempts } from "../../delivery/sending/Attempts.ts"
import { AttemptsRepo } from "../../delivery/sending/AttemptsRepo.ts"
import { activities } from "../../delivery/sending/activities.ts"
import { Drain } from "../../delivery/sending/Drain.ts"
import { FailureRecorder } from "../../delivery/sending/FailureRecorder.ts"
import { FirstAttempts } from "../../delivery/sending/FirstAttempts.ts"
import { PingSender } from "../../delivery/sending/PingSender.ts"
import { QueueRepo } from "../../delivery/sending/QueueRepo.ts"
import { WebhookClient } from "../../delivery/sending/request/WebhookClient.ts"
import { WorkerSlots } from "../../delivery/sending/Slots.ts"
import { WorkerProcess } from "../../delivery/sending/WorkerProcess.ts"
import * as Retention from "../../events/retention/Retention.ts"
import { SigningKeys } from "../../runtime/crypto/SigningKeys.ts"
import { DataDir } from "../../runtime/embedded/DataDir.ts"
import { whileResolverAnswers } from "../../runtime/processes/resolver.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { bundle } from "../../runtime/temporal/bundle.ts"
import { TemporalConnection } from "../../runtime/temporal/Connection.ts"
import { register } from "../../runtime/temporal/searchAttributes.ts"
import { runWorkers } from "../../runtime/temporal/Worker.ts"

/** The services of the activities. */
export const layer = Layer.mergeAll(FirstAttempts.layer, Drain.layer).pipe(
  Layer.provideMerge(Layer.mergeAll(Attempts.layer, PingSender.layer, WorkerSlots.layer)),
  Layer.provide([AttemptsRepo.layer, FailureRecorder.layer, QueueRepo.layer, Layer.provide(WebhookClient.layer, SigningKeys.layer)]),
  Layer.provideMerge(WorkerProcess.layer),
  Layer.merge(
    Layer.mergeAll(
      RecoveryRunner.layer,
      Notices.layer,
      ExpiringKeys.ExpiringKeys.layer,
      Retention.Retention.layer,
      Layer.provide(StatementSealer.layer, SigningKeys.layer)
    )
  )
)

/** Runs the workers until interrupted; waits for Temporal first. */
export const run = Effect.gen(function* () {
  const connection = yield* TemporalConnection
  const dataDir = yield* DataDir
  const { webhookDnsServers } = yield* Settings
  const connected = yield* connection.ready
  // Repeated, because a Temporal server that lost its state has neither.
  const setUp = Effect.zipRight(
    Effect.catchAll(register(connected, connection.namespace), (error) =>
      Effect.logWarning("search attributes could not be registered; see docs/temporal.md", error)
    ),
    Effect.catchAll(Effect.all([Retention.schedule, statementSchedule, ExpiringKeys.schedule], { discard: true }), (error) =>
      Effect.logWarning("the schedules of retention, statements and expiring keys could not be created", error)
    )
  )
  yield* setUp
  yield* Effect.forkScoped(Effect.schedule(setUp, Schedule.spaced("5 minutes")))
  const code = yield* bundle(dataDir.at("cache"))
  yield* (yield* WorkerProcess).joined
  yield* Effect.logInfo("worker started").pipe(Effect.annotateLogs({ taskQueue: connection.taskQueue }))
  const { namespace, taskQueue } = connection
  yield* runWorkers(
    {
      connection: connected.connection,
      dataConverter: connected.dataConverter,
      namespace,
      taskQueue,
      bundle: code,
      activities: yield* activities
    },
    (attempts) => whileResolverAnswers(webhookDnsServers, attempts)
  )
}).pipe(Effect.scoped)
