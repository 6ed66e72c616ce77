/**
 * Sign-in: password, passkey, identity provider, invitation, and new passwords by e-mail. These routes are open to anybody, so each attempt counts
 * against the client's address, and a password also against its account. Errors never reveal what is wrong: an unknown
 * address, a wrong password and a deactivated user get the same response after the same work.
 */
import { createHash } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { recordOfUser } from "../../access/audit/AuditTrail.ts"
import { slidingWindows } from "../../access/limits/SlidingWindows.ts"
import { networkOf, siteOf } from "../../http/ClientAddress.ts"
import { problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { dieOnSql } from "../../runtime/database/sql.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { isFamiliar } from "./familiarNetworks.ts"
import { followAddress } from "./followAddress.ts"
import { type Answer, Identity, refused } from "./Identity.ts"
import { Invitations } from "./Invitations.ts"
import { Passkeys } from "./Passkeys.ts"
import { Passwords } from "./Passwords.ts"
import { PasswordWork } from "./PasswordWork.ts"
import { Sessions } from "./Sessions.ts"
import { tooMany } from "./tooMany.ts"

/**
 * Attempts per address, per account from one address, and per account from all unfamiliar networks (familiarNetworks.ts), within
 * {@link WINDOW_MS}. Attempts from a familiar network do not count in the last: otherwise anyone could lock somebody else out.
 */
const PER_ADDRESS = 30
const PER_ACCOUNT = 10
const PER_ACCOUNT_ANYWHERE = 50
const WINDOW_MS = 900_000
/** Links for a new password per account and hour, from all addresses: each is an e-mail, and ends the link before it. */
const RESETS = 5
/** Requests for a new password per site ({@link siteOf}), within {@link WINDOW_MS}. */
const RESETS_OF_SITE = 300

const failed = () => problem("sign_in_failed", "The e-mail address or the password is incorrect.")

/** The cookies of a response that signed somebody in. */
const cookiesOf = ({ cookies, status }: Answer) => (status === 200 && cookies.length > 0 ? Effect.succeed(cookies) : failed())

/**
 * A typed address as limits and accounts know it. Postgres may fold more letters, by its locale: one account would have several
 * addresses, each with limits of its own.
 */
const folded = (email: string): string => email.toLowerCase()

const SignInAccount = Schema.Struct({
  id: Schema.String,
  /** The hash; null without a password. */
  password: Schema.NullOr(Schema.String)
})
const decodeAccounts = decodeRows(SignInAccount)

export class SignIn extends Effect.Service<SignIn>()("custody/portal/SignIn", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const identity = yield* Identity
    const invitations = yield* Invitations
    const passkeys = yield* Passkeys
    const passwords = yield* Passwords
    const work = yield* PasswordWork
    const sessions = yield* Sessions
    const { rateLimit } = yield* Settings
    // Windows of their own: made-up names cannot evict addresses.
    const attempts = (what: string, limit: number) => slidingWindows({ name: `sign-in ${what}`, limit, windowMs: WINDOW_MS })
    const ofAddress = yield* attempts("address", PER_ADDRESS)
    const ofCallback = yield* attempts("callback", PER_ADDRESS)
    const ofAccountHere = yield* attempts("account at address", PER_ACCOUNT)
    const ofAccount = yield* attempts("account", PER_ACCOUNT_ANYWHERE)
    const ofResetSite = yield* attempts("reset site", RESETS_OF_SITE)

    const ofReset = yield* slidingWindows({ name: "password reset", limit: RESETS, windowMs: 3_600_000 })

    const spend = (window: typeof ofAddress, key: string) =>
      rateLimit === null
        ? Effect.void
        : Effect.flatMap(window.take(key), (wait) => (wait === 0 ? Effect.void : tooMany("Too many attempts.", Math.ceil(wait / 1_000))))
    const address = Effect.map(currentRequest, ({ client }) => (client === undefined ? "unknown" : networkOf(client)))
    const site = Effect.map(currentRequest, ({ client }) => (client === undefined ? "unknown" : siteOf(client)))
    const spendOfAddress = Effect.flatMap(address, (from) => spend(ofAddress, from))
    /** The account of an address in lower case. Hashed, so that text typed by strangers is not stored. */
    const accountOf = (email: string) => createHash("sha256").update(email).digest("base64url")
    const spendOfAccount = (email: string) =>
      Effect.flatMap(address, (from) => {
        const everywhere = Effect.unlessEffect(spend(ofAccount, accountOf(email)), isFamiliar(sql, email, from))
        return Effect.zipRight(spend(ofAccountHere, `${accountOf(email)}/${from}`), everywhere)
      })

    /** Records a wrong password of an account in the background: the response time must not reveal whether the account exists. */
    const noteFailure = (userId: string | undefined) =>
      userId === undefined
        ? Effect.void
        : recordOfUser(sql, userId, { type: "session", id: null, userId }, "account.sign_in_failed").pipe(
            Effect.catchAllCause((cause) => Effect.logWarning("a failed sign-in could not be recorded", cause)),
            Effect.forkDaemon,
            Effect.asVoid
          )

    /** Ends a new session if the password was changed while it was checked: a change ends the sessions that it sees. */
    const endIfChanged = ({ id, password }: typeof SignInAccount.Type, { body }: Answer) =>
      Effect.gen(function* () {
        // Waits for a change that is not committed yet.
        const same = yield* sql`SELECT 1 FROM portal_accounts WHERE user_id = ${id} AND password = ${password} FOR SHARE`
        if (same.length > 0) return
        yield* sql`DELETE FROM portal_sessions WHERE user_id = ${id} AND token = ${String(body["token"])}`
        return yield* failed()
      }).pipe(dieOnSql)

    const byPassword = (email: string, password: string) =>
      Effect.gen(function* () {
        yield* followAddress(sql, email)
        const [account] = yield* Effect.orDie(
          decodeAccounts(sql`
            SELECT p.id, a.password FROM portal_users p JOIN users u ON u.id = p.id
            LEFT JOIN portal_accounts a ON a.user_id = p.id AND a.password IS NOT NULL
            WHERE p.email = ${email} AND p.email = lower(u.email) AND u.status = 'active'`)
        )
        // The library does the same work for an unknown address.
        const asked = account === undefined ? `nobody-${crypto.randomUUID()}@invalid.example` : email
        const answer = yield* work.inTurn(identity.ask("/sign-in/email", { email: asked, password }))
        const cookies = yield* Effect.tapError(cookiesOf(answer), () => noteFailure(account?.id))
        if (account !== undefined) yield* endIfChanged(account, answer)
        yield* Effect.logInfo("portal: signed in with a password").pipe(Effect.annotateLogs({ userId: account?.id ?? "" }))
        return cookies
      })

    return {
      /** Creates a session that still needs the second factor, and returns its cookies. */
      password: (typed: string, password: string) =>
        Effect.gen(function* () {
          const email = folded(typed)
          yield* spendOfAddress
          yield* spendOfAccount(email)
          return yield* byPassword(email, password)
        }),

      /** Options for a browser to authenticate with a passkey. */
      passkeyOptions: Effect.zipRight(spendOfAddress, passkeys.signInOptions),

      /** Creates a complete session: a passkey with user verification counts as both factors. */
      passkey: (given: unknown) =>
        Effect.gen(function* () {
          yield* spendOfAddress
          const { id, userId } = yield* passkeys.verify(given, "sign-in")
          const cookies = yield* sessions.begin(userId, "passkey", { passkey: id })
          yield* Effect.logInfo("portal: signed in with a passkey").pipe(Effect.annotateLogs({ userId }))
          return cookies
        }),

      /** The identity provider's URL for the sign-in, with the cookie that the browser must return. */
      provider: Effect.gen(function* () {
        yield* spendOfAddress
        const asked = { provider: "oidc", callbackURL: "/portal/", errorCallbackURL: "/portal/sign-in", disableRedirect: true }
        const answer = yield* identity.ask("/sign-in/social", asked, "provider")
        const url = answer.body["url"]
        return typeof url === "string"
          ? { url, cookies: answer.cookies }
          : yield* problem("service_unavailable", "The identity provider is not responding. Try again.", {
              headers: { "retry-after": "5" }
            })
      }),

      /**
       * Returns the identity provider's redirect. Counted separately: the sign-in that it completes was counted when it began. Any
       * web page can send browsers here, so a request that no sign-in of this browser preceded is refused and not counted.
       */
      callback: (query: string) =>
        Effect.gen(function* () {
          if (!(yield* identity.hasState)) return refused
          yield* Effect.flatMap(address, (from) => spend(ofCallback, from))
          return yield* identity.callback(query)
        }),

      /** The invited user. */
      invitation: (token: string) => Effect.zipRight(spendOfAddress, invitations.look(token)),

      /** Sends a link for a new password, if the address has an account. */
      requestReset: (typed: string) =>
        Effect.gen(function* () {
          const email = folded(typed)
          yield* spendOfAddress
          yield* Effect.flatMap(site, (from) => spend(ofResetSite, from))
          yield* spend(ofReset, accountOf(email))
          yield* passwords.request(email)
        }),

      /** The account of a link for a new password. */
      passwordReset: (token: string) => Effect.zipRight(spendOfAddress, passwords.look(token)),

      /** Sets a new password by a link. Signs nobody in. */
      resetPassword: (token: string, password: string) =>
        Effect.gen(function* () {
          yield* spendOfAddress
          yield* passwords.look(token)
          yield* passwords.reset(token, yield* work.hash(password))
        }),

      /** Creates the account of an invitation, and signs in if it has a password. */
      accept: (token: string, password: string | null) =>
        Effect.gen(function* () {
          yield* spendOfAddress
          yield* invitations.look(token)
          const hash = password === null ? null : yield* work.hash(password)
          const { email, userId } = yield* invitations.accept(token, hash)
          yield* Effect.logInfo("portal: an invitation was accepted").pipe(Effect.annotateLogs({ userId }))
          return password === null ? [] : yield* byPassword(email, password)
        })
    }
  })
}) {
  static readonly layer = this.Default
}
