/**
 * Recording a failed attempt: one transaction that finishes the attempt row, moves the delivery on, counts the streak,
 * and decides what follows from it: a notice, or that the webhook is disabled. Nobody else writes a streak upwards,
 * and its row is locked meanwhile, so each cause has one notice however many attempts fail at once. Decision D-23.
 */
import { SqlClient } from "@effect/sql"
import { Duration, Effect } from "effect"
import { record, SERVICE } from "../audit/AuditTrail.ts"
import * as EventLog from "../events/EventLog.ts"
import { type Facts, noticeTexts } from "../notifications/noticeTexts.ts"
import { Settings } from "../settings/Settings.ts"
import * as Id from "../values/Id.ts"
import { announceCancellation, requestCancellation } from "../webhooks/cancelWaiting.ts"
import { hostOf } from "../webhooks/url.ts"
import { STREAK_ATTEMPTS, STREAK_HOURS } from "../webhooks/WebhooksRepo.ts"
import { lastAttempt, type Recorded, SHARD } from "./AttemptsRepo.ts"

/** Time between two 410 answers after which an endpoint counts as gone, in minutes. */
const GONE_MINUTES = 5
/** Deliveries that wait are counted up to this for the notice of a disable. */
const COUNTED = 10_000
/** A failure that comes more than so many hours after the one before begins a new streak. */
const STREAK_GAP_HOURS = 48

interface Streak {
  readonly consecutiveFailures: number
  readonly failingSince: string
  readonly severalDeliveries: boolean
  /** Whether the streak is old enough to disable, to be told of, and whether a 410 came long enough ago. */
  readonly disableDue: boolean
  readonly noticeDue: boolean
  readonly goneBefore: boolean
}

/** What followed from a failure. */
export interface Consequence {
  /** The delivery's status now. */
  readonly status: string
  readonly notices: ReadonlyArray<string>
  /** Whether it disabled the webhook. */
  readonly disabled: boolean
}

