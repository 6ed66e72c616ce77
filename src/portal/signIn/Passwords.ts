/**
 * New passwords, on the account page or by a link in an e-mail. A link works once, for a short time, and is stored as a hash. It is
 * bound to the account's address and password at its request, so a change of either ends it. A deactivation ends it too, and a
 * newer link replaces it. It changes the password alone: whoever reads the mailbox still needs the second factor, so an account
 * without one, or without a password, gets an e-mail that says what to do instead. The library's own routes have none of these
 * rules. Decision D-43.
 */
import { createHash, randomBytes } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Redacted, Schema } from "effect"
import { type Actor, recordOfUser } from "../../access/audit/AuditTrail.ts"
import { passwordLinkId } from "../../access/credentials/endSignIns.ts"
import { Mailer, MailFailed } from "../../delivery/notices/Mailer.ts"
import { letterOf } from "../../delivery/notices/message.ts"
import { fieldIssue } from "../../http/Body.ts"
import { problem } from "../../http/Problem.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { dieOnSql } from "../../runtime/database/sql.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import * as Id from "../../values/Id.ts"
import { addressOf } from "../server/origin.ts"
import { noteChange } from "./changeNotice.ts"
import { followAddress } from "./followAddress.ts"
import { Identity } from "./Identity.ts"
import { lockAccount } from "./lockAccount.ts"
import { PasswordWork } from "./PasswordWork.ts"
import { noResetText, resetText } from "./passwordTexts.ts"
import { type SessionState, Sessions, sessionActor } from "./Sessions.ts"
import { keepVerification } from "./verifications.ts"

/** How long a link works. */
const VALIDITY = Duration.minutes(30)
/** Longest time for the mail server. */
const SENDING = "20 seconds"

const Account = Schema.Struct({
  userId: Schema.String,
  name: Schema.String,
  email: Schema.String,
  /** The hash; null without a password. */
  password: Schema.NullOr(Schema.String),
  hasSecondFactor: Schema.Boolean
})
type Account = typeof Account.Type
const decodeAccounts = decodeRows(Account),
  decodeLinks = decodeRows(Schema.Struct({ value: Schema.parseJson(Schema.Tuple(Schema.String, Schema.String)), expiresAt: Schema.String }))

const hash = (text: string): string => createHash("sha256").update(text).digest("base64url")
const identifierOf = (token: string) => `password-reset/${hash(token)}`
/** What a link is bound to. */
const stateOf = ({ email, password }: Account) => hash(JSON.stringify([email, password]))
/** The person, before a sign-in. */
const personOf = ({ userId }: Account): Actor => ({ type: "session", id: null, userId })

const refused = () =>
  problem(
    "password_reset_refused",
    "This service does not reset passwords by e-mail. Ask its operator to invite you again: custody users invite <user id> --reset."
  )
const invalid = () => problem("password_reset_invalid", "The link was already used, has expired or is invalid. Ask for a new one.")

const wrong = () => problem("invalid_body", "The current password is incorrect.", { fields: [fieldIssue("current", "is incorrect")] })

