/** The handlers of `GET /v1/credential`. C-7. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Api } from "../../app/Api.ts"
import { notFound } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { Principal } from "../credentials/Principal.ts"
import { reads } from "./Admission.ts"
import { CredentialRepo } from "./CredentialRepo.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "credential",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const credentials = yield* CredentialRepo

    return handlers.handle(
      "getCredential",
      read("getCredential", ({ urlParams: { vaultId } }) =>
        Effect.gen(function* () {
          const principal = yield* Principal
          const { client } = yield* currentRequest
          // A portal session is not an API key.
          if (principal.keyId === null) return yield* notFound()
          const found = yield* credentials.of(principal.keyId, principal, client?.toString() ?? null, vaultId)
          return found ?? (yield* notFound())
        })
      )
    )
  })
)
