/**
 * Requests with a body. A body may take ten seconds, so its caller is read again after it: meanwhile a key may have been revoked, a
 * session ended or a user demoted. Spec: Authentication 5 to 7, 10.
 */
import { Effect } from "effect"
import { problem } from "../../http/Problem.ts"
import { AccessChecks } from "../credentials/AccessChecks.ts"
import { Principal } from "../credentials/Principal.ts"

/** Reads a body, and then the request's caller as it is now. Dies with 401 if the key or session cannot be used any more. */
export const withBody = Effect.map(
  AccessChecks,
  ({ current }) =>
    <A, E, R>(read: Effect.Effect<A, E, R>) =>
      Effect.gen(function* () {
        const before = yield* Principal
        const body = yield* read
        const principal = (yield* current([before])).get(before)
        if (principal !== undefined) return { body, principal }
        return yield* Effect.die(
          before.keyId === null
            ? problem("signed_out", "Sign in to continue.")
            : problem("revoked_api_key", "The API key can no longer be used.", {
                headers: { "www-authenticate": 'Bearer realm="custody", error="invalid_token"' }
              })
        )
      })
)
