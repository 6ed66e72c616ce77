/** When events were dispatched. Decision D-28. */
import type { SqlClient, Statement } from "@effect/sql"

/**
 * When an event `e` was dispatched; null while it waits. An event that no webhook wanted says so itself; only others are looked up.
 * `days` are conditions on the `x.event_id` of its dispatch that name the days of the statement's events: Postgres opens no table
 * of another day.
 */
export const dispatchedAt = (sql: SqlClient.SqlClient, days: Statement.Fragment = sql.literal("")): Statement.Fragment =>
  sql`coalesce(e.dispatched_at, (SELECT x.dispatched_at FROM event_dispatches x WHERE x.event_id = e.id ${days}))`
