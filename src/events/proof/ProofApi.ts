/** The contract of signing keys and checkpoints, with which customers and their auditors verify the service. C-3. */

import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { NotFound, WebhooksReadable } from "../../access/visibility/scopeMiddleware.ts"
import { Page, PageParams } from "../../http/Page.ts"
import { noQuery, query } from "../../http/Parameters.ts"
import { InvalidList, InvalidRequest } from "../../http/Problem.ts"
import { GivenId } from "../../values/givenId.ts"
import { timestamp } from "../../values/Timestamp.ts"

/** A public key (RFC 8037). */
const SigningKey = Schema.Struct({
  kty: Schema.Literal("OKP"),
  crv: Schema.Literal("Ed25519"),
  alg: Schema.Literal("EdDSA"),
  use: Schema.Literal("sig"),
  kid: Schema.String.annotations({
    description: "Id of the key, as in the header of its signatures: its RFC 7638 thumbprint",
    examples: ["kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"]
  }),
  x: Schema.String.annotations({
    description: "The public key, 32 bytes in base64url",
    examples: ["11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"]
  })
}).annotations({ identifier: "SigningKey" })

/** A JSON Web Key Set. */
const SigningKeySet = Schema.Struct({ keys: Schema.Array(SigningKey) }).annotations({ identifier: "SigningKeySet" })

const entityId = { entityId: GivenId.annotations({ description: "The entity" }) }

/** An entity's chain of events at a time. */
const Checkpoint = Schema.Struct({
  entityId: Schema.String.annotations({ examples: ["entity_k3vwj9pbkx2z8z81zfse2sm8ra"] }),
  count: Schema.Int.annotations({
    description: "Number of events of the entity up to this checkpoint",
    jsonSchema: { type: "integer", minimum: 0, examples: [1204] }
  }),
  hash: Schema.String.annotations({
    description:
      "State of the entity's hash chain at this checkpoint, in hex. The chain starts with 32 zero bytes. For each event, in the order of recording, its next state is the SHA-256 of the previous state followed by the SHA-256 of the event's payload, byte for byte as delivered.",
    examples: ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]
  }),
  at: timestamp("Time of the checkpoint"),
  resumeCursor: Schema.NullOr(Schema.String).annotations({
    description: "Cursor of the event feed at this checkpoint; null if it is older than the log"
  }),
  jws: Schema.String.annotations({
    description: "Compact JWS (EdDSA) over { iss, entityId, count, hash, at }; keys: /v1/jwks.json",
    examples: ["eyJhbGciOiJFZERTQSJ9.e30.c2ln"]
  })
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
        "The JSON Web Key Set that verifies signatures of this service, current key first; replaced keys remain. Requires no API key."
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
        "One checkpoint per midnight (UTC), newest first, kept permanently. Requires a key without a vault allowlist whose user can see every vault that the entity has or lately had."
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
      .annotate(OpenApi.Description, "The state of the chain now.")
  )
  .annotate(OpenApi.Title, "Proof")
  .annotate(OpenApi.Description, "Signing keys and checkpoints, with which auditors verify the service's data.") {}
