/**
 * The scope of a webhook: nobody can subscribe to events that the same key could not read. A webhook without a vault
 * filter covers every vault of its entities, and the caller must be able to see each of them at that moment; vaults that
 * are created later are covered too. Hidden and unknown entities and vaults get the same response. Decisions D-8, D-9.
 */

import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { reachedEntities, seesEveryVault, seesVault } from "../../access/visibility/visibility.ts"
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

/**
 * The entities that a body names, or the only one that the caller reaches if it names none. Rejects those that the caller does not reach:
 * also a webhook that gets no event of an entity counts against its limit. C-11, D-29.
 */
const requireEntities = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  given: ReadonlyArray<string> | undefined
) {
  const named = given === undefined ? sql`true` : sql`r.id = ANY(${storable(given)})`
  const limit = given === undefined ? 2 : given.length
  const reached = yield* decodeIds(sql`SELECT r.id FROM (${reachedEntities(sql, principal)}) r WHERE ${named} LIMIT ${limit}`)
  if (given === undefined) {
    if (reached.length === 1) return reached.map(({ id }) => id)
    return yield* invalidFields([
      fieldIssue("entityIds", `must be given, because this API key does not reach exactly one entity: ${LISTED}`, "missing")
    ])
  }
  if (reached.length === given.length) return given
  return yield* invalidFields([fieldIssue("entityIds", `must list entities that this API key has access to: ${LISTED}`)])
})

/** Rejects vaults that the caller cannot see or that do not belong to the entities; without vaults, entities with one that the caller cannot see. */
export const requireVaults = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  entityIds: ReadonlyArray<string>,
  vaultIds: ReadonlyArray<string> | null
) {
  if (vaultIds === null) {
    if (principal.vaultAllowlist === null) {
      if (yield* seesAll(sql, principal, entityIds)) return
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
  if (seen.length < vaultIds.length)
    yield* invalidFields([fieldIssue("vaultIds", "must list vaults of these entities that this API key has access to")])
})

/** Checks the scope of a new webhook, and returns its entities. */
export const requireWebhookScope = (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  given: ReadonlyArray<string> | undefined,
  vaultIds: ReadonlyArray<string> | null
) => Effect.tap(requireEntities(sql, principal, given), (entityIds) => requireVaults(sql, principal, entityIds, vaultIds))

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
