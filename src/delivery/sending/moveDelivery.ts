/** Moves a delivery that waits to its next state. */
import type { SqlClient, Statement } from "@effect/sql"
import { insertDeliveryCommands } from "../../runtime/temporal/commands.ts"

/**
 * Changes a delivery `d` of a webhook `w` if it waits, and makes its own workflow hear of it: always, or if it has one that
 * is started. Returns its id, or nothing if it does not wait.
 */
export const moveDelivery = (
  sql: SqlClient.SqlClient,
  id: string,
  change: Statement.Fragment,
  wakes: "always" | "if started" | "never"
) => sql`
  WITH moved AS (
    UPDATE deliveries d SET ${change} FROM webhooks w
    WHERE d.id = ${id} AND w.id = d.webhook_id AND d.status IN ('PENDING', 'RETRYING', 'HELD') RETURNING d.id, d.started, d.organization_id
  ), woken AS (
    ${insertDeliveryCommands(sql, sql`SELECT id, organization_id FROM moved WHERE ${wakes === "always"} OR started AND ${wakes === "if started"}`)}
  )
  SELECT id FROM moved`

/** The change that makes a delivery wait for its next attempt. */
export const retryAfter = (sql: SqlClient.SqlClient, waitMs: number): Statement.Fragment =>
  sql`status = 'RETRYING', started = true, next_attempt_at = clock_timestamp() + ${waitMs} * interval '1 millisecond'`

/** The change that ends a delivery for a reason. */
export const end = (sql: SqlClient.SqlClient, status: "FAILED" | "CANCELED", reason: Statement.Fragment): Statement.Fragment =>
  sql`status = ${status}, failure_reason = ${reason}, next_attempt_at = NULL`
