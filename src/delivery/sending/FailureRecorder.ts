/**
 * Records an attempt that was not answered with 2xx, in one transaction: it locks the webhook's health, reads what
 * `decide` needs, and writes what it says. Nothing else extends a streak, and its row is locked meanwhile, so each cause has
 * one notice however many attempts fail concurrently. Decision D-23.
 */

import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import { Data, Duration, Effect, Schema } from "effect"
import { recordOfService } from "../../access/audit/AuditTrail.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { failpoint } from "../../runtime/failpoint.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { insertCommands } from "../../runtime/temporal/commands.ts"
import { openQueues } from "../webhooks/queue.ts"
import { type Recorded, SHARD } from "./AttemptsRepo.ts"
import { type Decision, decide, isOfDrain, NO_STREAK, type Rules, type Streak } from "./decide.ts"
import { makeDisable } from "./disable.ts"
import { end, moveDelivery, retryAfter } from "./moveDelivery.ts"
import { type Cause, makeNotices } from "./recordNotices.ts"

const At = Schema.NullOr(Schema.Number)
const HealthRow = Schema.Struct({
  consecutiveFailures: Schema.Number,
  failingSince: At,
  firstFailedDelivery: Schema.NullOr(Schema.String),
  severalDeliveries: Schema.Boolean,
  goneAt: At,
  lastFailureAt: At,
  downFailures: Schema.Number,
  downSince: At,
  downDelivery: Schema.NullOr(Schema.String),
  downSeveral: Schema.Boolean
})
const Facts = Schema.Struct({
  now: Schema.Number,
  status: Schema.Literal("ACTIVE", "PAUSED", "DISABLED"),
  organizationId: Schema.String,
  down: Schema.Boolean,
  probes: Schema.Number,
  /** Null if the delivery is gone. */
  deliveryStatus: Schema.NullOr(Schema.Literal("PENDING", "RETRYING", "HELD", "DELIVERED", "FAILED", "CANCELED")),
  isLast: Schema.Boolean,
  used: Schema.Number,
  /** Whether the outcome was recorded now, and not before. */
  newlyRecorded: Schema.Boolean
})
type Facts = typeof Facts.Type

const decodeHealth = decodeRows(HealthRow),
  decodeFacts = decodeRows(Facts)

const millis = (column: string) => `(extract(epoch FROM h.${column}) * 1000)::float8`
const healthColumns = `h.consecutive_failures AS "consecutiveFailures", ${millis("failing_since")} AS "failingSince",
  h.first_failed_delivery AS "firstFailedDelivery", h.several_deliveries AS "severalDeliveries", ${millis("gone_at")} AS "goneAt",
  ${millis("last_failure_at")} AS "lastFailureAt", h.down_failures AS "downFailures", ${millis("down_since")} AS "downSince",
  h.down_delivery AS "downDelivery", h.down_several AS "downSeveral"`

/** Results of attempts that were answered; others count as unanswered. */
const counters: Readonly<Record<string, "rejected" | "errored">> = { "3xx": "rejected", "4xx": "rejected", "5xx": "errored" }

/** The webhook is no longer active, although the failure that disables it was decided for an active one. */
class NoLongerActive extends Data.TaggedError("NoLongerActive") {}

/** The decision, and the delivery's status after it. */
interface Consequence {
  readonly decision: Decision
  /** The delivery's status now. */
  readonly status: string
}

