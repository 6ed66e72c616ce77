/**
 * Cancellations of everything that waits for a webhook, by an owner; and since when an endpoint is down, kept until its hold
 * ends. C-5.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
ALTER TABLE pending_cancellations DROP CONSTRAINT pending_cancellations_reason_check,
  ADD CONSTRAINT pending_cancellations_reason_check CHECK (reason IN ('WEBHOOK_DISABLED', 'WEBHOOK_DELETED', 'MANUAL'));
ALTER TABLE webhook_holds ADD COLUMN down_at timestamptz;
`)
)
