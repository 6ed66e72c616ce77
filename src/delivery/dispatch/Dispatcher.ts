/**
 * The dispatcher: from a committed event to a running workflow. It claims events from the outbox (OutboxRepo.ts) and starts
 * one workflow for what a claim found. The next claim is made when the last one was full, or its first attempts have begun
 * or wait for slots of their webhooks, and only a few claims are open at a time: what arrives meanwhile shares the next
 * one, and a backlog waits in the outbox, where organizations take turns. If a dispatcher crashes in between, the claim's
 * command is sent again.
 *
 * Notifications only wake it; it also polls, because a notification can be lost. While Temporal is unavailable, or no worker
 * can make attempts, events stay undispatched. Several dispatchers may run. Spec: Emission and log. Architecture, What must
 * hold 1, 6.
 */

import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Deferred, Effect, FiberId, Schema } from "effect"
import { OUTBOX_CHANNEL } from "../../events/log/EventLog.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { type ChannelListener, Notifications } from "../../runtime/database/Notifications.ts"
import { failpoint } from "../../runtime/failpoint.ts"
import { presence } from "../../runtime/processes/Presence.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { loggingFailure } from "../../runtime/telemetry/loggingFailure.ts"
import { TemporalConnection } from "../../runtime/temporal/Connection.ts"
import { BEGUN_CHANNEL, COMMANDS_CHANNEL } from "../../runtime/temporal/commands.ts"
import { firstWait } from "../deliveries/retrySchedule.ts"
import { NotStarted, WorkflowStarter } from "../deliveries/WorkflowStarter.ts"
import { CommandRelay } from "./CommandRelay.ts"
import { type Claim, OutboxRepo } from "./OutboxRepo.ts"
import { Sweep } from "./Sweep.ts"

/** Most open claims of a dispatcher: those whose first attempts no worker has taken up. */
const OPEN = 4
/** How long it waits for the first attempts of a claim to begin before it looks, in ms. */
const BEGIN_MS = 1_200
/** Poll interval without notifications, and after a failure. */
const POLL = "3 seconds",
  AGAIN = "1 second"
/** Interval of sweeps, and how soon one that failed or that another process was to make is tried again. */
const SWEEP = "60 seconds",
  SWEEP_AGAIN = "5 seconds"
/** For how long a start that succeeded means that Temporal is available, and the state of workers is remembered, in ms. */
const AVAILABLE_MS = 50,
  WORKERS_MS = 1_000

const decodeKeys = decodeRows(Schema.Struct({ key: Schema.String })),
  decodeWorkers = decodeRows(Schema.Struct({ any: Schema.Boolean, canSend: Schema.Boolean }))