export class FailureRecorder extends Effect.Service<FailureRecorder>()("custody/FailureRecorder", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { webhookDisableAfter, webhookRetrySchedule } = yield* Settings
    const texts = noticeTexts({ schedule: webhookRetrySchedule, disableAfter: webhookDisableAfter })

    const isLast = lastAttempt(sql)

    /** Finishes the attempt, and moves the delivery on unless a later attempt was begun: the outcome then came late. */
    const finish = ({ answer, deliveryId, number }: Recorded, waitMs: number | undefined) =>
      Effect.gen(function* () {
        const attempts = yield* sql`
          UPDATE delivery_attempts SET result = ${answer.result}, http_status = ${answer.httpStatus}, latency_ms = ${answer.latencyMs},
            body_snippet = ${answer.bodySnippet}
          WHERE delivery_id = ${deliveryId} AND number = ${number} AND (result IS NULL OR result = 'interrupted') RETURNING number`
        const moved = yield* sql<{ status: string }>`
          UPDATE deliveries SET status = ${waitMs === undefined ? "FAILED" : "RETRYING"}, failure_reason = ${waitMs === undefined ? "EXHAUSTED" : null},
            next_attempt_at = ${waitMs === undefined ? sql`NULL` : sql`clock_timestamp() + ${waitMs} * interval '1 millisecond'`}
          WHERE id = ${deliveryId} AND status IN ('PENDING', 'RETRYING') AND ${isLast(deliveryId, number)} RETURNING status`
        const [now] = moved.length > 0 ? moved : yield* sql<{ status: string }>`SELECT status FROM deliveries WHERE id = ${deliveryId}`
        return { first: attempts.length > 0, moved: moved.length > 0, status: now?.status ?? "CANCELED" }
      })

    /**
     * Takes the webhook's turn, before any delivery is touched, so that all failures take their locks in one order. Returns
     * whether its streak is stale.
     */
    const takeTurn = (webhookId: string) =>
      Effect.map(
        sql<{ stale: boolean }>`
          SELECT consecutive_failures > 0 AND last_failure_at < clock_timestamp() - make_interval(hours => ${STREAK_GAP_HOURS}) AS stale
          FROM webhook_health WHERE webhook_id = ${webhookId} FOR UPDATE`,
        ([row]) => row?.stale ?? false
      )

    /** Ends a streak whose last failure is long ago: the next failure begins a new one. */
    const endStreak = (webhookId: string) => sql`
      UPDATE webhook_health SET consecutive_failures = 0, failing_since = NULL, first_failed_delivery = NULL,
        several_deliveries = false, gone_at = NULL WHERE webhook_id = ${webhookId}`

    /** Counts the failure and returns the streak as it is now. */
    const count = ({ answer, deliveryId, webhookId }: Recorded) =>
      Effect.map(
        sql<Streak>`
          INSERT INTO webhook_health AS h (webhook_id, consecutive_failures, failing_since, first_failed_delivery, gone_at, last_failure_at, last_failure_result)
          VALUES (${webhookId}, 1, clock_timestamp(), ${deliveryId}, CASE WHEN ${answer.httpStatus === 410} THEN clock_timestamp() END,
            clock_timestamp(), ${answer.result})
          ON CONFLICT (webhook_id) DO UPDATE SET consecutive_failures = h.consecutive_failures + 1,
            failing_since = coalesce(h.failing_since, clock_timestamp()),
            first_failed_delivery = coalesce(h.first_failed_delivery, excluded.first_failed_delivery),
            several_deliveries = h.several_deliveries OR coalesce(h.first_failed_delivery <> excluded.first_failed_delivery, false),
            gone_at = coalesce(h.gone_at, excluded.gone_at), last_failure_at = clock_timestamp(), last_failure_result = excluded.last_failure_result
          RETURNING consecutive_failures AS "consecutiveFailures", failing_since AS "failingSince", several_deliveries AS "severalDeliveries",
            consecutive_failures >= ${STREAK_ATTEMPTS}
              AND failing_since <= clock_timestamp() - ${Duration.toMillis(webhookDisableAfter)} * interval '1 millisecond' AS "disableDue",
            consecutive_failures >= ${STREAK_ATTEMPTS} AND failing_since <= clock_timestamp() - make_interval(hours => ${STREAK_HOURS}) AS "noticeDue",
            coalesce(gone_at <= clock_timestamp() - make_interval(mins => ${GONE_MINUTES}), false) AS "goneBefore"`,
        ([row]) => row
      )

    const countExhausted = (webhookId: string) => sql`
      INSERT INTO webhook_counters AS c (webhook_id, slot, shard, failed)
      VALUES (${webhookId}, date_bin('10 minutes', clock_timestamp(), 'epoch'), ${SHARD}, 1)
      ON CONFLICT (webhook_id, slot, shard) DO UPDATE SET failed = c.failed + 1`

    interface Target {
      readonly url: string
      readonly email: string
      readonly organizationId: string
      readonly entityIds: ReadonlyArray<string>
    }

    const notice = (
      webhookId: string,
      cause: string,
      recipient: string,
      { body, subject }: { readonly subject: string; readonly body: string }
    ) =>
      Effect.map(
        sql<{ id: string }>`
          INSERT INTO notices (id, webhook_id, organization_id, cause, recipient, subject, body)
          SELECT ${Id.make("ntc")}, w.id, w.organization_id, ${cause}, ${recipient}, ${subject}, ${body} FROM webhooks w WHERE w.id = ${webhookId}
          ON CONFLICT (cause) DO NOTHING RETURNING id`,
        (rows) => rows.map(({ id }) => id)
      )

    const cancel = (deliveryId: string) => sql`
      UPDATE deliveries SET status = 'CANCELED', failure_reason = 'WEBHOOK_DISABLED', next_attempt_at = NULL WHERE id = ${deliveryId}`

    const countWaiting = (webhookId: string) =>
      Effect.map(
        sql<{ count: number }>`
          SELECT count(*) FROM (SELECT 1 FROM deliveries d WHERE d.webhook_id = ${webhookId} AND d.status IN ('PENDING', 'RETRYING')
            LIMIT ${COUNTED + 1}) waiting`,
        ([row]) => row?.count ?? 0
      )

    /**
     * Disables the webhook, has what waits canceled, and records the event for each of its entities. Undefined when it is
     * not active.
     */
    const disable = Effect.fnUntraced(function* (webhookId: string, reason: "FAILING" | "GONE", { entityIds, organizationId }: Target) {
      const [row] = yield* sql<{ at: string }>`
        UPDATE webhooks SET status = 'DISABLED', disabled_reason = ${reason}, disabled_at = now(), updated_at = now()
        WHERE id = ${webhookId} AND status = 'ACTIVE' RETURNING disabled_at AS at`
      if (row === undefined) return undefined
      const canceled = yield* countWaiting(webhookId)
      yield* requestCancellation(sql, webhookId, "WEBHOOK_DISABLED")
      yield* announceCancellation(sql)
      yield* EventLog.record(
        sql,
        entityIds.map((entityId) => ({
          kind: "webhook.disabled" as const,
          date: row.at,
          organizationId,
          entityId,
          vaultId: null,
          audience: entityIds,
          data: { webhookId, webhook: { id: webhookId, status: "DISABLED" as const, disabledReason: reason, disabledAt: row.at } }
        }))
      )
      yield* record(sql, [
        {
          organizationId,
          actor: SERVICE,
          action: "webhook.disabled",
          target: { type: "webhook", id: webhookId },
          changes: { status: { old: "ACTIVE", new: "DISABLED" }, disabledReason: { old: null, new: reason } }
        }
      ])
      return { at: row.at, canceled }
    })

    /** Whether a notice of a delivery that failed for good went out within a day. */
    const toldToday = (webhookId: string) =>
      Effect.map(
        sql`SELECT 1 FROM notices WHERE webhook_id = ${webhookId} AND cause LIKE 'failed/%' AND created_at > now() - interval '1 day' LIMIT 1`,
        (rows) => rows.length > 0
      )

    const targetOf = (webhookId: string) =>
      Effect.map(
        sql<Target>`
          SELECT w.url, w.notification_email AS email, w.organization_id AS "organizationId",
            ARRAY(SELECT we.entity_id FROM webhook_entities we WHERE we.webhook_id = w.id ORDER BY we.entity_id)::text[] AS "entityIds"
          FROM webhooks w WHERE w.id = ${webhookId} AND w.status = 'ACTIVE'`,
        ([target]) => target
      )

    const nothing = { disabled: false, notices: [] as ReadonlyArray<string> }

    /** What a streak calls for, in the order of its weight: the disable tells more than any other notice. */
    const react = Effect.fnUntraced(function* (recorded: Recorded, streak: Streak, exhausted: boolean) {
      const { answer, deliveryId, webhookId } = recorded
      const gone = answer.httpStatus === 410 && streak.goneBefore
      const failing = streak.disableDue && streak.severalDeliveries
      if (!gone && !failing && !streak.noticeDue && !exhausted) return nothing
      const target = yield* targetOf(webhookId)
      if (target === undefined) return nothing
      const facts = {
        webhookId,
        host: hostOf(target.url),
        since: streak.failingSince,
        failures: streak.consecutiveFailures,
        lastResult: answer.httpStatus === 0 ? answer.result : `${answer.result} (${answer.httpStatus})`,
        deliveryId
      }
      if (gone || failing) {
        const disabled = yield* disable(webhookId, gone ? "GONE" : "FAILING", target)
        if (disabled !== undefined) {
          const text = texts.disabled({ ...facts, gone, canceled: disabled.canceled })
          return { disabled: true, notices: yield* notice(webhookId, `disabled/${webhookId}/${disabled.at}`, target.email, text) }
        }
      }
      const told = streak.noticeDue
        ? yield* notice(webhookId, `streak/${webhookId}/${streak.failingSince}`, target.email, texts.streak(facts))
        : []
      return { disabled: false, notices: exhausted ? [...told, ...(yield* tellFailed(facts, target.email))] : told }
    })

    /** The notice of a delivery that failed for good, unless one went out within a day. */
    const tellFailed = Effect.fnUntraced(function* (facts: Facts, email: string) {
      const { deliveryId, webhookId } = facts
      return (yield* toldToday(webhookId)) ? [] : yield* notice(webhookId, `failed/${webhookId}/${deliveryId}`, email, texts.failed(facts))
    })

    return {
      /** Records a failure; `waitMs` until the next attempt, undefined when the schedule is used up. Idempotent per attempt. */
      record: (recorded: Recorded, waitMs: number | undefined) =>
        sql.withTransaction(
          Effect.gen(function* () {
            const stale = yield* takeTurn(recorded.webhookId)
            const { first, moved, status } = yield* finish(recorded, waitMs)
            // failpoint: failure-written
            if (!first) return { status, ...nothing } satisfies Consequence
            const exhausted = moved && status === "FAILED"
            if (exhausted) yield* countExhausted(recorded.webhookId)
            if (stale) yield* endStreak(recorded.webhookId)
            const streak = yield* count(recorded)
            const { disabled, notices } = streak === undefined ? nothing : yield* react(recorded, streak, exhausted)
            // A disable has what waits canceled, and this delivery at once.
            const canceled = disabled && status === "RETRYING"
            if (canceled) yield* cancel(recorded.deliveryId)
            return { status: canceled ? "CANCELED" : status, notices, disabled } satisfies Consequence
          })
        ),

      /** Ends a delivery whose schedule was used up by attempts that were interrupted. Returns the notices of it. */
      exhaust: (deliveryId: string, webhookId: string) =>
        sql.withTransaction(
          Effect.gen(function* () {
            yield* takeTurn(webhookId)
            const rows = yield* sql`
              UPDATE deliveries SET status = 'FAILED', failure_reason = 'EXHAUSTED', next_attempt_at = NULL
              WHERE id = ${deliveryId} AND status IN ('PENDING', 'RETRYING') RETURNING id`
            if (rows.length === 0) return []
            yield* countExhausted(webhookId)
            const target = yield* targetOf(webhookId)
            if (target === undefined) return []
            const [health] = yield* sql<{ since: string | null; failures: number }>`
              SELECT failing_since AS since, consecutive_failures AS failures FROM webhook_health WHERE webhook_id = ${webhookId}`
            const facts = {
              webhookId,
              host: hostOf(target.url),
              since: health?.since ?? "not failing",
              failures: health?.failures ?? 0,
              lastResult: "interrupted",
              deliveryId
            }
            return yield* tellFailed(facts, target.email)
          })
        )
    }
  })
}) {
  static readonly layer = this.Default
}
