/**
 * Re-checks keys and portal sessions that were authenticated some time ago, for requests that stay open. One statement serves
 * all of them, and another one those whose allowlist has changed since the last check: an allowlist may name a thousand vaults. Spec:
 * Authentication 5 to 7, 10. C-1.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Schema } from "effect"
import { LRUCache } from "lru-cache"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { allowsAddress } from "./ipAllowlist.ts"
import { type PrincipalState, scopes } from "./Principal.ts"

/** Keys whose allowlists are remembered. */
const REMEMBERED = 2_000
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
  /** Of the key's allowlist; null for a session. */
  version: Schema.NullOr(Schema.String),
  isOwner: Schema.Boolean,
  ipAllowlist: Schema.Array(Schema.String)
})
const Allowlist = Schema.Struct({ id: Schema.String, version: Schema.String, vaultIds: Schema.NullOr(Schema.Array(Schema.String)) })
/** The version of a key's allowlist. Not that of its row: numbers of transactions repeat after a failover. */
const VERSION = "concat(cardinality(k.vault_ids), ' ', hash_array_extended(k.vault_ids, 0)) AS version"
const decode = decodeRows(Row),
  decodeAllowlists = decodeRows(Allowlist)

const idOf = ({ keyId, sessionId }: PrincipalState) => keyId ?? sessionId ?? ""

export class AccessChecks extends Effect.Service<AccessChecks>()("custody/AccessChecks", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => {
    const allowlists = new LRUCache<string, typeof Allowlist.Type>({ max: REMEMBERED })

    /** The allowlists of keys by id; those that have not changed are the same arrays as before. */
    const allowlistsOf = Effect.fnUntraced(function* (rows: ReadonlyArray<typeof Row.Type>) {
      const known = new Map(rows.flatMap(({ id }) => [[id, allowlists.get(id)] as const]))
      const changed = rows.flatMap(({ id, version }) => (version === null || known.get(id)?.version === version ? [] : id))
      if (changed.length > 0) {
        const read = yield* decodeAllowlists(sql`
          SELECT k.id, ${sql.literal(VERSION)}, k.vault_ids AS "vaultIds" FROM api_keys k WHERE k.id = ANY(${changed}::text[])`)
        for (const row of read) {
          allowlists.set(row.id, row)
          known.set(row.id, row)
        }
      }
      return known
    })

    return {
      /**
       * The current principals, by the given ones. Absent if the key was revoked or expired or the session has ended, its user was
       * deactivated, or the key's IP allowlist no longer allows the client.
       */
      current: (principals: ReadonlyArray<PrincipalState>): Effect.Effect<ReadonlyMap<PrincipalState, PrincipalState>> =>
        Effect.suspend(() => {
          if (principals.length === 0) return Effect.succeed(new Map<PrincipalState, PrincipalState>())
          const keyIds = [...new Set(principals.flatMap(({ keyId }) => keyId ?? []))]
          const sessionIds = [...new Set(principals.flatMap(({ sessionId }) => sessionId ?? []))]
          const found = decode(sql`
            SELECT k.id, k.scopes, ${sql.literal(VERSION)}, k.ip_allowlist AS "ipAllowlist", u.organization_role = 'owner' AS "isOwner"
            FROM api_keys k JOIN users u ON u.id = k.user_id
            WHERE k.id = ANY(${keyIds}::text[]) AND k.revoked_at IS NULL AND u.status = 'active'
              AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())
            UNION ALL
            SELECT s.id, ${[...scopes]}::text[], NULL, '{}', u.organization_role = 'owner'
            FROM portal_sessions s JOIN users u ON u.id = s.user_id JOIN organizations o ON o.id = u.organization_id
            WHERE s.id = ANY(${sessionIds}::text[]) AND NOT ${sessionIsOver(sql)} AND u.status = 'active' AND o.deleting_at IS NULL`)
          return Effect.flatMap(found, (rows) =>
            Effect.map(allowlistsOf(rows), (lists) => {
              const byId = new Map(rows.map((row) => [row.id, row]))
              return new Map(
                principals.flatMap((known) => {
                  const row = byId.get(idOf(known))
                  if (row === undefined || !allowsAddress(row.ipAllowlist, known.client)) return []
                  // A key that was removed in between.
                  const list = row.version === null ? { vaultIds: null } : lists.get(row.id)
                  if (list === undefined) return []
                  return [[known, { ...known, isOwner: row.isOwner, scopes: new Set(row.scopes), vaultAllowlist: list.vaultIds }] as const]
                })
              )
            })
          )
        }).pipe(Effect.orDie)
    }
  })
}) {
  static readonly layer = this.Default
}
