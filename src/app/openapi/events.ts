/** The `webhooks` of the document: what a webhook receives, one for each kind of event. Decisions D-17, D-18. */
import * as OpenApiJsonSchema from "@effect/platform/OpenApiJsonSchema"
import { schemaOf } from "../../events/log/Envelope.ts"
import { type Kind, kinds } from "../../events/log/Kind.ts"
import { TransactionStatus } from "../../values/Vault.ts"
import { withExample } from "./examples.ts"
import { type Json, json, type Object, object } from "./json.ts"

const received = (name: string, description: string, required = true): Json => ({
  name,
  in: "header",
  required,
  description,
  schema: { type: "string" }
})
const deliveryHeaders: ReadonlyArray<Json> = [
  received(
    "X-Service-Signature",
    "t=<unix seconds>,v1=<hex>[,v1=<hex>]: HMAC-SHA256 over t.body, keyed with the secret string; one v1 per active secret"
  ),
  received("webhook-id", "The event's id (Standard Webhooks)"),
  received("webhook-timestamp", "Unix seconds (Standard Webhooks)"),
  received(
    "webhook-signature",
    "v1,<base64> for each active secret (Standard Webhooks), then v1a,<base64>: Ed25519 by the service's key in /v1/jwks.json"
  ),
  received(
    "webhook-sequence",
    "Number of the delivery within its webhook, from 1 without gaps; a number that is missing was sent and not received. A ping has none",
    false
  ),
  received("X-Service-Delivery-Id", "Id of the delivery"),
  received("X-Service-Attempt", "Number of the attempt, from 1"),
  received("X-Service-Event-Kind", "Kind of the event"),
  received("traceparent", "W3C Trace Context of the attempt, if the operator of the service exports traces", false),
  received("X-Service-Test", "true for a sample event, which a ping sent: its ids name nothing, and amounts are 0", false)
]

/** `Transaction confirmed` for `transaction.confirmed`. */
const words = (kind: Kind): string => `${kind.charAt(0).toUpperCase()}${kind.slice(1).replaceAll(/[._]/g, " ")}`

/** `receiveTransactionConfirmed` for `transaction.confirmed`. */
const operationId = (kind: Kind): string => `receive${kind.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())}`

/** The schema of a kind's envelope as it is generated, with the schemas that it refers to. It is of one kind and version. */
export const generatedEvent = (kind: Kind): { readonly kind: Kind; readonly schema: Object; readonly defs: Object } => {
  const defs: Record<string, OpenApiJsonSchema.JsonSchema> = {}
  const schema = json(OpenApiJsonSchema.makeWithDefs(schemaOf(kind), { defs, additionalPropertiesStrategy: "allow" }))
  const properties = {
    ...object(schema["properties"]),
    kind: { type: "string", const: kind },
    schemaVersion: { type: "integer", const: kinds[kind].schemaVersion, description: "Version of the kind's schema" },
    vaultIds: {
      type: ["array", "null"],
      items: { type: "string" },
      description: "The vault in which it occurred, in a list; null if the kind is not vault-scoped",
      ...(kinds[kind].scope === "vault" ? { examples: [["vault_dkjh7m6gvxzc2wjrphqz46b3br"]] } : {})
    }
  }
  return { kind, schema: { ...schema, title: `${words(kind)} event`, properties }, defs: json(defs) }
}

/** A body with an example whose transaction, if any, has the status that the kind is about. */
const withEvent = (kind: Kind, schema: Json, get: (name: string) => Object): Object => {
  const { data, ...envelope } = object(object(withExample({ schema }, get))["example"])
  const { transaction, ...others } = object(data)
  const status = TransactionStatus.literals.find((one) => kind.endsWith(one)) ?? "pending"
  const told = transaction === undefined ? {} : { transaction: { ...object(transaction), status } }
  return { schema, example: { ...envelope, data: { ...others, ...told } } }
}

/** A kind as an OpenAPI webhook, with the schema of its envelope. The request has a signature and no API key. */
export const webhookOf = (kind: Kind, schema: Json, get: (name: string) => Object): Json => {
  const { scope, when } = kinds[kind]
  return {
    post: {
      operationId: operationId(kind),
      tags: ["Events"],
      summary: when,
      description: `${when}. ${scope === "vault" ? "Vault-scoped." : "Not vault-scoped: it passes every vault filter."}`,
      security: [],
      parameters: deliveryHeaders,
      requestBody: { required: true, content: { "application/json": withEvent(kind, schema, get) } },
      responses: { "2XX": { description: "Received. Any other response, or none within 10 seconds, is retried." } }
    }
  }
}
