/** The portal's routes for an account: sessions, password, backup codes, passkeys. */
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { recordOfUser } from "../../access/audit/AuditTrail.ts"
import * as Body from "../../http/Body.ts"
import { problem } from "../../http/Problem.ts"
import * as bodies from "../server/bodies.ts"
import { done, pathId, route, routeWithBody } from "../server/respond.ts"
import { confirm } from "./confirmSecondFactor.ts"
import { Identity } from "./Identity.ts"
import { Passkeys } from "./Passkeys.ts"
import { SecondFactor } from "./SecondFactor.ts"
import { Sessions, sessionActor } from "./Sessions.ts"
import { signOut } from "./signInRoutes.ts"

export const accountRoutes = HttpRouter.empty.pipe(
  route(
    "GET /sessions",
    Effect.gen(function* () {
      const sessions = yield* Sessions
      return { data: yield* sessions.list(yield* sessions.complete) }
    })
  ),
  route(
    "DELETE /sessions/:id",
    Effect.gen(function* () {
      const sessions = yield* Sessions
      yield* sessions.end(yield* sessions.complete, yield* pathId)
      return done
    })
  ),
  route(
    "POST /sessions/end-others",
    Effect.gen(function* () {
      const sessions = yield* Sessions
      yield* sessions.endAll(yield* sessions.complete, true)
      return done
    })
  ),
  route(
    "POST /sessions/end-all",
    Effect.gen(function* () {
      const sessions = yield* Sessions
      yield* sessions.endAll(yield* sessions.complete, false)
      return yield* signOut
    })
  ),
  routeWithBody("POST /password", bodies.PasswordChange, (body) =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const session = yield* sessions.complete
      const { confirmation, current, next } = yield* body
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
      return done
    })
  ),
  route(
    "GET /backup-codes",
    Effect.gen(function* () {
      const { userId } = yield* (yield* Sessions).complete
      return { left: yield* (yield* SecondFactor).backupCodesLeft(userId) }
    })
  ),
  routeWithBody("POST /backup-codes", bodies.Confirmed, (body) =>
    Effect.gen(function* () {
      const { userId } = yield* (yield* Sessions).complete
      const { confirmation } = yield* body
      yield* confirm(userId, confirmation)
      yield* Effect.logInfo("portal: backup codes were renewed").pipe(Effect.annotateLogs({ userId }))
      return { backupCodes: yield* (yield* SecondFactor).renewBackupCodes(userId) }
    })
  ),
  route(
    "GET /passkeys",
    Effect.gen(function* () {
      const { userId } = yield* (yield* Sessions).complete
      return { data: yield* (yield* Passkeys).list(userId) }
    })
  ),
  routeWithBody("POST /passkeys/options", bodies.Confirmed, (body) =>
    Effect.gen(function* () {
      const { email, userId } = yield* (yield* Sessions).complete
      const { confirmation } = yield* body
      yield* confirm(userId, confirmation)
      return yield* (yield* Passkeys).registerOptions(userId, email)
    })
  ),
  routeWithBody("POST /passkeys", bodies.NamedPasskey, (body) =>
    Effect.gen(function* () {
      const { userId } = yield* (yield* Sessions).complete
      const { answer, name } = yield* body
      yield* (yield* Passkeys).register(userId, name.trim() === "" ? "Passkey" : name.trim(), answer)
      yield* Effect.logInfo("portal: a passkey was added").pipe(Effect.annotateLogs({ userId }))
      return done
    })
  ),
  route(
    "DELETE /passkeys/:id",
    Effect.gen(function* () {
      const { userId } = yield* (yield* Sessions).complete
      yield* (yield* Passkeys).remove(userId, yield* pathId)
      return done
    })
  ),
  route(
    "POST /confirmation/passkey",
    Effect.gen(function* () {
      const { userId } = yield* (yield* Sessions).complete
      return yield* (yield* Passkeys).confirmOptions(userId)
    })
  )
)
