/**
 * Rows of events as they are sent: Postgres writes the JSON text of a response, with the payload as it was recorded, so nothing
 * is decoded and encoded again. Spec: Webhook event.
 */
import type { SqlClient, Statement } from "@effect/sql"

const jsonTime = (value: Statement.Fragment, sql: SqlClient.SqlClient) =>
  sql`'"' || to_char(${value}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"'`

/**
 * An event `e` as in API responses. `days` are conditions on `x.event_id` of its dispatch that name the days of the statement's
 * events: Postgres opens no table of another day.
 */
export const eventJson = (sql: SqlClient.SqlClient, days: Statement.Fragment): Statement.Fragment => {
  const time = (value: Statement.Fragment) => jsonTime(value, sql)
  // An event that no webhook wanted is dispatched when it is recorded; only others are looked up.
  const dispatchedAt = sql`coalesce(e.dispatched_at, (SELECT x.dispatched_at FROM event_dispatches x WHERE x.event_id = e.id ${days}))`
  return sql`'{"id":"' || e.id || '","entityId":' || to_json(e.entity_id)::text
    || ',"vaultIds":' || coalesce('[' || to_json(e.vault_id)::text || ']', 'null') || ',"kind":"' || e.kind
    || '","schemaVersion":' || e.schema_version || ',"payload":' || e.payload || ',"occurredAt":' || ${time(sql`e.occurred_at`)}
    || ',"dispatchedAt":' || coalesce(${time(dispatchedAt)}, 'null') || ',"createdAt":' || ${time(sql`e.created_at`)} || '}'`
}
