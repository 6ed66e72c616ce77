/**
 * At most 20 active or paused webhooks for each entity. Spec: Delivery contract 6. Decision D-29.
 */
import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { problem } from "../../http/Problem.ts"

/** Most active and paused webhooks that cover an entity. */
export const ACTIVE_PER_ENTITY = 20

/**
 * Fails if one of the entities has reached the limit. Adding an active webhook takes a lock on each of its entities until
 * the end of the transaction, always in the same order, so that the count cannot change meanwhile and nobody deadlocks.
 * These are not locks on the entities' rows: the record feed writes those in its own order.
 */
export const requireBelowLimit = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, entityIds: ReadonlyArray<string>) {
  yield* sql`
    SELECT pg_advisory_xact_lock(lock) FROM (
      SELECT DISTINCT hashtextextended('active webhooks of ' || id, 0) AS lock FROM unnest(${entityIds}::text[]) AS e (id) ORDER BY lock) locks`
  const full = yield* sql`
    SELECT we.entity_id FROM webhook_entities we JOIN webhooks w ON w.id = we.webhook_id AND w.status IN ('ACTIVE', 'PAUSED')
    WHERE we.entity_id = ANY(${entityIds}) GROUP BY we.entity_id HAVING count(*) >= ${ACTIVE_PER_ENTITY} LIMIT 1`
  if (full.length > 0) {
    return yield* problem(
      "webhook_limit_reached",
      `An entity can be covered by at most ${ACTIVE_PER_ENTITY} active or paused webhooks. Disable or delete one first.`
    )
  }
})
