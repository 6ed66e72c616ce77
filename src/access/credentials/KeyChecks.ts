/**
 * Re-checks keys that were authenticated some time ago, for requests that stay open. One statement serves all keys. Spec:
 * Authentication 5 to 7, 10. C-1.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { allowsAddress } from "./ipAllowlist.ts"
import type { PrincipalState } from "./Principal.ts"

const KeyRow = Schema.Struct({
  id: Schema.String,
  scopes: Schema.Array(Schema.String),
  vaultIds: Schema.NullOr(Schema.Array(Schema.String)),
  isOwner: Schema.Boolean,
  ipAllowlist: Schema.Array(Schema.String)
})
const decode = decodeRows(KeyRow)

export class KeyChecks extends Effect.Service<KeyChecks>()("custody/KeyChecks", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => ({
    /**
     * The current principals of keys, by the given ones. Absent if the key was revoked or expired, its user was deactivated,
     * or its IP allowlist no longer allows the client.
     */
    current: (principals: ReadonlyArray<PrincipalState>): Effect.Effect<ReadonlyMap<PrincipalState, PrincipalState>> =>
      Effect.suspend(() => {
        const keyIds = [...new Set(principals.flatMap(({ keyId }) => keyId ?? []))]
        if (keyIds.length === 0) return Effect.succeed(new Map<PrincipalState, PrincipalState>())
        return Effect.map(
          decode(sql`
            SELECT k.id, k.scopes, k.vault_ids AS "vaultIds", k.ip_allowlist AS "ipAllowlist", u.organization_role = 'owner' AS "isOwner"
            FROM api_keys k JOIN users u ON u.id = k.user_id
            WHERE k.id = ANY(${keyIds}::text[]) AND k.revoked_at IS NULL AND u.status = 'active'
              AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())`),
          (rows) => {
            const byKey = new Map(rows.map((row) => [row.id, row]))
            return new Map(
              principals.flatMap((known) => {
                const row = byKey.get(known.keyId ?? "")
                if (row === undefined || !allowsAddress(row.ipAllowlist, known.client)) return []
                return [[known, { ...known, isOwner: row.isOwner, scopes: new Set(row.scopes), vaultAllowlist: row.vaultIds }] as const]
              })
            )
          }
        )
      }).pipe(Effect.orDie)
  }))
}) {
  static readonly layer = this.Default
}
