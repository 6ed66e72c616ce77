/** Rows of the feed: events as they are read and sent. */
import { Schema } from "effect"

/** An event and its place in the log. */
export const Key = Schema.Struct({ id: Schema.String, position: Schema.Number })

/** The fields of an event that filters need. */
export const KeyRow = Schema.Struct({ ...Key.fields, kind: Schema.String, entityId: Schema.String })
export type KeyRow = typeof KeyRow.Type

/** An event of the feed. */
export const FeedRow = Schema.Struct({
  ...KeyRow.fields,
  vaultId: Schema.NullOr(Schema.String),
  /** The event as in responses: JSON text, written by Postgres, which is less busy than the API while readers catch up. */
  json: Schema.String
})
export type FeedRow = typeof FeedRow.Type

/** Whether more than a key was read. */
export const isWhole = (row: KeyRow): row is FeedRow => "json" in row

const jsonTime = (column: string) => `'"' || to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"'`

/** The columns of a {@link FeedRow}, of `events e` and the dispatch `x` of each, if it has one. */
export const feedColumns = `e.id, e.position, e.kind, e.entity_id AS "entityId", e.vault_id AS "vaultId",
  '{"id":' || to_json(e.id)::text || ',"entityId":' || to_json(e.entity_id)::text
  || ',"vaultIds":' || coalesce('[' || to_json(e.vault_id)::text || ']', 'null') || ',"kind":' || to_json(e.kind)::text
  || ',"schemaVersion":' || e.schema_version || ',"payload":' || e.payload || ',"occurredAt":' || ${jsonTime("e.occurred_at")}
  || ',"dispatchedAt":' || coalesce(${jsonTime("coalesce(e.dispatched_at, x.dispatched_at)")}, 'null')
  || ',"createdAt":' || ${jsonTime("e.created_at")} || '}' AS json`
