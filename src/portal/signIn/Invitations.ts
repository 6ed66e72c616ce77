/**
 * Invitations: the only source of accounts. Each is for one user of the record feed and the e-mail address that the user has then,
 * works once and for a limited time, and is stored as a hash. With `reset` it removes the account's password, authenticator,
 * passkeys and sessions when it is accepted, which is how somebody who lost the second factor gets back in; at once if somebody else got
 * into the account. Decision D-43.
 */
import { createHash, randomBytes } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import { Data, Duration, Effect, Redacted, Schema } from "effect"
import { type Actor, OPERATOR, recordOfUser } from "../../access/audit/AuditTrail.ts"
import { endSignIns } from "../../access/credentials/endSignIns.ts"
import { problem } from "../../http/Problem.ts"
import { databaseTime } from "../../runtime/database/databaseTime.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { dieOnSql } from "../../runtime/database/sql.ts"
import * as Id from "../../values/Id.ts"
import { followAddress } from "./followAddress.ts"

/** Default validity of an invitation. */
export const VALIDITY = Duration.hours(72)

/** The user cannot be invited; for another `waitS` seconds if it is too early. The message may name other accounts. */
export class InvalidInvitation extends Data.TaggedError("InvalidInvitation")<{ readonly message: string; readonly waitS?: number }> {}

/** A new invitation; the token is returned only here. */
export interface Invitation {
  readonly userId: string
  readonly name: string
  readonly email: string
  readonly token: Redacted.Redacted
  readonly expiresAt: string
}

/** The invited user. */
const Invited = Schema.Struct({
  userId: Schema.String,
  name: Schema.String,
  email: Schema.String,
  organizationName: Schema.String,
  reset: Schema.Boolean,
  expiresAt: Schema.String
})
export type Invited = typeof Invited.Type

const decodeInvited = decodeRows(Schema.Struct({ id: Schema.String, ...Invited.fields })),
  decodeUsers = decodeRows(
    Schema.Struct({
      name: Schema.String,
      email: Schema.String,
      address: Schema.String,
      status: Schema.String,
      deleting: Schema.Boolean,
      known: Schema.Boolean
    })
  ),
  decodeWaits = decodeRows(Schema.Struct({ waitS: Schema.Number }))

const hash = (token: string): Buffer => createHash("sha256").update(token).digest()
const invalid = () => problem("invitation_invalid", "The invitation was already used, has expired or is invalid. Ask for a new one.")

