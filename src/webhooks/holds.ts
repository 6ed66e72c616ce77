/**
 * Holds: a webhook whose deliveries wait without attempts, because it is paused or because its endpoint is down. A row of
 * `webhook_holds` says so. New deliveries are then written as `HELD` and have no workflow until their turn comes; what
 * waited before is held a part at a time (dispatch/HoldKeeper.ts), and a step that comes to it earlier begins no attempt.
 *
 * When the webhook is resumed or a probe succeeds, what waits is sent in the order of its numbers. The row stays until
 * nothing is left; whoever writes a held delivery holds the row's key meanwhile, so none is left behind. C-5.
 */
import type { SqlClient, Statement } from "@effect/sql"

/** The channel that announces holds and recoveries with something to do; the database announces them with each change (migration 0023). */
export const HOLDS_CHANNEL = "custody_holds"

/** How long deliveries are held, in days; then they are canceled as `EXPIRED`. */
export const HOLD_DAYS = 31
/** The wait before the first probe, and after each one that failed, in seconds; the last one repeats. */
export const FIRST_PROBE_SECONDS = 30
export const PROBE_SECONDS = [60, 120, 240, 300] as const
/** An endpoint is down after so many failures in a row, of at least two deliveries, within which so many seconds passed. */
export const DOWN_ATTEMPTS = 10,
  DOWN_SECONDS = 60

/** Statuses of deliveries that wait. */
export const WAITING = "('PENDING', 'RETRYING', 'HELD')"

/** Whether no attempt of a delivery `d` to the webhook `w` may be made now: it is paused, or its endpoint is down. */
export const isHeld = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql`(w.status = 'PAUSED' OR EXISTS (SELECT 1 FROM webhook_holds h WHERE h.webhook_id = w.id AND h.down))`

/** A common table expression `holds (webhook_id)`: those of the webhooks that hold new deliveries, kept until the transaction ends. */
export const holdsOf = (sql: SqlClient.SqlClient, webhookIds: ReadonlyArray<string>): Statement.Fragment => sql`
  holds AS MATERIALIZED (
    SELECT webhook_id FROM webhook_holds WHERE webhook_id = ANY(${webhookIds}::text[]) ORDER BY webhook_id FOR KEY SHARE)`

/** Begins to hold what goes to a webhook that is paused. */
export const pause = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  INSERT INTO webhook_holds AS h (webhook_id, down) VALUES (${webhookId}, false)
  ON CONFLICT (webhook_id) DO UPDATE SET collected = false`

/** Lets what is held go on: it is sent, or its endpoint is probed at once where it was down. */
export const resume = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  UPDATE webhook_holds SET probe_at = CASE WHEN down THEN clock_timestamp() END, wake = wake + 1, since = clock_timestamp()
  WHERE webhook_id = ${webhookId}`

/** Probes the endpoint now instead of when the next probe is due. */
export const probeNow = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  UPDATE webhook_holds SET probe_at = least(probe_at, clock_timestamp()), wake = wake + 1 WHERE webhook_id = ${webhookId} AND down`

/** Forgets the hold of a webhook that is disabled or deleted; what is held is canceled with the rest. */
export const forget = (sql: SqlClient.SqlClient, webhookId: string) => sql`DELETE FROM webhook_holds WHERE webhook_id = ${webhookId}`
