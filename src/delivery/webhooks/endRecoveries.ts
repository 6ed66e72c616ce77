/** Cancels the recovery of a webhook that is disabled or deleted, in the transaction of that change. C-4. */
import type { SqlClient } from "@effect/sql"
import { insertCommands } from "../../runtime/temporal/commands.ts"

/** Cancels the webhook's recovery, if one is running; its deliveries that wait are canceled with the webhook's others. */
export const endRecoveries = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  WITH ended AS (
    UPDATE recoveries SET status = 'CANCELED', completed_at = now(), updated_at = now()
    WHERE webhook_id = ${webhookId} AND status IN ('RUNNING', 'PAUSED') RETURNING id
  )
  ${insertCommands(sql, sql`SELECT id FROM ended`)}`