export class Invitations extends Effect.Service<Invitations>()("custody/portal/Invitations", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const find = (token: string, lock: boolean) =>
      decodeInvited(sql`
        SELECT i.id, u.id AS "userId", u.name, lower(u.email) AS email, o.name AS "organizationName", i.reset, i.expires_at AS "expiresAt"
        FROM portal_invitations i JOIN users u ON u.id = i.user_id JOIN organizations o ON o.id = u.organization_id
        WHERE i.token_hash = ${hash(token)} AND i.email = lower(u.email) AND i.used_at IS NULL AND i.expires_at > clock_timestamp()
          AND u.status = 'active' AND o.deleting_at IS NULL
        ${lock ? sql`FOR SHARE OF u FOR UPDATE OF i` : sql``}`)

    return {
      /**
       * Invites a user of the record feed; an earlier unused invitation becomes invalid. With `againS` it must be that many
       * seconds old.
       */
      create: Effect.fn("Invitations.create")(function* (
        userId: string,
        options: { readonly reset: boolean | "now"; readonly validity: Duration.Duration; readonly againS?: number },
        actor: Actor = OPERATOR
      ) {
        const refuse = (message: string) => new InvalidInvitation({ message })
        // The row is locked, so that of two concurrent invitations the later one also ends the earlier.
        const [user] = yield* decodeUsers(sql`
          SELECT u.name, u.email, lower(u.email) AS address, u.status, o.deleting_at IS NOT NULL AS deleting,
            EXISTS (SELECT 1 FROM portal_users p WHERE p.id = u.id) AS known
          FROM users u JOIN organizations o ON o.id = u.organization_id WHERE u.id = ${userId} FOR NO KEY UPDATE OF u`)
        if (user === undefined) return yield* refuse(`There is no user ${userId}.`)
        if (user.status !== "active") return yield* refuse(`The user ${userId} is deactivated.`)
        if (user.deleting) return yield* refuse(`The organization of the user ${userId} is being deleted.`)
        yield* followAddress(sql, user.address)
        const taken = yield* sql`SELECT 1 FROM portal_users WHERE email = ${user.address} AND id <> ${userId}`
        if (taken.length > 0) return yield* refuse(`Another account uses ${user.email}; each account needs its own e-mail address.`)
        if (user.known && options.reset === false) {
          return yield* refuse(
            `The user ${userId} already has an account. Use --reset to let them choose a new password and second factor.`
          )
        }
        if (options.againS !== undefined) {
          // A statement of its own: it sees what another one committed while this one waited for the lock.
          const [early] = yield* decodeWaits(sql`
            SELECT ceil(extract(epoch FROM max(created_at) - clock_timestamp()) + ${options.againS})::integer AS "waitS"
            FROM portal_invitations WHERE user_id = ${userId} AND used_at IS NULL
            HAVING max(created_at) > clock_timestamp() - make_interval(secs => ${options.againS})`)
          if (early !== undefined) return yield* new InvalidInvitation({ message: `The user ${userId} was just invited.`, ...early })
        }
        if (options.reset === "now") {
          yield* endSignIns(sql, userId)
          yield* sql`DELETE FROM portal_users WHERE id = ${userId}`
        }
        const token = randomBytes(24).toString("base64url")
        const expiresAt = new Date((yield* databaseTime(sql)) + Duration.toMillis(options.validity)).toISOString()
        yield* sql`DELETE FROM portal_invitations WHERE user_id = ${userId} AND used_at IS NULL`
        yield* sql`
          INSERT INTO portal_invitations (id, user_id, email, token_hash, reset, expires_at)
          VALUES (${Id.make("inv")}, ${userId}, ${user.address}, ${hash(token)}, ${options.reset !== false}, ${expiresAt}::timestamptz)`
        yield* recordOfUser(sql, userId, actor, "account.invited", { reset: { old: null, new: options.reset } })
        return { userId, name: user.name, email: user.email, token: Redacted.make(token), expiresAt } satisfies Invitation
      }, sql.withTransaction),

      /** The invited user, while the invitation is valid. */
      look: (token: string) =>
        Effect.flatMap(Effect.orDie(find(token, false)), ([invited]) => (invited === undefined ? invalid() : Effect.succeed(invited))),

      /** Creates the account, once. Without a password, it can only sign in with the identity provider. */
      accept: Effect.fn("Invitations.accept")(function* (token: string, passwordHash: string | null) {
        return yield* sql.withTransaction(
          Effect.gen(function* () {
            const [invited] = yield* find(token, true)
            if (invited === undefined) return yield* invalid()
            const { email, id, name, userId } = invited
            yield* followAddress(sql, email)
            if (invited.reset) yield* sql`DELETE FROM portal_users WHERE id = ${userId}`
            const made = yield* sql`
              INSERT INTO portal_users (id, name, email, email_verified) VALUES (${userId}, ${name}, ${email}, true)
              ON CONFLICT DO NOTHING RETURNING id`
            if (made.length === 0) return yield* invalid()
            if (passwordHash !== null) {
              yield* sql`
                INSERT INTO portal_accounts (id, user_id, account_id, provider_id, password)
                VALUES (${Id.make("acc")}, ${userId}, ${userId}, 'credential', ${passwordHash})`
            }
            yield* sql`UPDATE portal_invitations SET used_at = clock_timestamp() WHERE id = ${id}`
            yield* recordOfUser(sql, userId, { type: "session", id: null, userId }, "account.invitation_accepted")
            return invited
          })
        )
      }, dieOnSql)
    }
  })
}) {
  static readonly layer = this.Default
}
