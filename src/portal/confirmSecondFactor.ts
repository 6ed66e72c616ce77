/** Confirming the second factor again, in the very request of what it is for. Spec: Authentication 2. */
import { Effect } from "effect"
import { fieldIssue } from "../http/Body.ts"
import { problem } from "../http/Problem.ts"
import { Passkeys } from "./Passkeys.ts"
import type { Confirmation } from "./respond.ts"
import { SecondFactor } from "./SecondFactor.ts"

/** Refuses unless the code is one that was not used before, or the passkey answers a challenge of the user's own. */
export const confirm = (userId: string, { code, passkey }: Confirmation) =>
  Effect.gen(function* () {
    if (passkey !== undefined) yield* (yield* Passkeys).verify(passkey, "confirm", userId)
    else if (code !== undefined && code !== "") yield* (yield* SecondFactor).take(userId, code)
    else {
      return yield* problem("second_factor_required", "Enter a code from your authenticator app.", {
        fields: [fieldIssue("code", "is missing", "missing")]
      })
    }
  })
