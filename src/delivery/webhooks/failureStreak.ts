/** Failed attempts of a webhook in a row: how long a streak must be to count as failing, and its end. Decisions D-19, D-23. */
import type { SqlClient } from "@effect/sql"

/** Failed attempts and duration after which a streak counts as FAILING and its first notice is sent. Decision D-23. */
export const STREAK_ATTEMPTS = 10
export const STREAK_HOURS = 1

/** Ends the streak: the next failure starts a new one. */
export const endStreak = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  UPDATE webhook_health SET consecutive_failures = 0, failing_since = NULL, first_failed_delivery = NULL,
    several_deliveries = false, gone_at = NULL, down_failures = 0 WHERE webhook_id = ${webhookId}`