export class FailureRecorder extends Effect.Service<FailureRecorder>()("custody/FailureRecorder", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const settings = yield* Settings
    const disable = makeDisable(sql)
    const notices = makeNotices(sql, settings)
    const rulesOf = (waitsMs: ReadonlyArray<number>): Rules => ({
      waitsMs,
      disableAfterMs: Duration.toMillis(settings.webhookDisableAfter),
      hold: settings.webhookHold === "auto",
      holdAfterMs: Duration.toMillis(settings.webhookHoldAfter),
      probeSeconds: settings.webhookProbeSchedule.map(Duration.toSeconds),
      jitter: Math.random()
    })

    /** Locks the webhook's health before any delivery, so that all failures take locks in the same order. Null if the webhook is gone. */
    const lockHealth = (webhookId: string): Effect.Effect<Streak | null, SqlError> =>
      Effect.map(
        decodeHealth(sql`
          INSERT INTO webhook_health AS h (webhook_id) SELECT id FROM webhooks WHERE id = ${webhookId}
          ON CONFLICT (webhook_id) DO UPDATE SET webhook_id = excluded.webhook_id RETURNING ${sql.literal(healthColumns)}`),
        ([row]) => row ?? null
      )

    /** Completes the attempt's row, and reads what decides. A statement that begins after the lock. */
    const complete = ({ answer, deliveryId, number, webhookId }: Recorded) =>
      Effect.map(
        decodeFacts(sql`
          WITH attempt AS (
            UPDATE delivery_attempts SET result = ${answer.result}, http_status = ${answer.httpStatus}, latency_ms = ${answer.latencyMs},
              body_snippet = ${answer.bodySnippet}, detail = ${answer.detail}
            WHERE delivery_id = ${deliveryId} AND number = ${number} AND (result IS NULL OR result = 'interrupted') RETURNING 1
          )
          SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now, w.status,
            w.organization_id AS "organizationId", coalesce(q.down, false) AS down, coalesce(q.probes, 0) AS probes,
            (SELECT d.status FROM deliveries d WHERE d.id = ${deliveryId}) AS "deliveryStatus",
            NOT EXISTS (SELECT 1 FROM delivery_attempts l WHERE l.delivery_id = ${deliveryId} AND l.number > ${number}) AS "isLast",
            (SELECT count(*) FROM delivery_attempts t WHERE t.delivery_id = ${deliveryId} AND t.number < ${number} AND t.uses_schedule
              AND t.result <> 'interrupted')::int AS used,
            EXISTS (SELECT 1 FROM attempt) AS "newlyRecorded"
          FROM webhooks w LEFT JOIN webhook_queues q ON q.webhook_id = w.id WHERE w.id = ${webhookId}`),
        ([row]) => row
      )

    const timeOf = (at: number | null) => (at === null ? null : new Date(Math.round(at)).toISOString())

    const writeStreak = (webhookId: string, streak: Streak, result: string) => sql`
      UPDATE webhook_health SET consecutive_failures = ${streak.consecutiveFailures}, failing_since = ${timeOf(streak.failingSince)}::timestamptz,
        first_failed_delivery = ${streak.firstFailedDelivery}, several_deliveries = ${streak.severalDeliveries},
        gone_at = ${timeOf(streak.goneAt)}::timestamptz, last_failure_at = ${timeOf(streak.lastFailureAt)}::timestamptz,
        last_failure_result = ${result}, down_failures = ${streak.downFailures}, down_since = ${timeOf(streak.downSince)}::timestamptz,
        down_delivery = ${streak.downDelivery}, down_several = ${streak.downSeveral}
      WHERE webhook_id = ${webhookId}`

    /** The delivery's next state, and its status then; undefined if it does not change. */
    const writeNext = ({ deliveryId, number, wakes, via, webhookId }: Recorded, { next, usesSchedule }: Decision) =>
      Effect.gen(function* () {
        if (!usesSchedule)
          yield* sql`UPDATE delivery_attempts SET uses_schedule = false WHERE delivery_id = ${deliveryId} AND number = ${number}`
        const inQueue = isOfDrain(via)
        const move = (change: Statement.Fragment, otherwise: "if started" | "never") =>
          moveDelivery(sql, deliveryId, change, wakes ? "always" : inQueue ? otherwise : "never")
        switch (next._tag) {
          case "RetryAt":
            yield* move(retryAfter(sql, next.waitMs), "if started")
            return "RETRYING"
          case "Again":
            if (inQueue) return "HELD"
            yield* moveDelivery(sql, deliveryId, sql`status = 'RETRYING', next_attempt_at = clock_timestamp()`, "never")
            return "RETRYING"
          case "Hold":
            // Its queue may have ended meanwhile.
            yield* sql`WITH ${openQueues(sql, [webhookId], !inQueue)} SELECT 1`
            yield* move(
              sql`status = 'HELD', next_attempt_at = NULL, started = d.started AND ${inQueue},
                probed_at = CASE WHEN ${via === "probe"} THEN clock_timestamp() ELSE d.probed_at END`,
              "never"
            )
            return "HELD"
          case "Exhausted":
            yield* move(end(sql, "FAILED", sql`'EXHAUSTED'`), "if started")
            yield* count(webhookId, "failed")
            return "FAILED"
          case "Disabled":
            yield* move(
              end(sql, "CANCELED", sql`CASE WHEN w.deleted_at IS NULL THEN 'WEBHOOK_DISABLED' ELSE 'WEBHOOK_DELETED' END`),
              "if started"
            )
            return "CANCELED"
          default:
            return undefined
        }
      })

    /** Counts an attempt by its result, or a delivery that failed. */
    const count = (webhookId: string, what: "failed" | "rejected" | "errored" | "unanswered") => sql`
      INSERT INTO webhook_counters AS c (webhook_id, slot, shard, ${sql(what)})
      VALUES (${webhookId}, date_bin('10 minutes', clock_timestamp(), 'epoch'), ${SHARD}, 1)
      ON CONFLICT (webhook_id, slot, shard) DO UPDATE SET ${sql(what)} = c.${sql(what)} + 1`

    /** Begins, postpones or ends the hold; its drain hears of the first and the last. */
    const writeHold = (webhookId: string, { hold, probeInSeconds }: Decision) => {
      const due = sql`clock_timestamp() + make_interval(secs => ${probeInSeconds ?? 0})`
      if (hold === "begins")
        return sql`
          WITH begun AS (
            INSERT INTO webhook_queues AS q (webhook_id, down, down_at, due, live, retries_queued) VALUES (${webhookId}, true, clock_timestamp(), ${due}, true, false)
            ON CONFLICT (webhook_id) DO UPDATE SET down = true, down_at = excluded.down_at, due = excluded.due, probes = 0, live = true, retries_queued = false
            RETURNING q.webhook_id
          )
          ${insertCommands(sql, sql`SELECT 'drain/' || webhook_id FROM begun`)}`
      if (hold === "ends")
        return sql`
          WITH ended AS (
            UPDATE webhook_queues SET down = false, due = clock_timestamp() WHERE webhook_id = ${webhookId} AND down RETURNING webhook_id
          )
          ${insertCommands(sql, sql`SELECT 'drain/' || webhook_id FROM ended`)}`
      return probeInSeconds === null
        ? Effect.void
        : sql`UPDATE webhook_queues SET probes = probes + 1, due = ${due} WHERE webhook_id = ${webhookId} AND down`
    }

    return {
      /**
       * Records the outcome of an attempt and what follows from it. `waitsMs` is the delivery's schedule. Idempotent: an
       * outcome that was recorded before changes nothing. It is decided again if the webhook is paused or disabled meanwhile.
       */
      record: (recorded: Recorded, waitsMs: ReadonlyArray<number>) =>
        Effect.retry(
          sql.withTransaction(
            Effect.gen(function* () {
              const { answer, deliveryId, via, webhookId } = recorded
              const streak = yield* lockHealth(webhookId)
              const facts = yield* complete(recorded)
              failpoint("failure-written")
              const outcome = { ...answer, via }
              const delivery = {
                id: deliveryId,
                status: facts?.deliveryStatus ?? "CANCELED",
                used: facts?.used ?? 0,
                isLast: facts?.isLast === true && facts.newlyRecorded
              }
              const webhook = {
                status: facts?.status ?? "DISABLED",
                down: facts?.down ?? false,
                probes: facts?.probes ?? 0,
                streak: streak ?? NO_STREAK
              }
              const decision = decide(delivery, webhook, outcome, facts?.now ?? 0, rulesOf(waitsMs))
              if (facts === undefined || streak === null || !facts.newlyRecorded)
                return { decision, status: facts?.deliveryStatus ?? "CANCELED" } satisfies Consequence
              const status = (yield* writeNext(recorded, decision)) ?? delivery.status
              if (decision.streak !== null) yield* writeStreak(webhookId, decision.streak, answer.result)
              yield* writeHold(webhookId, decision)
              yield* react(recorded, facts, decision)
              // Last, as a success does: neither waits for the other's queue meanwhile.
              yield* count(webhookId, counters[answer.result] ?? "unanswered")
              return { decision, status } satisfies Consequence
            })
          ),
          { until: (error) => error instanceof SqlError }
        )
    }

    /** The consequences beyond the delivery: the disable, the audit log, the notices. */
    function react(recorded: Recorded, facts: Facts, decision: Decision) {
      return Effect.gen(function* () {
        const { answer, deliveryId, webhookId } = recorded
        const { disables, hold, notices: wanted, streak } = decision
        if (streak === null) return
        const cause: Cause = {
          webhookId,
          deliveryId,
          since: timeOf(streak.failingSince) ?? "",
          failures: streak.consecutiveFailures,
          lastResult: answer.httpStatus === 0 ? answer.result : `${answer.result} (${answer.httpStatus})`
        }
        if (disables !== null) {
          const disabled = yield* disable(webhookId, disables, facts.organizationId)
          if (disabled === undefined) return yield* new NoLongerActive()
          // The delivery of this attempt is canceled already.
          const canceled = disabled.canceled + (decision.next._tag === "Disabled" ? 1 : 0)
          yield* notices.disabled(cause, { ...disabled, canceled }, disables === "GONE")
        }
        if (hold === "begins") {
          yield* recordOfService(sql, facts.organizationId, "webhook.held", webhookId, { lastResult: { old: null, new: cause.lastResult } })
          yield* notices.held(cause, timeOf(facts.now) ?? "")
        }
        if (wanted.includes("streak")) yield* notices.streak(cause, hold === "begins" || hold === "goes on")
        if (wanted.includes("failed")) yield* notices.failed(cause)
      })
    }
  })
}) {
  static readonly layer = this.Default
}
