/**
 * Lists of API keys that are read in pages, each key with the name of its user. A page is JSON text with a limited size: a key may
 * name a thousand vaults.
 */
import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Record, Schema } from "effect"
import { jsonOfRow, type Key, type Searched, upToLast } from "../../http/Page.ts"
import { castRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"
import { upToBytes } from "../../runtime/database/upToBytes.ts"
import { ApiKey } from "./ApiKeys.ts"

/** A key with the name of its user. */
export const NamedKey = Schema.Struct({ ...ApiKey.fields, userName: Schema.String })

const Row = Schema.Struct({
  ...NamedKey.fields,
  // As JSON text: there may be 100,000 ids on a page.
  scopes: Schema.String,
  vaultIds: Schema.NullOr(Schema.String),
  ipAllowlist: Schema.String,
  behind: Schema.Number
})
type Row = typeof Row.Type
const cast = castRows(Row)
const names = Record.keys(NamedKey.fields)

/** A listed key as JSON text. */
export const keyJson = (row: Row): string => {
  const { ipAllowlist, scopes, vaultIds } = row
  return jsonOfRow(names, row, { ipAllowlist, scopes, vaultIds })
}

/** About the bytes of a key's JSON text. The size of stored `vault_ids` is known without reading them. */
const size = "coalesce(pg_column_size(k.vault_ids), 0) + pg_column_size(ROW(k.label, k.ip_allowlist, u.name)) + 500"

const columns = `k.id, k.user_id AS "userId", k.label, k.hint, to_json(k.scopes)::text AS scopes, to_json(k.vault_ids)::text AS "vaultIds",
  to_json(k.ip_allowlist)::text AS "ipAllowlist", k.expires_at AS "expiresAt", k.created_at AS "createdAt",
  k.last_used_at AS "lastUsedAt", k.last_used_address AS "lastUsedAddress", k.revoked_at AS "revokedAt",
  k.revoked_reason AS "revokedReason", k."userName", k.behind`

export class KeysRepo extends Effect.Service<KeysRepo>()("custody/KeysRepo", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => {
    /** A page of keys `k` of users `u`, newest first. */
    const page = (which: Statement.Fragment, after: Key | null, take: number): Effect.Effect<Searched<Row>> => {
      const found = sql`
        SELECT k.*, u.name AS "userName", ${sql.literal(size)} AS size FROM users u JOIN api_keys k ON k.user_id = u.id
        WHERE ${which} ${and(sql, after !== null && sql`(k.created_at, k.id) < (${after[0]}::timestamptz, ${after[1]})`)}
        ORDER BY k.created_at DESC, k.id DESC LIMIT ${take}`
      const rows = cast(sql`SELECT ${sql.literal(columns)} FROM (${upToBytes(sql, found, "created_at DESC, id DESC")}) k`)
      return Effect.orDie(Effect.map(rows, (keys) => upToLast(keys, ({ createdAt, id }) => [createdAt, id])))
    }

    return {
      /** A user's keys, those that are revoked or those that are not. */
      ofUser: (userId: string, isRevoked: boolean, after: Key | null, take: number) =>
        page(sql`u.id = ${userId} AND (k.revoked_at IS NOT NULL) = ${isRevoked}::boolean`, after, take),

      /** Keys of an organization's other users that are not revoked, for an owner. */
      ofOthers: (
        { organizationId, userId }: { readonly organizationId: string; readonly userId: string },
        after: Key | null,
        take: number
      ) => page(sql`u.organization_id = ${organizationId} AND u.id <> ${userId} AND k.revoked_at IS NULL`, after, take)
    }
  })
}) {
  static readonly layer = this.Default
}