export class Dispatcher extends Effect.Service<Dispatcher>()("custody/Dispatcher", {
  scoped: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const outbox = yield* OutboxRepo
    const notifications = yield* Notifications
    const temporal = yield* TemporalConnection
    const starter = yield* WorkflowStarter
    const relay = yield* CommandRelay
    const sweep = yield* Sweep
    const { webhookRetrySchedule } = yield* Settings
    const { keep } = yield* presence("dispatcher")
    const waitsFirst = firstWait(webhookRetrySchedule) > 0
    /** Open claims by key; each is completed when its first attempts have begun. */
    const open = new Map<string, Deferred.Deferred<void>>()
    let startedAt = Number.NEGATIVE_INFINITY
    let isOldest = false

    const close = (key: string) => {
      const claim = open.get(key)
      if (claim === undefined) return
      open.delete(key)
      Deferred.unsafeDone(claim, Effect.void)
    }

    /** Closes claims whose commands are gone: a notification may be lost. */
    const closeBegun = Effect.gen(function* () {
      const keys = [...open.keys()]
      if (keys.length === 0) return
      const left = new Set((yield* decodeKeys(sql`SELECT key FROM commands WHERE key = ANY(${keys}::text[])`)).map(({ key }) => key))
      for (const key of keys) if (!left.has(key)) close(key)
    })

    const [workers] = yield* Effect.cachedInvalidateWithTTL(
      Effect.map(
        decodeWorkers(sql`
          SELECT EXISTS (SELECT 1 FROM processes WHERE role = 'worker') AS any, EXISTS (SELECT 1 FROM processes WHERE role = 'worker' AND can_send) AS "canSend"`),
        ([row]) => row?.any !== true || row.canSend
      ),
      WORKERS_MS
    )

    /** Whether claimed events can be sent: Temporal is available, and not every worker says that it can make no attempts. */
    const canSend = Effect.suspend(() =>
      performance.now() - startedAt < AVAILABLE_MS
        ? workers
        : Effect.flatMap(temporal.isAvailable, (is) => (is ? workers : Effect.succeed(false)))
    )

    /** Starts the workflow of a claim. If that fails, its command is sent again. */
    const start = ({ deliveries, key }: Claim) =>
      Effect.matchEffect(starter.startClaim(deliveries), {
        onSuccess: () =>
          Effect.sync(() => {
            failpoint("started")
            startedAt = performance.now()
            if (waitsFirst) close(key)
          }),
        onFailure: (error) => {
          startedAt = Number.NEGATIVE_INFINITY
          if (!(error instanceof NotStarted) || !error.refused)
            return Effect.logWarning(`workflows cannot be started now: ${error.message}`)
          // It never stops the claims.
          close(key)
          return Effect.logError(
            `Temporal rejected the workflow of ${deliveries.length} deliveries, which is started again: ${error.message}`
          )
        }
      })

    /** Makes a claim completely: a dispatcher that is stopped starts everything that it has claimed. */
    const claim = Effect.uninterruptible(
      Effect.gen(function* () {
        const claimed = yield* outbox.claim
        failpoint("dispatched")
        for (const { key } of claimed.claims) open.set(key, Deferred.unsafeMake(FiberId.none))
        yield* Effect.forEach(claimed.claims, start, { concurrency: "unbounded", discard: true })
        return claimed
      })
    )

    /** Waits until one of these claims has begun, and looks if it takes long. */
    const untilBegun = (claims: Iterable<Deferred.Deferred<void>>) =>
      Effect.flatMap(Effect.timeoutOption(Effect.raceAll([...claims].map((one) => Deferred.await(one))), BEGIN_MS), (begun) =>
        begun._tag === "Some" ? Effect.void : closeBegun
      )

    /** Dispatches until nothing waits or can be sent. Returns whether any event waits. */
    const dispatch: Effect.Effect<boolean, SqlError.SqlError> = Effect.gen(function* () {
      while (yield* outbox.waits) {
        if (!(yield* canSend)) return true
        if (open.size >= OPEN) {
          yield* untilBegun(open.values())
          if (open.size >= OPEN) return true
          continue
        }
        const { any, claims, full } = yield* claim
        if (!any) return true
        const last = open.get(claims.at(-1)?.key ?? "")
        if (!full && last !== undefined) yield* untilBegun([last])
      }
      return false
    })

    /** Runs when a channel has a notification, and regularly; sooner if the last run left something. */
    const keepPolling = <E, R>(what: string, announced: ChannelListener, poll: Effect.Effect<boolean, E, R>) =>
      Effect.forever(
        Effect.flatMap(loggingFailure(what, poll), (left) => Effect.timeoutOption(announced.next, left === false ? POLL : AGAIN))
      )

    return {
      /** Runs until interrupted. */
      run: Effect.gen(function* () {
        yield* keep({
          seen: (peers) =>
            Effect.sync(() => {
              isOldest = peers.isOldest
            })
        })
        const recorded = yield* notifications.on(OUTBOX_CHANNEL)
        yield* notifications.on(BEGUN_CHANNEL, close)
        const commands = yield* notifications.on(COMMANDS_CHANNEL)
        yield* Effect.forkScoped(keepPolling("dispatching", recorded, dispatch))
        yield* Effect.forkScoped(keepPolling("sending commands", commands, relay.relay))
        const sweeps = Effect.gen(function* () {
          if (!isOldest || !(yield* workers)) return false
          yield* starter.retrySearchAttributes
          yield* sweep.run
          return true
        })
        return yield* Effect.forever(
          Effect.flatMap(loggingFailure("sweeping", sweeps), (done) => Effect.sleep(done === true ? SWEEP : SWEEP_AGAIN))
        )
      }).pipe(Effect.scoped)
    }
  })
}) {
  static readonly layer = this.Default
}
