/**
 * The users of an organization as its owners see them: their role, which comes from the custody platform, and the state of their
 * account. Owners invite them and end their sessions. An invitation goes to the member by e-mail and is never shown to the owner,
 * who could otherwise sign in as that person. Decision D-43.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { sessionIsOver } from "../../access/credentials/AccessChecks.ts"
import type { Key } from "../../http/Page.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"

/** A user of the organization. */
export const Member = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  email: Schema.String,
  isOwner: Schema.Boolean,
  /** Vaults on which the user has the Developer role. */
  vaults: Schema.Number,
  /** Whether the custody platform has not deactivated the user. */
  isActive: Schema.Boolean,
  hasAccount: Schema.Boolean,
  hasAuthenticator: Schema.Boolean,
  /** Whether wrong codes have locked the second factor. */
  isLocked: Schema.Boolean,
  passkeys: Schema.Number,
  /** When the open invitation was sent, and when it expires; null without one. */
  invitedAt: Schema.NullOr(Schema.String),
  invitedUntil: Schema.NullOr(Schema.String),
  /** The last sign-in that the audit log has; null if there is none. */
  lastSignInAt: Schema.NullOr(Schema.String),
  /** Sessions that have not ended. */
  sessions: Schema.Number
})
export type Member = typeof Member.Type

const decode = decodeRows(Member)

export class Members extends Effect.Service<Members>()("custody/portal/Members", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const columns = sql`
      u.id, u.name, u.email, u.organization_role = 'owner' AS "isOwner", u.status = 'active' AS "isActive",
      (SELECT count(*)::integer FROM vault_roles r WHERE r.user_id = u.id) AS vaults,
      EXISTS (SELECT 1 FROM portal_users p WHERE p.id = u.id) AS "hasAccount",
      f.verified_at IS NOT NULL AS "hasAuthenticator", coalesce(f.locked_until > clock_timestamp(), false) AS "isLocked",
      (SELECT count(*)::integer FROM portal_passkeys k WHERE k.user_id = u.id) AS passkeys,
      i.created_at AS "invitedAt", i.expires_at AS "invitedUntil",
      (SELECT a.at FROM audit_log a WHERE a.user_id IS NOT NULL
          AND (a.organization_id || '/' || a.user_id || '/' || a.action) = u.organization_id || '/' || u.id || '/account.signed_in'
        ORDER BY a.at DESC, a.id DESC LIMIT 1) AS "lastSignInAt",
      (SELECT count(*)::integer FROM portal_sessions s WHERE s.user_id = u.id AND s.second_factor_at IS NOT NULL AND NOT ${sessionIsOver(sql)}) AS sessions
      FROM users u LEFT JOIN portal_second_factors f ON f.user_id = u.id
      LEFT JOIN LATERAL (SELECT i.created_at, i.expires_at FROM portal_invitations i
        WHERE i.user_id = u.id AND i.email = lower(u.email) AND i.used_at IS NULL AND i.expires_at > clock_timestamp() ORDER BY i.created_at DESC LIMIT 1) i ON true`

    return {
      /** A page of an organization's users, by name, after a user's id: names may be longer than a cursor. */
      list: (organizationId: string, after: Key | null, take: number): Effect.Effect<ReadonlyArray<Member>> =>
        Effect.orDie(
          decode(sql`
            SELECT ${columns} WHERE u.organization_id = ${organizationId}
              ${and(sql, after !== null && sql`(u.name COLLATE "C", u.id) > (SELECT l.name COLLATE "C", l.id FROM users l WHERE l.id = ${after[0]})`)}
            ORDER BY u.name COLLATE "C", u.id LIMIT ${take}`)
        ),

      /** A user of the organization; undefined if the id is unknown or another organization's. */
      find: (organizationId: string, id: string): Effect.Effect<Member | undefined> =>
        Effect.map(
          Effect.orDie(decode(sql`SELECT ${columns} WHERE u.organization_id = ${organizationId} AND u.id = ${id}`)),
          ([member]) => member
        )
    }
  })
}) {
  static readonly layer = this.Default
}
