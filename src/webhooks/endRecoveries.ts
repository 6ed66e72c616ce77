/** Cancels the recovery of a webhook that is disabled or deleted, in the transaction of that change. C-4. */
import type { SqlClient } from "@effect/sql"

/** Cancels the webhook's recovery, if one is running; its deliveries that wait are canceled with the webhook's others. */
export const endRecoveries = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  UPDATE recoveries SET status = 'CANCELED', completed_at = now(), updated_at = now(), wake = wake + 1
  WHERE webhook_id = ${webhookId} AND status IN ('RUNNING', 'PAUSED')`
