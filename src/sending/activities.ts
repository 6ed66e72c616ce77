/** The worker's activities, each bridged from its Effect. */
import { Context } from "@temporalio/activity"
import { Effect } from "effect"
import type {
  Activities,
  AttemptInput,
  FirstAttemptsInput,
  HoldInput,
  NotifyInput,
  PingInput,
  RecoverStep,
  SealInput
} from "../../workflows/contract.ts"
import { Notices } from "../notifications/Notices.ts"
import { RecoveryRunner } from "../recoveries/RecoveryRunner.ts"
import { Retention } from "../retention/Retention.ts"
import { StatementSealer } from "../statements/StatementSealer.ts"
import { activity } from "../temporal/activity.ts"
import { TemporalConnection } from "../temporal/Connection.ts"
import { AttemptRunner } from "./AttemptRunner.ts"
import { FirstAttempts } from "./FirstAttempts.ts"
import { HoldRunner } from "./HoldRunner.ts"
import { PingSender } from "./PingSender.ts"

/** How long one part of sealing may start further vaults, in ms. */
const SEAL_MS = 20_000

/** Every activity, with the services that it needs. */
export const activities = Effect.gen(function* () {
  const attemptRunner = yield* AttemptRunner
  const firstAttempts = yield* FirstAttempts
  const holds = yield* HoldRunner
  const recoveries = yield* RecoveryRunner
  const pings = yield* PingSender
  const notices = yield* Notices
  const retention = yield* Retention
  const statements = yield* StatementSealer
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
    attempt: make("attempt", (input: AttemptInput) => attemptRunner.step(input)),
    firstAttempts: make("firstAttempts", (input: FirstAttemptsInput) => firstAttempts.run(input)),
    ping: make("ping", ({ eventId, webhookId }: PingInput) => pings.send(webhookId, eventId)),
    hold: make("hold", (input: HoldInput) => holds.step(input)),
    recover: make("recover", (input: RecoverStep) => recoveries.step(input)),
    sendNotice: make("sendNotice", ({ noticeId }: NotifyInput) => notices.send(noticeId)),
    retain: () => retain(undefined),
    sealStatements: make("sealStatements", ({ after }: SealInput) => statements.seal(after, SEAL_MS)),
    cancelSelf: () => cancelSelf(undefined)
  } satisfies Activities
})
