/** The portal's routes for signing in and out: session, passwords, passkeys, identity provider, invitations. */
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect, Schema } from "effect"
import * as Body from "../http/Body.ts"
import { problem } from "../http/Problem.ts"
import { Identity } from "./Identity.ts"
import { PASSWORD_MIN } from "./passwordRules.ts"
import { done, json, NewPassword, text } from "./respond.ts"
import { SecondFactor } from "./SecondFactor.ts"
import { Sessions } from "./Sessions.ts"
import { SignIn } from "./SignIn.ts"

const Credentials = Schema.Struct({ email: text(320), password: text(1_000) })
const Code = Schema.Struct({ code: text(40) })
const Token = Schema.Struct({ token: text(100) })
const Acceptance = Schema.Struct({ token: text(100), password: Schema.NullOr(NewPassword) })

/** The state of a browser's sign-in: who is signed in, and which step is missing. */
const standing = Effect.gen(function* () {
  const session = yield* (yield* Sessions).current
  const { provider } = yield* Identity
  const state =
    session === null ? "signed_out" : !session.enrolled ? "enrolment" : session.secondFactorAt === null ? "second_factor" : "signed_in"
  return json({
    state,
    user:
      session === null
        ? null
        : {
            id: session.userId,
            name: session.name,
            email: session.email,
            organization: { id: session.organizationId, name: session.organizationName },
            isOwner: session.isOwner,
            hasPassword: session.hasPassword
          },
    provider,
    passwordMin: PASSWORD_MIN
  })
})

/** Ends the current session and removes its cookie. */
export const signOut = Effect.gen(function* () {
  const { cookies } = yield* (yield* Identity).ask("/sign-out", {})
  return done(cookies)
})

export const signInRoutes = HttpRouter.empty.pipe(
  HttpRouter.get("/session", standing),
  HttpRouter.post(
    "/sign-in",
    Effect.gen(function* () {
      const { email, password } = yield* Body.json(Credentials)
      return done(yield* (yield* SignIn).password(email.trim(), password))
    })
  ),
  HttpRouter.post(
    "/sign-in/passkey/options",
    Effect.flatMap(SignIn, ({ passkeyOptions }) => Effect.map(passkeyOptions, (body) => json(body)))
  ),
  HttpRouter.post(
    "/sign-in/passkey",
    Effect.gen(function* () {
      const given = yield* Body.json(Schema.Unknown)
      return done(yield* (yield* SignIn).passkey(given))
    })
  ),
  HttpRouter.post(
    "/sign-in/provider",
    Effect.flatMap(SignIn, ({ provider }) => Effect.map(provider, ({ cookies, url }) => json({ url }, cookies)))
  ),
  HttpRouter.get(
    "/auth/callback/oidc",
    Effect.gen(function* () {
      const { url } = yield* HttpServerRequest.HttpServerRequest
      const { cookies, location } = yield* (yield* SignIn).callback(url.includes("?") ? url.slice(url.indexOf("?")) : "")
      // Only redirects into the portal, whatever the library returned.
      if (location === "/portal/") yield* Effect.logInfo("portal: signed in at the identity provider")
      const target = location?.startsWith("/portal/") === true ? location : "/portal/sign-in?error=provider"
      return HttpServerResponse.setHeaders(json({}, cookies), { location: target }).pipe(HttpServerResponse.setStatus(302))
    })
  ),
  HttpRouter.post(
    "/sign-in/second-factor",
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const session = yield* sessions.started
      const { code } = yield* Body.json(Code)
      if (!session.enrolled) return yield* problem("second_factor_required", "Set up an authenticator app first.")
      yield* (yield* SecondFactor).take(session.userId, code)
      return done(yield* sessions.begin(session.userId, session))
    })
  ),
  HttpRouter.post(
    "/invitation",
    Effect.gen(function* () {
      const { token } = yield* Body.json(Token)
      const { email, expiresAt, name, organizationName, reset } = yield* (yield* SignIn).invitation(token)
      return json({ name, email, organizationName, reset, expiresAt })
    })
  ),
  HttpRouter.post(
    "/invitation/accept",
    Effect.gen(function* () {
      const { password, token } = yield* Body.json(Acceptance)
      if (password === null && (yield* Identity).provider === null) return yield* problem("invalid_body", "Choose a password.")
      return done(yield* (yield* SignIn).accept(token, password))
    })
  ),
  HttpRouter.post(
    "/enrolment",
    Effect.gen(function* () {
      const session = yield* (yield* Sessions).started
      return json(yield* (yield* SecondFactor).begin(session.userId, session.email))
    })
  ),
  HttpRouter.post(
    "/enrolment/confirm",
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const session = yield* sessions.started
      const { code } = yield* Body.json(Code)
      yield* (yield* SecondFactor).confirm(session.userId, code)
      yield* Effect.logInfo("portal: a second factor was set up").pipe(Effect.annotateLogs({ userId: session.userId }))
      return done(yield* sessions.begin(session.userId, session))
    })
  ),
  HttpRouter.post("/sign-out", signOut)
)
