/**
 * Re-checks keys that were authenticated some time ago, for requests that stay open. One statement serves all keys. Spec:
 * Authentication 5 to 7, 10. C-1.
 */
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { PrincipalState } from "./Principal.ts"

interface KeyRow {
  readonly id: string
  readonly scopes: ReadonlyArray<string>
  readonly vaultIds: ReadonlyArray<string> | null
  readonly isOwner: boolean
}

export class KeyChecks extends Effect.Service<KeyChecks>()("custody/KeyChecks", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => ({
    /**
     * The current principals by key id. Absent if the key was revoked or expired, or its user was deactivated. The
     * client's address does not change while a request is open.
     */
    current: (principals: ReadonlyArray<PrincipalState>): Effect.Effect<ReadonlyMap<string, PrincipalState>> =>
      Effect.suspend(() => {
        const byKey = new Map(principals.flatMap((one) => (one.keyId === null ? [] : [[one.keyId, one] as const])))
        if (byKey.size === 0) return Effect.succeed(new Map<string, PrincipalState>())
        return Effect.map(
          sql<KeyRow>`
            SELECT k.id, k.scopes, k.vault_ids AS "vaultIds", u.organization_role = 'owner' AS "isOwner"
            FROM api_keys k JOIN users u ON u.id = k.user_id
            WHERE k.id = ANY(${[...byKey.keys()]}::text[]) AND k.revoked_at IS NULL AND u.status = 'active'
              AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())`,
          (rows) =>
            new Map(
              rows.flatMap(({ id, isOwner, scopes, vaultIds }) => {
                const known = byKey.get(id)
                return known === undefined ? [] : [[id, { ...known, isOwner, scopes: new Set(scopes), vaultAllowlist: vaultIds }] as const]
              })
            )
        )
      }).pipe(Effect.orDie)
  }))
}) {
  static readonly layer = this.Default
}
