/** The contract of signing keys and checkpoints, with which customers and their auditors verify the service. C-3. */

import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { NotFound, WebhooksReadable } from "../access/scopeMiddleware.ts"
import { Page, PageParams } from "../http/Page.ts"
import { noQuery, query } from "../http/Parameters.ts"
import { InvalidList, InvalidRequest } from "../http/Problem.ts"
import { GivenId } from "../values/givenId.ts"
import { Timestamp } from "../values/Timestamp.ts"

/** A public key (RFC 8037). */
const SigningKey = Schema.Struct({
  kty: Schema.Literal("OKP"),
  crv: Schema.Literal("Ed25519"),
  alg: Schema.Literal("EdDSA"),
  use: Schema.Literal("sig"),
  kid: Schema.String.annotations({ description: "Id of the key, as in the header of its signatures: its RFC 7638 thumbprint" }),
  x: Schema.String.annotations({ description: "The public key, 32 bytes in base64url" })
}).annotations({ identifier: "SigningKey" })

/** A JSON Web Key Set. */
const SigningKeySet = Schema.Struct({ keys: Schema.Array(SigningKey) }).annotations({ identifier: "SigningKeySet" })

const entityId = { entityId: GivenId.annotations({ description: "The entity" }) }

/** An entity's chain of events at a time. */
const Checkpoint = Schema.Struct({
  entityId: Schema.String.annotations({ examples: ["entity_k3vwj9pbkx2z8z81zfse2sm8ra"] }),
  count: Schema.Int.annotations({ description: "Events of the entity so far", jsonSchema: { type: "integer", minimum: 0 } }),
  hash: Schema.String.annotations({
    description: "Hex of hn = SHA-256(hn-1 ‖ SHA-256(payload bytes)) over its events in the order of recording; h0 is 32 zero bytes"
  }),
  at: Timestamp.annotations({ description: "Time of the checkpoint" }),
  resumeCursor: Schema.NullOr(Schema.String).annotations({
    description: "The feed's cursor at that time; null when it is no longer in the log"
  }),
  jws: Schema.String.annotations({ description: "Compact JWS (EdDSA) over { iss, entityId, count, hash, at }; keys: /v1/jwks.json" })
}).annotations({ identifier: "EventCheckpoint" })

export class ProofApi extends HttpApiGroup.make("proof")
  .add(
    HttpApiEndpoint.get("getSigningKeys", "/jwks.json")
      .setUrlParams(noQuery)
      .addSuccess(SigningKeySet)
      .addError(InvalidRequest)
      .annotate(OpenApi.Summary, "Get the public signing keys")
      .annotate(
        OpenApi.Description,
        "The JSON Web Key Set that verifies signatures of this service, current key first; replaced keys stay. Needs no API key."
      )
  )
  .add(
    HttpApiEndpoint.get("listEventCheckpoints", "/event-checkpoints")
      .setUrlParams(query({ ...PageParams, ...entityId }))
      .addSuccess(Page(Checkpoint, "EventCheckpointPage"))
      .addError(InvalidList)
      .addError(NotFound)
      .middleware(WebhooksReadable)
      .annotate(OpenApi.Summary, "List an entity's checkpoints")
      .annotate(
        OpenApi.Description,
        "One per midnight (UTC), newest first, kept forever. Requires a key without a vault allowlist whose user can see every vault of the entity."
      )
  )
  .add(
    HttpApiEndpoint.get("getLatestEventCheckpoint", "/event-checkpoints/latest")
      .setUrlParams(query(entityId))
      .addSuccess(Checkpoint)
      .addError(InvalidRequest)
      .addError(NotFound)
      .middleware(WebhooksReadable)
      .annotate(OpenApi.Summary, "Get an entity's current checkpoint")
      .annotate(OpenApi.Description, "The current checkpoint. 503 while an upgrade is still chaining earlier events.")
  )
  .annotate(OpenApi.Title, "Proof")
  .annotate(OpenApi.Description, "Signing keys and checkpoints, with which auditors verify the service's data.") {}
