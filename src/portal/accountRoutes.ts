/** The portal's routes for an account: sessions, password, backup codes, passkeys. */
import { HttpRouter } from "@effect/platform"
import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { recordOfUser } from "../audit/AuditTrail.ts"
import * as Body from "../http/Body.ts"
import { problem } from "../http/Problem.ts"
import { confirm } from "./confirmSecondFactor.ts"
import { Identity } from "./Identity.ts"
import { Passkeys } from "./Passkeys.ts"
import { Confirmation, done, json, NewPassword, pathId, text } from "./respond.ts"
import { SecondFactor } from "./SecondFactor.ts"
import { Sessions, sessionActor } from "./Sessions.ts"
import { signOut } from "./signInRoutes.ts"

const Confirmed = Schema.Struct({ confirmation: Confirmation })
const NamedPasskey = Schema.Struct({ name: text(100), answer: Schema.Unknown })
const PasswordChange = Schema.Struct({ current: text(1_000), next: NewPassword, confirmation: Confirmation })

export const accountRoutes = HttpRouter.empty.pipe(
  HttpRouter.get(
    "/sessions",
    Effect.gen(function* () {
      const sessions = yield* Sessions
      return json({ data: yield* sessions.list(yield* sessions.complete) })
    })
  ),
  HttpRouter.del(
    "/sessions/:id",
    Effect.gen(function* () {
      const sessions = yield* Sessions
      yield* sessions.end(yield* sessions.complete, yield* pathId)
      return done()
    })
  ),
  HttpRouter.post(
    "/sessions/end-others",
    Effect.gen(function* () {
      const sessions = yield* Sessions
      yield* sessions.endAll(yield* sessions.complete, true)
      return done()
    })
  ),
  HttpRouter.post(
    "/sessions/end-all",
    Effect.gen(function* () {
      const sessions = yield* Sessions
      yield* sessions.endAll(yield* sessions.complete, false)
      return yield* signOut
    })
  ),
  HttpRouter.post(
    "/password",
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const session = yield* sessions.complete
      const { confirmation, current, next } = yield* Body.json(PasswordChange)
      yield* confirm(session.userId, confirmation)
      const { status } = yield* (yield* Identity).ask("/change-password", { currentPassword: current, newPassword: next })
      if (status !== 200) {
        return yield* problem("invalid_body", "The current password is incorrect.", {
          fields: [Body.fieldIssue("current", "is incorrect")]
        })
      }
      yield* Effect.orDie(recordOfUser(yield* SqlClient.SqlClient, session.userId, sessionActor(session), "account.password_changed"))
      yield* sessions.endAll(session, true)
      yield* Effect.logInfo("portal: a password was changed").pipe(Effect.annotateLogs({ userId: session.userId }))
      return done()
    })
  ),
  HttpRouter.get(
    "/backup-codes",
    Effect.gen(function* () {
      const { userId } = yield* (yield* Sessions).complete
      return json({ left: yield* (yield* SecondFactor).backupCodesLeft(userId) })
    })
  ),
  HttpRouter.post(
    "/backup-codes",
    Effect.gen(function* () {
      const { userId } = yield* (yield* Sessions).complete
      const { confirmation } = yield* Body.json(Confirmed)
      yield* confirm(userId, confirmation)
      yield* Effect.logInfo("portal: backup codes were renewed").pipe(Effect.annotateLogs({ userId }))
      return json({ backupCodes: yield* (yield* SecondFactor).renewBackupCodes(userId) })
    })
  ),
  HttpRouter.get(
    "/passkeys",
    Effect.gen(function* () {
      const { userId } = yield* (yield* Sessions).complete
      return json({ data: yield* (yield* Passkeys).list(userId) })
    })
  ),
  HttpRouter.post(
    "/passkeys/options",
    Effect.gen(function* () {
      const { email, userId } = yield* (yield* Sessions).complete
      const { confirmation } = yield* Body.json(Confirmed)
      yield* confirm(userId, confirmation)
      return json(yield* (yield* Passkeys).registerOptions(userId, email))
    })
  ),
  HttpRouter.post(
    "/passkeys",
    Effect.gen(function* () {
      const { userId } = yield* (yield* Sessions).complete
      const { answer, name } = yield* Body.json(NamedPasskey)
      yield* (yield* Passkeys).register(userId, name.trim() === "" ? "Passkey" : name.trim(), answer)
      yield* Effect.logInfo("portal: a passkey was added").pipe(Effect.annotateLogs({ userId }))
      return done()
    })
  ),
  HttpRouter.del(
    "/passkeys/:id",
    Effect.gen(function* () {
      const { userId } = yield* (yield* Sessions).complete
      yield* (yield* Passkeys).remove(userId, yield* pathId)
      return done()
    })
  ),
  HttpRouter.post(
    "/confirmation/passkey",
    Effect.gen(function* () {
      const { userId } = yield* (yield* Sessions).complete
      return json(yield* (yield* Passkeys).confirmOptions(userId))
    })
  )
)
