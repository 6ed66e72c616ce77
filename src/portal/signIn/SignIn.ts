/**
 * Sign-in: password, passkey, identity provider, invitation. These routes are open to anybody, so each attempt counts
 * against the client's address, and a password also against its account. Errors never reveal what is wrong: an unknown
 * address, a wrong password and a deactivated user get the same response after the same work.
 */
import { createHash } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { recordOfUser } from "../../access/audit/AuditTrail.ts"
import { slidingWindows } from "../../access/limits/SlidingWindows.ts"
import { networkOf } from "../../http/ClientAddress.ts"
import { type Problem, problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { type Answer, Identity } from "./Identity.ts"
import { Invitations } from "./Invitations.ts"
import { Passkeys } from "./Passkeys.ts"
import { Sessions } from "./Sessions.ts"
import { tooMany } from "./tooMany.ts"

/**
 * Attempts per address, per account from one address, and per account from all addresses, within {@link WINDOW}. The last is
 * larger: otherwise anyone could lock somebody else out with a few wrong passwords.
 */
const PER_ADDRESS = 30
const PER_ACCOUNT = 10
const PER_ACCOUNT_ANYWHERE = 50
const WINDOW_MS = 900_000

/** Concurrent password checks, each of which takes a core and 64 MB, and sign-ins that may wait for one. */
const CHECKS = 2,
  WAITING = 50

const failed = () => problem("sign_in_failed", "The e-mail address or the password is incorrect.")

/** The cookies of a response that signed somebody in. */
const cookiesOf = ({ cookies, status }: Answer) => (status === 200 && cookies.length > 0 ? Effect.succeed(cookies) : failed())

const decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))

export class SignIn extends Effect.Service<SignIn>()("custody/portal/SignIn", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const identity = yield* Identity
    const invitations = yield* Invitations
    const passkeys = yield* Passkeys
    const sessions = yield* Sessions
    const { rateLimit } = yield* Settings
    // Windows of their own: made-up names cannot evict addresses.
    const attempts = (what: string, limit: number) => slidingWindows({ name: `sign-in ${what}`, limit, windowMs: WINDOW_MS })
    const ofAddress = yield* attempts("address", PER_ADDRESS)
    const ofCallback = yield* attempts("callback", PER_ADDRESS)
    const ofAccountHere = yield* attempts("account at address", PER_ACCOUNT)
    const ofAccount = yield* attempts("account", PER_ACCOUNT_ANYWHERE)

    const spend = (window: typeof ofAddress, key: string) =>
      rateLimit === null
        ? Effect.void
        : Effect.flatMap(window.take(key), (wait) => (wait === 0 ? Effect.void : tooMany("Too many attempts.", Math.ceil(wait / 1_000))))
    const address = Effect.map(currentRequest, ({ client }) => (client === undefined ? "unknown" : networkOf(client)))
    const spendOfAddress = Effect.flatMap(address, (from) => spend(ofAddress, from))
    /** Names are hashed, so that text typed by strangers is not stored. */
    const spendOfAccount = (email: string) =>
      Effect.flatMap(address, (from) => {
        const account = createHash("sha256").update(email).digest("base64url")
        return Effect.zipRight(spend(ofAccountHere, `${account}/${from}`), spend(ofAccount, account))
      })

    const checks = yield* Effect.makeSemaphore(CHECKS)
    let waiting = 0
    /** Waits for a free core to check a password; rejects the attempt if too many wait, from however many addresses. */
    const inTurn = <A, E, R>(check: Effect.Effect<A, E, R>): Effect.Effect<A, E | Problem<"service_unavailable">, R> =>
      Effect.suspend((): Effect.Effect<A, E | Problem<"service_unavailable">, R> => {
        if (waiting >= WAITING)
          return problem("service_unavailable", "Too many people are signing in right now. Try again.", { headers: { "retry-after": "2" } })
        waiting++
        return Effect.ensuring(
          checks.withPermits(1)(check),
          Effect.sync(() => {
            waiting--
          })
        )
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

    const byPassword = (email: string, password: string) =>
      Effect.gen(function* () {
        yield* identity.follow(email)
        const [account] = yield* Effect.orDie(
          decodeIds(sql`
            SELECT p.id FROM portal_users p JOIN users u ON u.id = p.id WHERE p.email = lower(${email}) AND u.status = 'active'`)
        )
        // The library does the same work for an unknown address.
        const asked = account === undefined ? `nobody-${crypto.randomUUID()}@invalid.example` : email.toLowerCase()
        const answer = yield* inTurn(identity.ask("/sign-in/email", { email: asked, password }))
        const cookies = yield* Effect.tapError(cookiesOf(answer), () => noteFailure(account?.id))
        yield* Effect.logInfo("portal: signed in with a password").pipe(Effect.annotateLogs({ userId: account?.id ?? "" }))
        return cookies
      })

    return {
      /** Creates a session that still needs the second factor, and returns its cookies. */
      password: (email: string, password: string) =>
        Effect.gen(function* () {
          yield* spendOfAddress
          yield* spendOfAccount(email.toLowerCase())
          return yield* byPassword(email, password)
        }),

      /** Options for a browser to authenticate with a passkey. */
      passkeyOptions: Effect.zipRight(spendOfAddress, passkeys.signInOptions),

      /** Creates a complete session: a passkey with user verification counts as both factors. */
      passkey: (given: unknown) =>
        Effect.gen(function* () {
          yield* spendOfAddress
          const userId = yield* passkeys.verify(given, "sign-in")
          const cookies = yield* sessions.begin(userId)
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

      /** Returns the identity provider's redirect. Counted separately: the sign-in that it completes was counted when it began. */
      callback: (query: string) =>
        Effect.zipRight(
          Effect.flatMap(address, (from) => spend(ofCallback, from)),
          identity.callback(query)
        ),

      /** The invited user. */
      invitation: (token: string) => Effect.zipRight(spendOfAddress, invitations.look(token)),

      /** Creates the account of an invitation, and signs in if it has a password. */
      accept: (token: string, password: string | null) =>
        Effect.gen(function* () {
          yield* spendOfAddress
          yield* invitations.look(token)
          const { hashPassword } = yield* Effect.promise(() => import("./auth.ts"))
          const hash = password === null ? null : yield* inTurn(Effect.promise(() => hashPassword(password)))
          const { email, userId } = yield* invitations.accept(token, hash)
          yield* Effect.logInfo("portal: an invitation was accepted").pipe(Effect.annotateLogs({ userId }))
          return password === null ? [] : yield* byPassword(email, password)
        })
    }
  })
}) {
  static readonly layer = this.Default
}
