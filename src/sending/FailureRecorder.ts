/**
 * Records a failed attempt in one transaction: completes the attempt row, updates the delivery, counts the streak, and
 * decides about notices and disabling the webhook. Nothing else extends a streak, and its row is locked meanwhile, so
 * each cause has one notice however many attempts fail concurrently. Decision D-23.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { record, SERVICE } from "../audit/AuditTrail.ts"
import { decodeRows } from "../database/decodeRows.ts"
import * as EventLog from "../events/EventLog.ts"
import { type Facts, noticeTexts } from "../notifications/noticeTexts.ts"
import { Settings } from "../settings/Settings.ts"
import * as Id from "../values/Id.ts"
import { announceCancellation, requestCancellation } from "../webhooks/cancelWaiting.ts"
import { endRecoveries } from "../webhooks/endRecoveries.ts"
import { endStreak } from "../webhooks/failureStreak.ts"
import { removeHold } from "../webhooks/holds.ts"
import { hostOf } from "../webhooks/url.ts"
import { lastAttempt, type Recorded, SHARD } from "./AttemptsRepo.ts"
import * as downtime from "./downtime.ts"
import * as streaks from "./streak.ts"

/** Waiting deliveries are counted up to this for the notice of a disable. */
const COUNTED = 10_000
/** The consequences of a failure. */
export interface Consequence {
  /** The delivery's status now. */
  readonly status: string
  readonly notices: ReadonlyArray<string>
  /** Whether it disabled the webhook. */
  readonly disabled: boolean
}

const Target = Schema.Struct({
  url: Schema.String,
  email: Schema.String,
  organizationId: Schema.String,
  entityIds: Schema.Array(Schema.String)
})
type Target = typeof Target.Type
const decodeTargets = decodeRows(Target)
const decodeStatuses = decodeRows(Schema.Struct({ status: Schema.String }))
const decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))
const decodeCount = decodeRows(Schema.Struct({ count: Schema.Number }))
const decodeTimes = decodeRows(Schema.Struct({ at: Schema.String }))
const decodeHealth = decodeRows(Schema.Struct({ since: Schema.NullOr(Schema.String), failures: Schema.Number }))

