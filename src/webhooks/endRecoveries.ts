/** A webhook that is disabled or deleted has no recovery any more: it is canceled in the transaction of the change. C-4. */
import type { SqlClient } from "@effect/sql"

/** Cancels the webhook's recovery, if one is running; its deliveries that wait are canceled with the webhook's others. */
export const endRecoveries = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  UPDATE recoveries SET status = 'CANCELED', completed_at = now(), updated_at = now(), wake = wake + 1
  WHERE webhook_id = ${webhookId} AND status IN ('RUNNING', 'PAUSED')`
