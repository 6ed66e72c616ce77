/**
 * Re-checks keys and portal sessions that were authenticated some time ago, for requests that stay open. One statement serves
 * all of them. Spec: Authentication 5 to 7, 10. C-1.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { allowsAddress } from "./ipAllowlist.ts"
import { type PrincipalState, scopes } from "./Principal.ts"

/** Idle timeout of a portal session. */
const IDLE = Duration.hours(1)
/** Time allowed for the second factor after the first. */
export const HALFWAY = Duration.minutes(15)

/** Whether a row of `portal_sessions s` has ended: by age, by idleness, or because the second factor took too long. */
export const sessionIsOver = (sql: SqlClient.SqlClient) => sql`(s.expires_at <= clock_timestamp()
  OR s.last_seen_at < clock_timestamp() - make_interval(secs => ${Duration.toSeconds(IDLE)})
  OR (s.second_factor_at IS NULL AND s.created_at < clock_timestamp() - make_interval(secs => ${Duration.toSeconds(HALFWAY)})))`

const Row = Schema.Struct({
  id: Schema.String,
  scopes: Schema.Array(Schema.String),
  vaultIds: Schema.NullOr(Schema.Array(Schema.String)),
  isOwner: Schema.Boolean,
  ipAllowlist: Schema.Array(Schema.String)
})
const decode = decodeRows(Row)

const idOf = ({ keyId, sessionId }: PrincipalState) => keyId ?? sessionId ?? ""

export class AccessChecks extends Effect.Service<AccessChecks>()("custody/AccessChecks", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => ({
    /**
     * The current principals, by the given ones. Absent if the key was revoked or expired or the session has ended, its user was
     * deactivated, or the key's IP allowlist no longer allows the client.
     */
    current: (principals: ReadonlyArray<PrincipalState>): Effect.Effect<ReadonlyMap<PrincipalState, PrincipalState>> =>
      Effect.suspend(() => {
        if (principals.length === 0) return Effect.succeed(new Map<PrincipalState, PrincipalState>())
        const keyIds = [...new Set(principals.flatMap(({ keyId }) => keyId ?? []))]
        const sessionIds = [...new Set(principals.flatMap(({ sessionId }) => sessionId ?? []))]
        return Effect.map(
          decode(sql`
            SELECT k.id, k.scopes, k.vault_ids AS "vaultIds", k.ip_allowlist AS "ipAllowlist", u.organization_role = 'owner' AS "isOwner"
            FROM api_keys k JOIN users u ON u.id = k.user_id
            WHERE k.id = ANY(${keyIds}::text[]) AND k.revoked_at IS NULL AND u.status = 'active'
              AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())
            UNION ALL
            SELECT s.id, ${[...scopes]}::text[], NULL, '{}', u.organization_role = 'owner'
            FROM portal_sessions s JOIN users u ON u.id = s.user_id JOIN organizations o ON o.id = u.organization_id
            WHERE s.id = ANY(${sessionIds}::text[]) AND NOT ${sessionIsOver(sql)} AND u.status = 'active' AND o.deleting_at IS NULL`),
          (rows) => {
            const byId = new Map(rows.map((row) => [row.id, row]))
            return new Map(
              principals.flatMap((known) => {
                const row = byId.get(idOf(known))
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
