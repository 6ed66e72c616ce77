/** Requires the second factor in the same request as the action. Spec: Authentication 2. */
import { Effect } from "effect"
import { fieldIssue } from "../../http/Body.ts"
import { problem } from "../../http/Problem.ts"
import type { Confirmation } from "./confirmation.ts"
import { Passkeys } from "./Passkeys.ts"
import { SecondFactor } from "./SecondFactor.ts"
import { type SessionState, Sessions } from "./Sessions.ts"

/**
 * Fails after too many of a user, and unless the code is valid and unused, or the passkey answers a challenge of the user; and if the
 * session ended meanwhile.
 */
export const confirm = (session: SessionState, { code, passkey }: Confirmation) =>
  Effect.gen(function* () {
    const { userId } = session
    const factor = yield* SecondFactor
    yield* factor.spend(userId)
    if (passkey !== undefined) yield* (yield* Passkeys).verify(passkey, "confirm", userId)
    else if (code !== undefined && code !== "") yield* factor.take(userId, code)
    else {
      return yield* problem("second_factor_required", "Enter a code from your authenticator app.", {
        fields: [fieldIssue("code", "is missing", "missing")]
      })
    }
    yield* (yield* Sessions).stillThere(session)
  })