export class Passwords extends Effect.Service<Passwords>()("custody/portal/Passwords", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const sessions = yield* Sessions
    const work = yield* PasswordWork
    const { send } = yield* Mailer
    const { provider } = yield* Identity
    // From the settings: nothing in a request decides where a link leads.
    const portal = addressOf(yield* Settings)
    const isOffered = send !== undefined && URL.canParse(portal)

    /** The account, if its user may sign in. */
    const find = (by: { readonly userId: string } | { readonly email: string }) =>
      decodeAccounts(sql`
        SELECT p.id AS "userId", u.name, lower(u.email) AS email, a.password,
          EXISTS (SELECT 1 FROM portal_second_factors f WHERE f.user_id = p.id AND f.verified_at IS NOT NULL) AS "hasSecondFactor"
        FROM portal_users p JOIN users u ON u.id = p.id JOIN organizations o ON o.id = u.organization_id
        LEFT JOIN portal_accounts a ON a.user_id = p.id AND a.password IS NOT NULL
        WHERE ${"userId" in by ? sql`p.id = ${by.userId}` : sql`p.email = ${by.email} AND p.email = lower(u.email)`}
          AND u.status = 'active' AND o.deleting_at IS NULL`)

    /** The account of a link, with the link's expiry. */
    const ofLink = (token: string) =>
      Effect.gen(function* () {
        const [link] = yield* decodeLinks(sql`
          SELECT value, expires_at AS "expiresAt" FROM portal_verifications
          WHERE identifier = ${identifierOf(token)} AND expires_at > clock_timestamp() FOR UPDATE`)
        if (link === undefined) return yield* invalid()
        const [state, userId] = link.value
        // One change of an account at a time.
        yield* sql`SELECT 1 FROM portal_users WHERE id = ${userId} FOR NO KEY UPDATE`
        const [account] = yield* find({ userId })
        return account?.hasSecondFactor === true && stateOf(account) === state
          ? { ...account, expiresAt: link.expiresAt }
          : yield* invalid()
      })

    /** The e-mail to the person of an account, with a new link if the account can have one. */
    const letter = (account: Account) =>
      Effect.gen(function* () {
        const { hasSecondFactor, name, password, userId } = account
        // A deactivation ends links, and waits for this one.
        const active = yield* sql`SELECT 1 FROM users WHERE id = ${userId} AND status = 'active' FOR SHARE`
        if (active.length === 0) return yield* new MailFailed({ cause: "the user was deactivated" })
        if (password === null || !hasSecondFactor)
          return letterOf(noResetText({ name, provider, hasPassword: password !== null }), undefined)
        const token = Redacted.make(randomBytes(24).toString("base64url"))
        yield* keepVerification(sql, {
          id: passwordLinkId(userId),
          identifier: identifierOf(Redacted.value(token)),
          value: stateOf(account),
          userId,
          validity: VALIDITY
        })
        // The token follows the #, which browsers do not send.
        return letterOf(resetText(name, Duration.toMinutes(VALIDITY)), {
          href: `${portal}/password-reset#${Redacted.value(token)}`,
          title: "Choose a new password",
          button: "Choose a new password"
        })
      }).pipe(Effect.zipLeft(recordOfUser(sql, account.userId, personOf(account), "account.password_reset_requested")), sql.withTransaction)

    const sendTo = (account: Account, deliver: NonNullable<typeof send>) =>
      Effect.flatMap(letter(account), (mail) =>
        deliver({ ...mail, to: account.email, messageId: `${Id.make("ntc")}@custody-data-service` }).pipe(
          Effect.timeoutFail({ duration: SENDING, onTimeout: () => new MailFailed({ cause: `no answer within ${SENDING}` }) })
        )
      ).pipe(Effect.catchAllCause((cause) => Effect.logWarning("portal: an e-mail for a new password could not be sent", cause)))

    /** Replaces a password unless somebody changed it meanwhile; returns whether it did. */
    const replace = ({ password, userId }: Account, next: string) =>
      Effect.map(
        sql`UPDATE portal_accounts SET password = ${next}, updated_at = now() WHERE user_id = ${userId} AND password = ${password} RETURNING id`,
        (changed) => changed.length > 0
      )

    return {
      /** Changes the password of a session's user, and ends the user's other sessions. */
      change: (session: SessionState, current: string, next: string) =>
        Effect.gen(function* () {
          const { userId } = session
          const [account] = yield* find({ userId })
          const { password = null } = account ?? {}
          if (account === undefined || password === null || !(yield* work.verify(current, password))) return yield* wrong()
          const changed = yield* work.hash(next)
          yield* Effect.gen(function* () {
            yield* lockAccount(sql, userId, { session: session.id })
            if (!(yield* replace(account, changed))) return yield* wrong()
            yield* recordOfUser(sql, userId, sessionActor(session), "account.password_changed")
            yield* noteChange(sql, userId, "password-changed")
            yield* sessions.endAll(session, true)
          }).pipe(sql.withTransaction)
          yield* Effect.logInfo("portal: a password was changed").pipe(Effect.annotateLogs({ userId }))
        }).pipe(dieOnSql),

      /** Whether the service sends links. */
      isOffered,

      /** Sends a link to an address in lower case if it has an account, in the background: the response must not reveal whether it has. */
      request: (email: string) =>
        Effect.gen(function* () {
          if (send === undefined || !isOffered) return yield* refused()
          yield* followAddress(sql, email)
          const [account] = yield* Effect.orDie(find({ email }))
          if (account !== undefined) yield* Effect.forkDaemon(sendTo(account, send))
        }),

      /** The account of a link and its expiry, while the link is valid. */
      look: (token: string) => dieOnSql(sql.withTransaction(ofLink(token))),

      /** Sets the password of the link's account and ends its sessions and the link. The notice is a durable step of its own. */
      reset: (token: string, passwordHash: string) =>
        Effect.gen(function* () {
          const account = yield* ofLink(token)
          const { userId } = account
          if (!(yield* replace(account, passwordHash))) return yield* invalid()
          yield* sql`DELETE FROM portal_verifications WHERE identifier = ${identifierOf(token)}`
          yield* sql`DELETE FROM portal_sessions WHERE user_id = ${userId}`
          yield* recordOfUser(sql, userId, personOf(account), "account.password_reset")
          yield* noteChange(sql, userId, "password-reset")
          yield* Effect.logInfo("portal: a password was reset").pipe(Effect.annotateLogs({ userId }))
        }).pipe(sql.withTransaction, dieOnSql)
    }
  })
}) {
  static readonly layer = this.Default
}
