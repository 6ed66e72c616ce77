/**
 * Holds: a webhook whose deliveries wait for their turn, because it is paused, or its endpoint is down or cannot keep up. A
 * row of `webhook_holds` represents it. New deliveries are then written as `HELD` and have no workflow until their turn
 * comes. Deliveries that already waited are held in parts (dispatch/HoldKeeper.ts); a step that reaches one earlier starts
 * no attempt.
 *
 * When the webhook is resumed or a probe succeeds, held deliveries are sent in the order of their numbers. The row stays until
 * none is left; a transaction that writes a held delivery locks the row's key, so none is left behind. C-5.
 */
import type { SqlClient, Statement } from "@effect/sql"
import { Schema } from "effect"
import { decodeRows } from "../database/decodeRows.ts"

/** The channel that announces holds and recoveries that need work; the database notifies it of each change. */
export const HOLDS_CHANNEL = "custody_holds"

/** How long deliveries are held, in days; then they are canceled as `EXPIRED`. */
export const HOLD_DAYS = 31
/** An endpoint is down after this many consecutive failures of at least two deliveries, over at least `WEBHOOK_HOLD_AFTER`. */
export const DOWN_ATTEMPTS = 10

/** Deliveries that one statement holds. */
const HOLD_PART = 200
/** An attempt younger than this may be in flight: its delivery is held afterwards. */
const UNDER_WAY = "15 seconds"

const decode = decodeRows(Schema.Struct({ waiting: Schema.Number, held: Schema.Number }))

/** Whether no attempt of a delivery `d` to the webhook `w` may be made now: it is paused, or its endpoint is down. */
export const isHeld = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql`(w.status = 'PAUSED' OR EXISTS (SELECT 1 FROM webhook_holds h WHERE h.webhook_id = w.id AND h.down))`

/** A common table expression `holds (webhook_id)`: which of the webhooks hold new deliveries, locked until the transaction ends. */
export const holdsOf = (sql: SqlClient.SqlClient, webhookIds: ReadonlyArray<string>): Statement.Fragment => sql`
  holds AS MATERIALIZED (
    SELECT webhook_id FROM webhook_holds WHERE webhook_id = ANY(${webhookIds}::text[]) ORDER BY webhook_id FOR KEY SHARE)`

/**
 * Holds a part of a webhook's waiting deliveries, as long as it has a hold that `which` selects from `webhook_holds h` and
 * `webhooks w`; those with an attempt in flight stay as they are. Returns how many were waiting, and how many of them it held.
 */
export const holdPart = (sql: SqlClient.SqlClient, webhookId: string, which: Statement.Fragment) =>
  decode(sql`
  WITH kept AS MATERIALIZED (
    SELECT h.webhook_id FROM webhook_holds h JOIN webhooks w ON w.id = h.webhook_id
    WHERE h.webhook_id = ${webhookId} AND ${which} FOR KEY SHARE OF h
  ), waiting AS MATERIALIZED (
    SELECT d.id FROM kept JOIN deliveries d ON d.webhook_id = kept.webhook_id
    WHERE d.status IN ('PENDING', 'RETRYING') ORDER BY d.next_attempt_at LIMIT ${HOLD_PART} FOR UPDATE OF d SKIP LOCKED
  ), held AS (
    UPDATE deliveries d SET status = 'HELD', next_attempt_at = NULL FROM waiting w
    WHERE d.id = w.id AND d.status IN ('PENDING', 'RETRYING') AND NOT EXISTS (
      SELECT 1 FROM delivery_attempts t WHERE t.delivery_id = d.id AND t.result IS NULL AND t.at > clock_timestamp() - ${UNDER_WAY}::interval)
    RETURNING d.id
  )
  SELECT (SELECT count(*) FROM waiting) AS waiting, (SELECT count(*) FROM held) AS held`)

/** Starts to hold the deliveries of a paused webhook. */
export const pause = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  INSERT INTO webhook_holds AS h (webhook_id, down) VALUES (${webhookId}, false)
  ON CONFLICT (webhook_id) DO UPDATE SET collected = false`

/** Releases held deliveries: they are sent, or the endpoint is probed at once if it was down. */
export const resume = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  UPDATE webhook_holds SET probe_at = CASE WHEN down THEN clock_timestamp() END, wake = wake + 1, since = clock_timestamp()
  WHERE webhook_id = ${webhookId}`

/** Makes the hold's workflow send the deliveries that this transaction holds next. Creates the hold if there is none. */
export const drain = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  INSERT INTO webhook_holds AS h (webhook_id, down, collected) VALUES (${webhookId}, false, true)
  ON CONFLICT (webhook_id) DO UPDATE SET wake = h.wake + 1`

/** Probes the endpoint now instead of at the next due time. */
export const probeNow = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  UPDATE webhook_holds SET probe_at = least(probe_at, clock_timestamp()), wake = wake + 1 WHERE webhook_id = ${webhookId} AND down`

/** Removes the hold of a webhook that is disabled or deleted; held deliveries are canceled with the rest. */
export const removeHold = (sql: SqlClient.SqlClient, webhookId: string) => sql`DELETE FROM webhook_holds WHERE webhook_id = ${webhookId}`