export class FailureRecorder extends Effect.Service<FailureRecorder>()("custody/FailureRecorder", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const settings = yield* Settings
    const { webhookDisableAfter, webhookHold, webhookHoldAfter } = settings
    const probes = downtime.probeSeconds(settings.webhookProbeSchedule)
    const texts = noticeTexts(settings)

    const isLast = lastAttempt(sql)

    /** Completes the attempt, and updates the delivery unless a later attempt has begun: then the outcome came late. */
    const finish = ({ answer, deliveryId, held, number }: Recorded, waitMs: number | undefined) =>
      Effect.gen(function* () {
        const probe = held?.probe === true
        const attempts = yield* sql`
          UPDATE delivery_attempts SET result = ${answer.result}, http_status = ${answer.httpStatus}, latency_ms = ${answer.latencyMs},
            body_snippet = ${answer.bodySnippet}, uses_schedule = ${!probe}
          WHERE delivery_id = ${deliveryId} AND number = ${number} AND (result IS NULL OR result = 'interrupted') RETURNING number`
        // A probe does not use up the schedule, and its delivery stays held. A drained delivery continues in its own
        // workflow.
        const moved = probe
          ? []
          : yield* decodeStatuses(sql`
          UPDATE deliveries SET started = true, status = ${waitMs === undefined ? "FAILED" : "RETRYING"}, failure_reason = ${waitMs === undefined ? "EXHAUSTED" : null},
            next_attempt_at = ${waitMs === undefined ? sql`NULL` : sql`clock_timestamp() + ${waitMs} * interval '1 millisecond'`}
          WHERE id = ${deliveryId} AND status IN ('PENDING', 'RETRYING', ${held === undefined ? "RETRYING" : "HELD"}) AND ${isLast(deliveryId, number)}
          RETURNING status`)
        if (held?.wake === true && moved.length > 0)
          yield* sql`INSERT INTO delivery_signals (delivery_id, signal) VALUES (${deliveryId}, 'wake')
            ON CONFLICT (delivery_id, signal) DO UPDATE SET id = DEFAULT`
        const [now] = moved.length > 0 ? moved : yield* decodeStatuses(sql`SELECT status FROM deliveries WHERE id = ${deliveryId}`)
        return { first: attempts.length > 0, moved: moved.length > 0, status: now?.status ?? "CANCELED" }
      })

    const countExhausted = (webhookId: string) => sql`
      INSERT INTO webhook_counters AS c (webhook_id, slot, shard, failed)
      VALUES (${webhookId}, date_bin('10 minutes', clock_timestamp(), 'epoch'), ${SHARD}, 1)
      ON CONFLICT (webhook_id, slot, shard) DO UPDATE SET failed = c.failed + 1`

    const notice = (
      webhookId: string,
      cause: string,
      recipient: string,
      { body, subject }: { readonly subject: string; readonly body: string }
    ) =>
      Effect.map(
        decodeIds(sql`
          INSERT INTO notices (id, webhook_id, organization_id, cause, recipient, subject, body)
          SELECT ${Id.make("ntc")}, w.id, w.organization_id, ${cause}, ${recipient}, ${subject}, ${body} FROM webhooks w WHERE w.id = ${webhookId}
          ON CONFLICT (cause) DO NOTHING RETURNING id`),
        (rows) => rows.map(({ id }) => id)
      )

    const cancel = (deliveryId: string) => sql`
      UPDATE deliveries SET status = 'CANCELED', failure_reason = 'WEBHOOK_DISABLED', next_attempt_at = NULL WHERE id = ${deliveryId}`

    const countWaiting = (webhookId: string) =>
      Effect.map(
        decodeCount(sql`
          SELECT (SELECT count(*) FROM (SELECT 1 FROM deliveries d WHERE d.webhook_id = ${webhookId} AND d.status IN ('PENDING', 'RETRYING')
            LIMIT ${COUNTED + 1}) waiting) + (SELECT count(*) FROM (SELECT 1 FROM deliveries d
            WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD' LIMIT ${COUNTED + 1}) held) AS count`),
        ([row]) => row?.count ?? 0
      )

    /**
     * Disables the webhook, requests the cancellation of its waiting deliveries, and records the event for each of its
     * entities. Undefined if it is not active.
     */
    const disable = Effect.fnUntraced(function* (webhookId: string, reason: "FAILING" | "GONE", { entityIds, organizationId }: Target) {
      const [row] = yield* decodeTimes(sql`
        UPDATE webhooks SET status = 'DISABLED', disabled_reason = ${reason}, disabled_at = now(), updated_at = now()
        WHERE id = ${webhookId} AND status = 'ACTIVE' RETURNING disabled_at AS at`)
      if (row === undefined) return undefined
      const canceled = yield* countWaiting(webhookId)
      yield* requestCancellation(sql, webhookId, "WEBHOOK_DISABLED")
      yield* announceCancellation(sql)
      yield* removeHold(sql, webhookId)
      yield* endRecoveries(sql, webhookId)
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

    /** Whether a notice about a failed delivery was sent within a day. */
    const notifiedToday = (webhookId: string) =>
      Effect.map(
        sql`SELECT 1 FROM notices WHERE webhook_id = ${webhookId} AND cause LIKE 'failed/%' AND created_at > now() - interval '1 day' LIMIT 1`,
        (rows) => rows.length > 0
      )

    const targetOf = (webhookId: string) =>
      Effect.map(
        decodeTargets(sql`
          SELECT w.url, w.notification_email AS email, w.organization_id AS "organizationId",
            ARRAY(SELECT we.entity_id FROM webhook_entities we WHERE we.webhook_id = w.id ORDER BY we.entity_id)::text[] AS "entityIds"
          FROM webhooks w WHERE w.id = ${webhookId} AND w.status = 'ACTIVE'`),
        ([target]) => target
      )

    const nothing = { disabled: false, notices: [] as ReadonlyArray<string> }

    /** The notice that a streak causes, in order of weight: a disable takes precedence over the others. */
    const react = Effect.fnUntraced(function* (recorded: Recorded, streak: streaks.Streak, exhausted: boolean) {
      const { answer, deliveryId, webhookId } = recorded
      const gone = answer.httpStatus === 410 && streak.goneBefore
      const failing = streak.disableDue && streak.severalDeliveries
      const down = webhookHold === "auto" && streak.isDown
      if (!gone && !failing && !streak.noticeDue && !exhausted && !down) return nothing
      const target = yield* targetOf(webhookId)
      if (target === undefined) return nothing
      const facts = {
        webhookId,
        host: hostOf(target.url),
        since: streak.failingSince,
        failures: streak.consecutiveFailures,
        lastResult: answer.httpStatus === 0 ? answer.result : `${answer.result} (${answer.httpStatus})`,
        deliveryId,
        held: down ? yield* countWaiting(webhookId) : undefined
      }
      if (gone || failing) {
        const disabled = yield* disable(webhookId, gone ? "GONE" : "FAILING", target)
        if (disabled !== undefined) {
          const text = texts.disabled({ ...facts, gone, canceled: disabled.canceled })
          return { disabled: true, notices: yield* notice(webhookId, `disabled/${webhookId}/${disabled.at}`, target.email, text) }
        }
      }
      const begun = down ? yield* downtime.begin(sql, webhookId, probes) : undefined
      if (begun !== undefined)
        yield* record(sql, [
          {
            organizationId: target.organizationId,
            actor: SERVICE,
            action: "webhook.held",
            target: { type: "webhook", id: webhookId },
            changes: { lastResult: { old: null, new: facts.lastResult } }
          }
        ])
      const notices = [
        ...(begun === true ? yield* notice(webhookId, `held/${webhookId}/${streak.at}`, target.email, texts.held(facts)) : []),
        ...(streak.noticeDue
          ? yield* notice(webhookId, `streak/${webhookId}/${streak.failingSince}`, target.email, texts.streak(facts))
          : []),
        ...(exhausted ? yield* failedNotice(facts, target.email) : [])
      ]
      return { disabled: false, notices }
    })

    /** The notice about a failed delivery, unless one was sent within a day. */
    const failedNotice = Effect.fnUntraced(function* (facts: Facts, email: string) {
      const { deliveryId, webhookId } = facts
      return (yield* notifiedToday(webhookId))
        ? []
        : yield* notice(webhookId, `failed/${webhookId}/${deliveryId}`, email, texts.failed(facts))
    })

    return {
      /** Records a failure; `waitMs` until the next attempt, undefined if the schedule is used up. Idempotent per attempt. */
      record: (recorded: Recorded, waitMs: number | undefined) =>
        sql.withTransaction(
          Effect.gen(function* () {
            const stale = yield* streaks.lockHealth(sql, recorded.webhookId)
            const { first, moved, status } = yield* finish(recorded, waitMs)
            // failpoint: failure-written
            if (!first) return { status, ...nothing } satisfies Consequence
            const exhausted = moved && status === "FAILED"
            if (exhausted) yield* countExhausted(recorded.webhookId)
            if (stale) yield* endStreak(sql, recorded.webhookId)
            const streak = yield* streaks.count(sql, recorded, { webhookDisableAfter, webhookHoldAfter })
            if (recorded.held?.probe === true) yield* downtime.postponeProbe(sql, recorded, probes)
            else yield* downtime.collectLate(sql, recorded.webhookId)
            const { disabled, notices } = streak === undefined ? nothing : yield* react(recorded, streak, exhausted)
            // Disabling cancels waiting deliveries, and this one immediately.
            const canceled = disabled && status === "RETRYING"
            if (canceled) yield* cancel(recorded.deliveryId)
            return { status: canceled ? "CANCELED" : status, notices, disabled } satisfies Consequence
          })
        ),

      /** Fails a delivery whose schedule was used up by interrupted attempts. Returns its notices. */
      exhaust: (deliveryId: string, webhookId: string) =>
        sql.withTransaction(
          Effect.gen(function* () {
            yield* streaks.lockHealth(sql, webhookId)
            const rows = yield* sql`
              UPDATE deliveries SET status = 'FAILED', failure_reason = 'EXHAUSTED', next_attempt_at = NULL
              WHERE id = ${deliveryId} AND status IN ('PENDING', 'RETRYING', 'HELD') RETURNING id`
            if (rows.length === 0) return []
            yield* countExhausted(webhookId)
            const target = yield* targetOf(webhookId)
            if (target === undefined) return []
            const [health] = yield* decodeHealth(sql`
              SELECT failing_since AS since, consecutive_failures AS failures FROM webhook_health WHERE webhook_id = ${webhookId}`)
            const facts = {
              webhookId,
              host: hostOf(target.url),
              since: health?.since ?? "not failing: the attempts were interrupted",
              failures: health?.failures ?? 0,
              lastResult: "interrupted",
              deliveryId
            }
            return yield* failedNotice(facts, target.email)
          })
        )
    }
  })
}) {
  static readonly layer = this.Default
}
