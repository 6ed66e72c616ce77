/**
 * How many webhooks cover an entity: at most 20 active or paused ones, 100 that are not deleted, and 1,000 deleted ones, whose
 * deliveries are still in the log. Spec: Delivery contract 6. Decision D-29.
 */
import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { problem } from "../../http/Problem.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"

/** Most active and paused webhooks that cover an entity. */
export const ACTIVE_PER_ENTITY = 20
/** Most webhooks that cover an entity and are not deleted, and most deleted ones. */
const WEBHOOKS_PER_ENTITY = 100,
  DELETED_PER_ENTITY = 1_000

const decodeFull = decodeRows(Schema.Struct({ active: Schema.Boolean, deleted: Schema.Boolean }))

/**
 * Fails if one of the entities has reached a limit; that of active webhooks counts for one that is to be active or paused. Adding a
 * webhook, or making one active, takes a lock on each of its entities until the end of the transaction, always in the same
 * order, so that the counts cannot change meanwhile and nobody deadlocks. These are not locks on the entities' rows: the record
 * feed writes those in its own order.
 */
const requireRoom = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  entityIds: ReadonlyArray<string>,
  { active, added }: { readonly active: boolean; readonly added: boolean }
) {
  yield* sql`
    SELECT pg_advisory_xact_lock(lock) FROM (
      SELECT DISTINCT hashtextextended('active webhooks of ' || id, 0) AS lock FROM unnest(${entityIds}::text[]) AS e (id) ORDER BY lock) locks`
  const reaches = (statuses: string, most: number) =>
    sql`(SELECT count(*) FROM (SELECT 1 FROM webhook_entities we WHERE we.entity_id = a.id AND we.status ${sql.literal(statuses)} LIMIT ${most}) f) >= ${most}`
  const [full] = yield* decodeFull(sql`
    SELECT * FROM (
      SELECT ${active} AND ${reaches("IN ('ACTIVE', 'PAUSED')", ACTIVE_PER_ENTITY)} AS active,
        ${added} AND ${reaches("IN ('ACTIVE', 'PAUSED', 'DISABLED')", WEBHOOKS_PER_ENTITY)} AS present,
        ${added} AND ${reaches("IS NULL", DELETED_PER_ENTITY)} AS deleted
      FROM unnest(${entityIds}::text[]) AS a (id)) counted
    WHERE active OR present OR deleted LIMIT 1`)
  if (full === undefined) return
  return yield* problem(
    "webhook_limit_reached",
    full.active
      ? `An entity can be covered by at most ${ACTIVE_PER_ENTITY} active or paused webhooks. Disable or delete one first.`
      : full.deleted
        ? `An entity can be covered by at most ${DELETED_PER_ENTITY} deleted webhooks with deliveries in the log, which they leave after 31 days.`
        : `An entity can be covered by at most ${WEBHOOKS_PER_ENTITY} webhooks, disabled ones included. Delete one first.`
  )
})

/** Fails if a webhook cannot be added to these entities. */
export const requireRoomToAdd = (sql: SqlClient.SqlClient, entityIds: ReadonlyArray<string>, active: boolean) =>
  requireRoom(sql, entityIds, { active, added: true })

/** Fails if a disabled webhook of these entities cannot become active or paused. */
export const requireRoomToEnable = (sql: SqlClient.SqlClient, entityIds: ReadonlyArray<string>) =>
  requireRoom(sql, entityIds, { active: true, added: false })
