/** The portal's routes for signing in and out: session, passwords and their reset, passkeys, identity provider, invitations. */
import * as Cookies from "@effect/platform/Cookies"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import * as Body from "../../http/Body.ts"
import { problem } from "../../http/Problem.ts"
import { bodies, done, PortalApi } from "../server/PortalApi.ts"
import { Identity } from "./Identity.ts"
import { Passwords } from "./Passwords.ts"
import { PASSWORD_MIN } from "./passwordRules.ts"
import { SecondFactor } from "./SecondFactor.ts"
import { Sessions, withBody } from "./Sessions.ts"
import { SignIn } from "./SignIn.ts"

/** A response with the sign-in library's cookies. */
const withCookies = (body: unknown, cookies: ReadonlyArray<string>): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.mergeCookies(HttpServerResponse.unsafeJson(body), Cookies.fromSetCookie([...cookies]))

/** The state of a browser's sign-in: who is signed in, and which step is missing. */
const standing = Effect.gen(function* () {
  const session = yield* (yield* Sessions).current
  const { provider } = yield* Identity
  const { isOffered } = yield* Passwords
  const common = { provider, passwordMin: PASSWORD_MIN, resetsPasswords: isOffered }
  if (session === null) return { state: "signed_out" as const, user: null, ...common }
  const { email, enrolled, hasPassword, isOwner, name, organizationId, organizationName, secondFactorAt, userId } = session
  return {
    state: !enrolled ? ("enrolment" as const) : secondFactorAt === null ? ("second_factor" as const) : ("signed_in" as const),
    user: { id: userId, name, email, organization: { id: organizationId, name: organizationName }, isOwner, hasPassword },
    ...common
  }
})

/** Ends the current session and removes its cookie. */
export const signOut = Effect.gen(function* () {
  const { cookies } = yield* (yield* Identity).ask("/sign-out", {})
  return withCookies(done, cookies)
})

export const layer = HttpApiBuilder.group(PortalApi, "signIn", (handlers) =>
  handlers
    .handle("getSession", () => standing)
    .handleRaw("signIn", () =>
      Effect.gen(function* () {
        const { email, password } = yield* Body.json(bodies.credentials)
        return withCookies(done, yield* (yield* SignIn).password(email.trim(), password))
      })
    )
    .handle("passkeyOptions", () => Effect.flatMap(SignIn, ({ passkeyOptions }) => passkeyOptions))
    // Decoded by `Passkeys`, which rejects an invalid response like a wrong one.
    .handleRaw("signInWithPasskey", () =>
      Effect.gen(function* () {
        const given = yield* Body.json(bodies.passkeyResponse)
        return withCookies(done, yield* (yield* SignIn).passkey(given))
      })
    )
    .handleRaw("signInAtProvider", () =>
      Effect.flatMap(SignIn, ({ provider }) => Effect.map(provider, ({ cookies, url }) => withCookies({ url }, cookies)))
    )
    .handleRaw("providerCallback", () =>
      Effect.gen(function* () {
        const { url } = yield* HttpServerRequest.HttpServerRequest
        const { cookies, location } = yield* (yield* SignIn).callback(url.includes("?") ? url.slice(url.indexOf("?")) : "")
        const isSignedIn = location === "/portal/"
        if (isSignedIn) yield* Effect.logInfo("portal: signed in at the identity provider")
        // The library's own address has the provider's words, which may be long.
        const target = isSignedIn ? location : "/portal/sign-in?error=provider"
        return HttpServerResponse.setHeaders(withCookies({}, cookies), { location: target }).pipe(HttpServerResponse.setStatus(302))
      })
    )
    .handleRaw("giveSecondFactor", () =>
      Effect.gen(function* () {
        const { body, session } = yield* withBody("started", bodies.code)
        if (!session.enrolled) return yield* problem("second_factor_required", "Set up an authenticator app first.")
        const used = yield* (yield* SecondFactor).take(session.userId, body.code)
        return withCookies(done, yield* (yield* Sessions).begin(session.userId, used, { session: session.id }))
      })
    )
    .handleRaw("getInvitation", () =>
      Effect.gen(function* () {
        const { token } = yield* Body.json(bodies.token)
        const { email, expiresAt, name, organizationName, reset } = yield* (yield* SignIn).invitation(token)
        return { name, email, organizationName, reset, expiresAt }
      })
    )
    .handleRaw("acceptInvitation", () =>
      Effect.gen(function* () {
        const { password, token } = yield* Body.json(bodies.acceptance)
        if (password === null && (yield* Identity).provider === null) return yield* problem("invalid_body", "Choose a password.")
        return withCookies(done, yield* (yield* SignIn).accept(token, password))
      })
    )
    .handleRaw("requestPasswordReset", () =>
      Effect.gen(function* () {
        const { email } = yield* Body.json(bodies.address)
        yield* (yield* SignIn).requestReset(email.trim())
        return HttpServerResponse.unsafeJson(done)
      })
    )
    .handleRaw("getPasswordReset", () =>
      Effect.gen(function* () {
        const { token } = yield* Body.json(bodies.token)
        const { email, expiresAt } = yield* (yield* SignIn).passwordReset(token)
        return HttpServerResponse.unsafeJson({ email, expiresAt })
      })
    )
    .handleRaw("resetPassword", () =>
      Effect.gen(function* () {
        const { password, token } = yield* Body.json(bodies.passwordReset)
        yield* (yield* SignIn).resetPassword(token, password)
        return HttpServerResponse.unsafeJson(done)
      })
    )
    .handle("beginEnrolment", () =>
      Effect.gen(function* () {
        const session = yield* (yield* Sessions).started
        return yield* (yield* SecondFactor).begin(session)
      })
    )
    .handleRaw("confirmEnrolment", () =>
      Effect.gen(function* () {
        const { body, session } = yield* withBody("started", bodies.code)
        yield* (yield* SecondFactor).confirm(session.userId, body.code)
        yield* Effect.logInfo("portal: a second factor was set up").pipe(Effect.annotateLogs({ userId: session.userId }))
        return withCookies(done, yield* (yield* Sessions).begin(session.userId, "authenticator", { session: session.id }))
      })
    )
    .handleRaw("signOut", () => signOut)
)
