/**
 * The scope of a webhook: nobody can subscribe to events that the same key could not read. A webhook without a vault
 * filter covers every vault of its entities, and the caller must be able to see each of them at that moment; vaults that
 * are created later are covered too. Hidden and unknown entities and vaults get the same response. Decisions D-8, D-9.
 */

import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { reachedEntities, reachesEntity, seesEveryVault, seesVault } from "../../access/visibility/visibility.ts"
import { isKind, kinds } from "../../events/log/Kind.ts"
import { fieldIssue, invalidFields } from "../../http/Body.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { isStorable } from "../../values/givenId.ts"

const decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))

const storable = (ids: ReadonlyArray<string>) => ids.filter(isStorable)

/** Whether the caller can see every vault of the entities, and a key is not limited to some. */
export const seesAll = (sql: SqlClient.SqlClient, principal: PrincipalState, entityIds: ReadonlyArray<string>) =>
  Effect.map(
    sql`SELECT 1 WHERE ${seesEveryVault(sql, principal, sql`p.entity_id = ANY(${entityIds})`)}`,
    (seen) => principal.vaultAllowlist === null && seen.length > 0
  )

/** Where a caller finds the entities to name. */
const LISTED = "see GET /v1/entities"

/** The only entity that the caller reaches, for a body that names none. C-11. */
const onlyEntity = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, principal: PrincipalState) {
  const [first, second] = yield* decodeIds(sql`SELECT r.id FROM (${reachedEntities(sql, principal)}) r LIMIT 2`)
  return first !== undefined && second === undefined
    ? [first.id]
    : yield* invalidFields([
        fieldIssue("entityIds", `must be given, because this API key does not reach exactly one entity: ${LISTED}`, "missing")
      ])
})

/**
 * Rejects entities and vaults that the caller cannot see or that do not belong together. Returns the entities: the given ones, or
 * the only one that the caller reaches if none are given.
 */
export const requireWebhookScope = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  given: ReadonlyArray<string> | undefined,
  vaultIds: ReadonlyArray<string> | null
) {
  const entityIds = given ?? (yield* onlyEntity(sql, principal))
  const reached = yield* sql`
    SELECT a.id FROM unnest(${storable(entityIds)}::text[]) AS a (id) WHERE ${reachesEntity(sql, principal, sql.literal("a.id"))}`
  if (reached.length < entityIds.length) {
    return yield* invalidFields([fieldIssue("entityIds", `must list entities that this API key has access to: ${LISTED}`)])
  }
  if (vaultIds === null) {
    if (principal.vaultAllowlist === null) {
      if (yield* seesAll(sql, principal, entityIds)) return entityIds
      return yield* invalidFields([
        fieldIssue(
          "vaultIds",
          "must name the vaults, because you do not have the Developer role on every vault that these entities have or lately had"
        )
      ])
    }
    return yield* invalidFields([fieldIssue("vaultIds", "must be set, because this API key is limited to some vaults")])
  }
  const seen = yield* sql`
    SELECT v.id FROM vaults v WHERE v.id = ANY(${storable(vaultIds)}) AND v.entity_id = ANY(${entityIds})
      AND ${seesVault(sql, principal, sql.literal("v.id"))}`
  if (seen.length < vaultIds.length) {
    return yield* invalidFields([fieldIssue("vaultIds", "must list vaults of these entities that this API key has access to")])
  }
  return entityIds
})

/**
 * Rejects kinds without a vault for a key with a vault allowlist: it could not read such events, and vault filters do not
 * apply to them.
 */
export const requireReadableKinds = (principal: PrincipalState, eventKinds: ReadonlyArray<string>) => {
  const hidden = principal.vaultAllowlist === null ? undefined : eventKinds.find((kind) => !isKind(kind) || kinds[kind].scope === "entity")
  return hidden === undefined
    ? Effect.void
    : invalidFields([
        fieldIssue("eventKinds", `must not list ${hidden}, which names no vault, because this API key is limited to some vaults`)
      ])
}
