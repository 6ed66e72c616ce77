/** The contract of `GET /v1/credential`: what a key can find out about itself. C-7. */

import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { query } from "../../http/Parameters.ts"
import { InvalidRequest } from "../../http/Problem.ts"
import { GivenId } from "../../values/givenId.ts"
import { Timestamp } from "../../values/Timestamp.ts"
import { Entity } from "./Entity.ts"
import { Authenticated, NotFound } from "./scopeMiddleware.ts"

const text = (description: string, example: string) => Schema.String.annotations({ description, examples: [example] })
const count = (description: string) =>
  Schema.Int.annotations({ description, jsonSchema: { type: "integer", minimum: 0, description, examples: [3] } })

/** Why a vault is visible to a key or not: the first reason that applies. */
const Because = Schema.Literal("unknown", "scope", "allowlist", "visible").annotations({
  description:
    "unknown: there is no such vault, or the user has no Developer role on it; scope: the key lacks `vault:read`; allowlist: the key's vault allowlist does not include it; visible: reads return it",
  examples: ["visible"]
})

/** The key of the request, its user, and what they can see. */
export const Credential = Schema.Struct({
  key: Schema.Struct({
    id: text("Id of the key", "key_01jz0000000000000000000000"),
    label: text("Free text for people", "Ledger import"),
    scopes: Schema.Array(text("Scope", "vault:read")).annotations({ description: "Scopes of the key" }),
    vaultIds: Schema.NullOr(Schema.Array(Schema.String)).annotations({
      description: "Vault allowlist; null allows every vault on which the user has the Developer role"
    }),
    ipAllowlist: Schema.Array(text("CIDR", "203.0.113.0/24")).annotations({
      description: "Address ranges from which the key may be used; empty: any"
    }),
    createdAt: Timestamp,
    expiresAt: Schema.NullOr(Timestamp).annotations({ description: "When it expires; null: never" })
  }),
  user: Schema.Struct({
    id: text("The user that the key is bound to", "user_ada"),
    organizationRole: Schema.Literal("owner", "member").annotations({ description: "The user's role in the organization now" })
  }),
  organizationId: text("The organization", "org_acme"),
  ownerLevel: Schema.Boolean.annotations({ description: "Whether the key may manage webhooks, given `webhook:manage`" }),
  clientAddress: Schema.NullOr(Schema.String).annotations({
    description: "The address that this request came from, as the service sees it",
    examples: ["203.0.113.7"]
  }),
  vaults: Schema.Struct({
    role: count("Vaults where the user has the Developer role"),
    allowlist: count("Those of them that the key's vault allowlist contains"),
    visible: count("Those that reads return; 0 without `vault:read`")
  }),
  entities: Schema.Array(Entity).annotations({ description: "Entities that `GET /v1/entities` returns: the first 100" }),
  entityCount: count("Entities that `GET /v1/entities` returns; 0 without `vault:read` and `webhook:read`"),
  vault: Schema.optional(
    Schema.Struct({ visible: Schema.Boolean, because: Because }).annotations({
      description: "The vault named by `vaultId`; absent without that parameter"
    })
  )
}).annotations({ identifier: "Credential" })
export type Credential = typeof Credential.Type

export class CredentialApi extends HttpApiGroup.make("credential")
  .add(
    HttpApiEndpoint.get("getCredential", "/credential")
      .setUrlParams(
        query({
          vaultId: Schema.optional(GivenId.annotations({ description: "Vault to check: whether the key can see it, and if not, why" }))
        })
      )
      .addSuccess(Credential)
      .addError(InvalidRequest)
      .addError(NotFound)
      .middleware(Authenticated)
      .annotate(OpenApi.Summary, "Get the credential")
      .annotate(
        OpenApi.Description,
        "The API key of the request, its user, what they can see, and why a vault is not visible. Works with any valid key, without a scope."
      )
  )
  .annotate(OpenApi.Title, "Credential")
  .annotate(OpenApi.Description, "Information about the API key of the request.") {}
