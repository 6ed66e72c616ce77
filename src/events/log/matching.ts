/** Which webhooks an event matches, as SQL conditions. Spec: Webhook. */
import type { SqlClient, Statement } from "@effect/sql"

/**
 * Whether a webhook `w` covers the kind and the vault of a row with an event's columns, such as `e` or `d`. Events without a
 * vault have only to be of its kinds; a webhook without a vault filter covers every vault.
 */
export const covers = (sql: SqlClient.SqlClient, row: string): Statement.Fragment =>
  sql`${sql.literal(`(${row}.kind = ANY(w.event_kinds) AND (${row}.vault_id IS NULL OR w.vault_ids IS NULL OR ${row}.vault_id = ANY(w.vault_ids)))`)}`

/**
 * The webhooks that an event with a row's columns is sent to, for a LATERAL subquery. Those that are disabled or deleted are not read:
 * the index begins with the entity and the status. Decision D-29.
 */
export const receivers = (sql: SqlClient.SqlClient, row: string): Statement.Fragment => sql`
  SELECT w.id, w.url FROM webhook_entities we JOIN webhooks w ON w.id = we.webhook_id
  WHERE we.entity_id = ${sql.literal(row)}.entity_id AND we.status IN ('ACTIVE', 'PAUSED') AND ${covers(sql, row)}`

/** Whether an event matches a webhook `w`: the webhook is of the event's entity and covers its kind and vault. */
export const matches = (sql: SqlClient.SqlClient, row: string): Statement.Fragment => sql`
  (EXISTS (SELECT 1 FROM webhook_entities we WHERE we.webhook_id = w.id AND we.entity_id = ${sql.literal(row)}.entity_id) AND ${covers(sql, row)})`
