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

const decodeMost = decodeRows(Schema.Struct({ active: Schema.Number, present: Schema.Number, deleted: Schema.Number }))

/**
 * Fails if one more webhook of these entities passes a limit: an `added` one those of all webhooks, one that is to be `active` or
 * paused that of active ones. It takes a lock on each entity until the end of the transaction, always in the same order, so that
 * the counts cannot change meanwhile and nobody deadlocks. These are not locks on the entities' rows: the record feed writes those
 * in its own order.
 */
export const requireRoom = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  entityIds: ReadonlyArray<string>,
  { active, added }: { readonly active: boolean; readonly added: boolean }
) {
  yield* sql`
    SELECT pg_advisory_xact_lock(lock) FROM (
      SELECT DISTINCT hashtextextended('webhooks of ' || id, 0) AS lock FROM unnest(${entityIds}::text[]) AS e (id) ORDER BY lock) locks`
  const [most] = yield* decodeMost(sql`
    SELECT coalesce(max(active), 0) AS active, coalesce(max(present), 0) AS present, coalesce(max(deleted), 0) AS deleted FROM (
      SELECT count(*) FILTER (WHERE we.status IN ('ACTIVE', 'PAUSED')) AS active, count(we.status) AS present,
        count(*) FILTER (WHERE we.status IS NULL) AS deleted
      FROM webhook_entities we WHERE we.entity_id = ANY(${entityIds}) GROUP BY we.entity_id) counts`)
  if (most === undefined) return
  const reached = (limit: string) => problem("webhook_limit_reached", `An entity can be covered by at most ${limit}`)
  if (active && most.active >= ACTIVE_PER_ENTITY)
    return yield* reached(`${ACTIVE_PER_ENTITY} active or paused webhooks. Disable or delete one first.`)
  if (added && most.present >= WEBHOOKS_PER_ENTITY)
    return yield* reached(`${WEBHOOKS_PER_ENTITY} webhooks, disabled ones included. Delete one first.`)
  if (added && most.deleted >= DELETED_PER_ENTITY)
    return yield* reached(`${DELETED_PER_ENTITY} deleted webhooks with deliveries in the log, which they leave after 31 days.`)
})
