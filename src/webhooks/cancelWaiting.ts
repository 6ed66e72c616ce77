import type { SqlClient } from "@effect/sql"

/**
 * Ends what waits for a webhook that no longer receives, in the transaction of the change; a dispatcher then tells the
 * running workflows. Decision D-22.
 */
export const cancelWaiting = (sql: SqlClient.SqlClient, webhookId: string, reason: "WEBHOOK_DISABLED" | "WEBHOOK_DELETED") => sql`
  WITH canceled AS (
    UPDATE deliveries SET status = 'CANCELED', failure_reason = ${reason}, next_attempt_at = NULL
    WHERE webhook_id = ${webhookId} AND status IN ('PENDING', 'RETRYING') RETURNING id)
  INSERT INTO delivery_signals (delivery_id, signal) SELECT id, 'cancel' FROM canceled`
