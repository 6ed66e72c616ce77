/** The worker's activities, each bridged from its Effect. */
import { Context } from "@temporalio/activity"
import { Effect, Fiber } from "effect"
import type {
  Activities,
  AttemptInput,
  DrainInput,
  FirstAttemptsInput,
  NotifyInput,
  PingInput,
  RecoverStep,
  SealInput
} from "../../../workflows/contract.ts"
import { StatementSealer } from "../../custody/statements/StatementSealer.ts"
import { Retention } from "../../events/retention/Retention.ts"
import { activity } from "../../runtime/temporal/activity.ts"
import { TemporalConnection } from "../../runtime/temporal/Connection.ts"
import { ExpiringKeys } from "../notices/ExpiringKeys.ts"
import { Notices } from "../notices/Notices.ts"
import { RecoveryRunner } from "../recoveries/RecoveryRunner.ts"
import { Attempts } from "./Attempts.ts"
import { IN_FLIGHT } from "./attemptOutcome.ts"
import { Drain } from "./Drain.ts"
import { FirstAttempts, PATIENCE_MS } from "./FirstAttempts.ts"
import { PingSender } from "./PingSender.ts"
import { WorkerSlots } from "./Slots.ts"

/** How long one part of sealing may start further vaults, in ms. */
const SEAL_MS = 20_000

/** Every activity, with the services that it needs. */
export const activities = Effect.gen(function* () {
  const attempts = yield* Attempts
  const firstAttempts = yield* FirstAttempts
  const slots = yield* WorkerSlots
  const drain = yield* Drain
  const recoveries = yield* RecoveryRunner
  const pings = yield* PingSender
  const notices = yield* Notices
  const retention = yield* Retention
  const statements = yield* StatementSealer
  const expiring = yield* ExpiringKeys
  const temporal = yield* TemporalConnection
  const make = activity(yield* Effect.runtime<never>())

  /** A later attempt: one that finds no slot within a second joins its webhook's queue. */
  const attempt = ({ after, cancel, waitsMs, ...member }: AttemptInput) =>
    Effect.gen(function* () {
      if (cancel) return yield* attempts.cancel(member.deliveryId)
      // An organization that has taken its part does not keep the steps of others waiting.
      const patience = slots.hasSlot(member) ? PATIENCE_MS : 0
      const release = yield* slots.take(member, performance.now() + patience)
      if (release === undefined) return yield* attempts.enqueue(member)
      const started = yield* attempts.start({ ...member, waitsMs, after, via: "retry" }, release)
      if (started === undefined) return IN_FLIGHT
      return yield* Effect.onInterrupt(Fiber.join(started.fiber), () => Effect.sync(started.detach))
    })

  const retain = make("retain", (_: undefined) => retention.retain)
  const announceExpiringKeys = make("announceExpiringKeys", (_: undefined) => expiring.announce)
  const cancelSelf = make("cancelSelf", (_: undefined) =>
    Effect.flatMap(temporal.ready, ({ client }) => {
      const { runId, workflowId = "" } = Context.current().info.workflowExecution ?? {}
      return Effect.tryPromise(() => client.workflow.getHandle(workflowId, runId).cancel())
    }).pipe(Effect.asVoid)
  )

  return {
    firstAttempts: make("firstAttempts", (input: FirstAttemptsInput) => firstAttempts.run(input)),
    attempt: make("attempt", attempt),
    drain: make("drain", (input: DrainInput) => drain.step(input)),
    ping: make("ping", (input: PingInput) => pings.send(input)),
    recover: make("recover", (input: RecoverStep) => recoveries.step(input)),
    sendNotice: make("sendNotice", ({ noticeId }: NotifyInput) => notices.send(noticeId)),
    retain: () => retain(undefined),
    sealStatements: make("sealStatements", ({ after }: SealInput) => statements.seal(after, SEAL_MS)),
    announceExpiringKeys: () => announceExpiringKeys(undefined),
    cancelSelf: () => cancelSelf(undefined)
  } satisfies Activities
})
