/**
 * What a key is and what it can see. An unknown vault and a vault on which the user has no role get the same response:
 * the role is checked first, and for every vault in the same way. C-7.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import type { PrincipalState } from "../credentials/Principal.ts"
import { Credential } from "./CredentialApi.ts"
import { Entity } from "./Entity.ts"
import { reachedEntities } from "./visibility.ts"

const KeyRow = Schema.Struct({
  label: Schema.String,
  scopes: Schema.Array(Schema.String),
  vaultIds: Schema.NullOr(Schema.Array(Schema.String)),
  ipAllowlist: Schema.Array(Schema.String),
  createdAt: Schema.String,
  expiresAt: Schema.NullOr(Schema.String),
  organizationRole: Credential.fields.user.fields.organizationRole,
  role: Schema.Number,
  allowlist: Schema.Number,
  entityCount: Schema.Number,
  entities: Schema.Array(Entity),
  hasRole: Schema.Boolean
})
const decode = decodeRows(KeyRow)

/** Entities in the response; a list of its own has all. */
const ENTITIES = 100

/** Why a key can or cannot see a vault: the first reason that applies. */
const becauseOf = (hasRole: boolean, { scopes, vaultIds }: Pick<typeof KeyRow.Type, "scopes" | "vaultIds">, vaultId: string) => {
  if (!hasRole) return "unknown"
  if (!scopes.includes("vault:read")) return "scope"
  return vaultIds !== null && !vaultIds.includes(vaultId) ? "allowlist" : "visible"
}

export class CredentialRepo extends Effect.Service<CredentialRepo>()("custody/CredentialRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    return {
      /** A key with what it can see, and optionally a vault. Undefined if the key no longer exists. */
      of: Effect.fn("CredentialRepo.of")(function* (
        keyId: string,
        principal: PrincipalState,
        clientAddress: string | null,
        vaultId: string | undefined
      ) {
        const asked = vaultId ?? ""
        const { isOwner, organizationId, userId } = principal
        const reached = principal.scopes.has("vault:read") || principal.scopes.has("webhook:read")
        const entities = sql`(${reachedEntities(sql, principal)}) n WHERE ${reached}`
        // The allowlist of the key, which in the portal is not that of the principal. Postgres hashes the subquery.
        const [key] = yield* decode(sql`
          SELECT k.label, k.scopes, k.vault_ids AS "vaultIds", k.ip_allowlist AS "ipAllowlist", k.created_at AS "createdAt",
            k.expires_at AS "expiresAt", u.organization_role AS "organizationRole",
            (SELECT count(*) FROM vault_roles r WHERE r.user_id = k.user_id) AS role,
            (SELECT count(*) FROM vault_roles r
              WHERE r.user_id = k.user_id AND (k.vault_ids IS NULL OR r.vault_id IN (SELECT unnest(k.vault_ids)))) AS allowlist,
            (SELECT count(*) FROM ${entities}) AS "entityCount",
            ARRAY(SELECT json_build_object('id', e.id, 'name', e.name) FROM (SELECT n.id FROM ${entities} ORDER BY n.id LIMIT ${ENTITIES}) n
              JOIN entities e ON e.id = n.id ORDER BY n.id) AS entities,
            EXISTS (SELECT 1 FROM vault_roles r WHERE r.user_id = k.user_id AND r.vault_id = ${asked}) AS "hasRole"
          FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.id = ${keyId} AND k.user_id = ${userId}`)
        if (key === undefined) return undefined
        const { allowlist, createdAt, entityCount, expiresAt, hasRole, ipAllowlist, label, organizationRole, role, scopes, vaultIds } = key
        const because = becauseOf(hasRole, key, asked)
        return {
          key: { id: keyId, label, scopes, vaultIds, ipAllowlist, createdAt, expiresAt },
          user: { id: userId, organizationRole },
          organizationId,
          ownerLevel: isOwner,
          clientAddress,
          vaults: { role, allowlist, visible: scopes.includes("vault:read") ? allowlist : 0 },
          entities: key.entities,
          entityCount,
          ...(vaultId === undefined ? {} : { vault: { visible: because === "visible", because } })
        } satisfies Credential
      }, Effect.orDie)
    }
  })
}) {
  static readonly layer = this.Default
}
