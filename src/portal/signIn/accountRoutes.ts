/** The portal's routes for an account: sessions, password, backup codes, passkeys. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { bodies, done, PortalApi } from "../server/PortalApi.ts"
import { confirm } from "./confirmSecondFactor.ts"
import { Passkeys } from "./Passkeys.ts"
import { Passwords } from "./Passwords.ts"
import { SecondFactor } from "./SecondFactor.ts"
import { inTurn, Sessions, withBody } from "./Sessions.ts"
import { signOut } from "./signInRoutes.ts"

export const layer = HttpApiBuilder.group(PortalApi, "account", (handlers) =>
  handlers
    .handle("listSessions", () =>
      inTurn("complete", (session) =>
        Effect.gen(function* () {
          return { data: yield* (yield* Sessions).list(session) }
        })
      )
    )
    .handle("endSession", ({ path: { id } }) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        yield* sessions.end(yield* sessions.complete, id)
        return done
      })
    )
    .handle("endOtherSessions", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        yield* sessions.endAll(yield* sessions.complete, true)
        return done
      })
    )
    .handleRaw("endAllSessions", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        yield* sessions.endAll(yield* sessions.complete, false)
        return yield* signOut
      })
    )
    .handleRaw("changePassword", () =>
      Effect.gen(function* () {
        const { body, session } = yield* withBody("complete", bodies.passwordChange)
        yield* confirm(session, body.confirmation)
        yield* (yield* Passwords).change(session, body.current, body.next)
        return done
      })
    )
    .handle("countBackupCodes", () =>
      inTurn("complete", ({ userId }) =>
        Effect.gen(function* () {
          return { left: yield* (yield* SecondFactor).backupCodesLeft(userId) }
        })
      )
    )
    .handleRaw("renewBackupCodes", () =>
      Effect.gen(function* () {
        const { body, session } = yield* withBody("complete", bodies.confirmed)
        const { userId } = session
        yield* confirm(session, body.confirmation)
        yield* Effect.logInfo("portal: backup codes were renewed").pipe(Effect.annotateLogs({ userId }))
        return { backupCodes: yield* (yield* SecondFactor).renewBackupCodes(session) }
      })
    )
    .handle("listPasskeys", () =>
      inTurn("complete", ({ userId }) =>
        Effect.gen(function* () {
          return { data: yield* (yield* Passkeys).list(userId) }
        })
      )
    )
    .handleRaw("newPasskeyOptions", () =>
      Effect.gen(function* () {
        const { body, session } = yield* withBody("complete", bodies.confirmed)
        const { email, userId } = session
        yield* confirm(session, body.confirmation)
        return yield* (yield* Passkeys).registerOptions(userId, email)
      })
    )
    .handleRaw("addPasskey", () =>
      Effect.gen(function* () {
        const { body, session } = yield* withBody("complete", bodies.namedPasskey)
        const { userId } = session
        const { answer, name } = body
        yield* (yield* Passkeys).register(session, name.trim() === "" ? "Passkey" : name.trim(), answer)
        yield* Effect.logInfo("portal: a passkey was added").pipe(Effect.annotateLogs({ userId }))
        return done
      })
    )
    .handle("removePasskey", ({ path: { id } }) =>
      Effect.gen(function* () {
        yield* (yield* Passkeys).remove(yield* (yield* Sessions).complete, id)
        return done
      })
    )
    .handle("confirmationOptions", () =>
      Effect.gen(function* () {
        return yield* (yield* Passkeys).confirmOptions(yield* (yield* Sessions).complete)
      })
    )
)
