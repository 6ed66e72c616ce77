/** The portal's routes for signing in and out: session, passwords, passkeys, identity provider, invitations. */
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Schema } from "effect"
import { problem } from "../../http/Problem.ts"
import * as bodies from "../server/bodies.ts"
import { done, jsonResponse, route, routeWithBody, withCookies } from "../server/respond.ts"
import { Identity } from "./Identity.ts"
import { PASSWORD_MIN } from "./passwordRules.ts"
import { SecondFactor } from "./SecondFactor.ts"
import { Sessions } from "./Sessions.ts"
import { SignIn } from "./SignIn.ts"

/** The state of a browser's sign-in: who is signed in, and which step is missing. */
const standing = Effect.gen(function* () {
  const session = yield* (yield* Sessions).current
  const { provider } = yield* Identity
  const common = { provider, passwordMin: PASSWORD_MIN }
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

export const signInRoutes = HttpRouter.empty.pipe(
  route("GET /session", standing),
  routeWithBody("POST /sign-in", bodies.Credentials, (body) =>
    Effect.gen(function* () {
      const { email, password } = yield* body
      return withCookies(done, yield* (yield* SignIn).password(email.trim(), password))
    })
  ),
  route(
    "POST /sign-in/passkey/options",
    Effect.flatMap(SignIn, ({ passkeyOptions }) => passkeyOptions)
  ),
  // Decoded by `Passkeys`, which rejects an invalid response like a wrong one.
  routeWithBody("POST /sign-in/passkey", Schema.Any, (body) =>
    Effect.gen(function* () {
      const given = yield* body
      return withCookies(done, yield* (yield* SignIn).passkey(given))
    })
  ),
  route(
    "POST /sign-in/provider",
    Effect.flatMap(SignIn, ({ provider }) => Effect.map(provider, ({ cookies, url }) => withCookies({ url }, cookies)))
  ),
  HttpRouter.get(
    "/auth/callback/oidc",
    Effect.gen(function* () {
      const { url } = yield* HttpServerRequest.HttpServerRequest
      const { cookies, location } = yield* (yield* SignIn).callback(url.includes("?") ? url.slice(url.indexOf("?")) : "")
      // Only redirects into the portal, whatever the library returned.
      if (location === "/portal/") yield* Effect.logInfo("portal: signed in at the identity provider")
      const target = location?.startsWith("/portal/") === true ? location : "/portal/sign-in?error=provider"
      return HttpServerResponse.setHeaders(jsonResponse({}, cookies), { location: target }).pipe(HttpServerResponse.setStatus(302))
    })
  ),
  routeWithBody("POST /sign-in/second-factor", bodies.Code, (body) =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const session = yield* sessions.started
      const { code } = yield* body
      if (!session.enrolled) return yield* problem("second_factor_required", "Set up an authenticator app first.")
      yield* (yield* SecondFactor).take(session.userId, code)
      return withCookies(done, yield* sessions.begin(session.userId, session))
    })
  ),
  routeWithBody("POST /invitation", bodies.Token, (body) =>
    Effect.gen(function* () {
      const { token } = yield* body
      const { email, expiresAt, name, organizationName, reset } = yield* (yield* SignIn).invitation(token)
      return { name, email, organizationName, reset, expiresAt }
    })
  ),
  routeWithBody("POST /invitation/accept", bodies.Acceptance, (body) =>
    Effect.gen(function* () {
      const { password, token } = yield* body
      if (password === null && (yield* Identity).provider === null) return yield* problem("invalid_body", "Choose a password.")
      return withCookies(done, yield* (yield* SignIn).accept(token, password))
    })
  ),
  route(
    "POST /enrolment",
    Effect.gen(function* () {
      const session = yield* (yield* Sessions).started
      return yield* (yield* SecondFactor).begin(session.userId, session.email)
    })
  ),
  routeWithBody("POST /enrolment/confirm", bodies.Code, (body) =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const session = yield* sessions.started
      const { code } = yield* body
      yield* (yield* SecondFactor).confirm(session.userId, code)
      yield* Effect.logInfo("portal: a second factor was set up").pipe(Effect.annotateLogs({ userId: session.userId }))
      return withCookies(done, yield* sessions.begin(session.userId, session))
    })
  ),
  route("POST /sign-out", signOut)
)
