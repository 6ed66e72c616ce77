/**
 * A webhook's streak of failures: it decides about notices, disabling, and whether the endpoint is down. Everything runs
 * in the transaction that records a failure. Decision D-23, C-5.
 */
import type { SqlClient } from "@effect/sql"
import { Duration, Effect, Schema } from "effect"
import { decodeRows } from "../database/decodeRows.ts"
import type { Values } from "../settings/table.ts"
import { STREAK_ATTEMPTS, STREAK_HOURS } from "../webhooks/failureStreak.ts"
import { DOWN_ATTEMPTS } from "../webhooks/holds.ts"
import type { Recorded } from "./AttemptsRepo.ts"
import { meansDown } from "./downtime.ts"

/** Time between two 410 responses after which an endpoint counts as gone, in minutes. */
const GONE_MINUTES = 5
/** A failure more than this many hours after the previous one starts a new streak. */
const STREAK_GAP_HOURS = 48

/** A streak after a failure. */
const Streak = Schema.Struct({
  consecutiveFailures: Schema.Number,
  failingSince: Schema.String,
  severalDeliveries: Schema.Boolean,
  /** Whether the streak is old enough for disabling or a notice, and whether a 410 is old enough. */
  disableDue: Schema.Boolean,
  noticeDue: Schema.Boolean,
  goneBefore: Schema.Boolean,
  /** Whether the endpoint is down: enough failures in a row, of several deliveries, over long enough. */
  isDown: Schema.Boolean,
  /** When its last failure was. */
  at: Schema.String
})
export type Streak = typeof Streak.Type

const decode = decodeRows(Streak)
const decodeStale = decodeRows(Schema.Struct({ stale: Schema.NullOr(Schema.Boolean) }))

/**
 * Locks the webhook's health row before any delivery, so that all failures take locks in the same order. Returns whether its
 * streak is stale.
 */
export const lockHealth = (sql: SqlClient.SqlClient, webhookId: string) =>
  Effect.map(
    decodeStale(sql`
      SELECT consecutive_failures > 0 AND last_failure_at < clock_timestamp() - make_interval(hours => ${STREAK_GAP_HOURS}) AS stale
      FROM webhook_health WHERE webhook_id = ${webhookId} FOR UPDATE`),
    ([row]) => row?.stale ?? false
  )

/** The settings that decide about a streak. */
type Limits = Pick<Values, "webhookDisableAfter" | "webhookHoldAfter">

/** Counts the failure and returns the updated streak. */
export const count = (
  sql: SqlClient.SqlClient,
  { answer, deliveryId, webhookId }: Recorded,
  { webhookDisableAfter, webhookHoldAfter }: Limits
) =>
  Effect.map(
    decode(sql`
      INSERT INTO webhook_health AS h (webhook_id, consecutive_failures, failing_since, first_failed_delivery, gone_at, last_failure_at,
        last_failure_result, down_failures, down_since, down_delivery)
      VALUES (${webhookId}, 1, clock_timestamp(), ${deliveryId}, CASE WHEN ${answer.httpStatus === 410} THEN clock_timestamp() END,
        clock_timestamp(), ${answer.result}, ${meansDown(answer) ? 1 : 0}, clock_timestamp(), ${deliveryId})
      ON CONFLICT (webhook_id) DO UPDATE SET consecutive_failures = h.consecutive_failures + 1,
        failing_since = coalesce(h.failing_since, clock_timestamp()),
        first_failed_delivery = coalesce(h.first_failed_delivery, excluded.first_failed_delivery),
        several_deliveries = h.several_deliveries OR coalesce(h.first_failed_delivery <> excluded.first_failed_delivery, false),
        gone_at = coalesce(h.gone_at, excluded.gone_at), last_failure_at = clock_timestamp(), last_failure_result = excluded.last_failure_result,
        -- Any other response resets the count, as a 2xx does.
        down_failures = CASE WHEN ${meansDown(answer)} THEN h.down_failures + 1 ELSE 0 END,
        down_since = CASE WHEN h.down_failures > 0 THEN h.down_since ELSE clock_timestamp() END,
        down_delivery = CASE WHEN h.down_failures > 0 THEN h.down_delivery ELSE excluded.down_delivery END,
        down_several = h.down_failures > 0 AND (h.down_several OR h.down_delivery <> excluded.down_delivery)
      RETURNING consecutive_failures AS "consecutiveFailures", failing_since AS "failingSince", several_deliveries AS "severalDeliveries",
        consecutive_failures >= ${STREAK_ATTEMPTS}
          AND failing_since <= clock_timestamp() - ${Duration.toMillis(webhookDisableAfter)} * interval '1 millisecond' AS "disableDue",
        consecutive_failures >= ${STREAK_ATTEMPTS} AND failing_since <= clock_timestamp() - make_interval(hours => ${STREAK_HOURS}) AS "noticeDue",
        coalesce(gone_at <= clock_timestamp() - make_interval(mins => ${GONE_MINUTES}), false) AS "goneBefore",
        down_failures >= ${DOWN_ATTEMPTS} AND down_several AND down_since <= clock_timestamp() - ${Duration.toMillis(webhookHoldAfter)} * interval '1 millisecond' AS "isDown",
        last_failure_at AS at`),
    ([row]) => row
  )
