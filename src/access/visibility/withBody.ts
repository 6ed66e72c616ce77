/**
 * Requests with a body. A body may take ten seconds: meanwhile a key may have been revoked or lost a scope, a session ended, a user
 * demoted or a webhook hidden from the caller. So what the request requires is checked before it and after it. Spec:
 * Authentication 5 to 7, 10, 12.
 */
import { Effect } from "effect"
import { problem, signedOut } from "../../http/Problem.ts"
import { AccessChecks } from "../credentials/AccessChecks.ts"
import { Principal, type PrincipalState } from "../credentials/Principal.ts"

/**
 * Reads a body, and then the request's caller as it is now. Dies with 401 if the key or session cannot be used any more, and with
 * 403 if the key has fewer scopes: which of them the request needs was checked before. `require` checks what the caller
 * may do, before the body and again after it, and returns what it found then.
 */
export const withBody = Effect.map(
  AccessChecks,
  ({ current }) =>
    <A, E, R, B, F, S>(require: (principal: PrincipalState) => Effect.Effect<A, E, R>, read: Effect.Effect<B, F, S>) =>
      Effect.gen(function* () {
        const before = yield* Principal
        yield* require(before)
        const body = yield* read
        const principal = (yield* current([before])).get(before)
        if (principal === undefined)
          return yield* Effect.die(
            before.keyId === null
              ? signedOut()
              : problem("revoked_api_key", "The API key can no longer be used.", {
                  headers: { "www-authenticate": 'Bearer realm="custody", error="invalid_token"' }
                })
          )
        const lost = [...before.scopes].filter((scope) => !principal.scopes.has(scope))
        if (lost.length > 0)
          return yield* Effect.die(problem("insufficient_scope", `The API key has lost the scope ${lost.join(" and ")} meanwhile.`))
        return { body, principal, found: yield* require(principal) }
      })
)
