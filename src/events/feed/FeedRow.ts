/** Rows of the feed: events as they are read and sent. */
import type { SqlClient, Statement } from "@effect/sql"
import { Schema } from "effect"
import { eventJson } from "../log/eventJson.ts"

/** An event and its place in the log. */
export const Key = Schema.Struct({ id: Schema.String, position: Schema.Number })

/** The fields of an event that filters need. */
export const KeyRow = Schema.Struct({ ...Key.fields, kind: Schema.String, entityId: Schema.String })
export type KeyRow = typeof KeyRow.Type

/** An event of the feed. */
export const FeedRow = Schema.Struct({
  ...KeyRow.fields,
  vaultId: Schema.NullOr(Schema.String),
  /** The event as in responses. */
  json: Schema.String
})
export type FeedRow = typeof FeedRow.Type

/** Whether more than a key was read. */
export const isWhole = (row: KeyRow): row is FeedRow => "json" in row

/** The columns of a {@link FeedRow}, of `events e`; `days` as for {@link eventJson}. */
export const feedColumns = (sql: SqlClient.SqlClient, days: Statement.Fragment): Statement.Fragment =>
  sql`e.id, e.position, e.kind, e.entity_id AS "entityId", e.vault_id AS "vaultId", ${eventJson(sql, days)} AS json`
