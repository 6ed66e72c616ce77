/**
 * The OpenAPI 3.1 document, derived from the contract that the server implements and from the registry of event kinds.
 * This adds what the framework does not know (headers, examples, webhook events) and removes the framework's decode
 * error, which never leaves the error boundary. Spec: the whole API. Decision D-18.
 */
import * as OpenApi from "@effect/platform/OpenApi"
import * as OpenApiJsonSchema from "@effect/platform/OpenApiJsonSchema"
import { schemaOf } from "../events/log/Envelope.ts"
import { type Kind, kinds, names } from "../events/log/Kind.ts"
import { type Code, codes } from "../http/Problem.ts"
import { Api } from "./Api.ts"

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }
type Object = { readonly [key: string]: Json }

const isObject = (value: unknown): value is Object => typeof value === "object" && value !== null && !Array.isArray(value)
const object = (value: Json | undefined): Object => (isObject(value) ? value : {})
const list = (value: Json | undefined): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])
const mapValues = (value: Object, f: (value: Json, key: string) => Json): Object =>
  Object.fromEntries(Object.entries(value).map(([key, one]) => [key, f(one, key)]))

// The framework's document is JSON; its type is narrower than what happens here.
const generated: Object = JSON.parse(JSON.stringify(OpenApi.fromApi(Api, { additionalPropertiesStrategy: "allow" })))

const FRAMEWORK_ERROR = "#/components/schemas/HttpApiDecodeError"

/** Removes the framework's decode error and its generated titles. */
const clean = (value: Json): Json => {
  if (Array.isArray(value)) return value.filter((one) => object(one)["$ref"] !== FRAMEWORK_ERROR).map(clean)
  if (!isObject(value)) return value
  const kept = Object.entries(value).filter(([key, one]) => !(key === "title" && typeof one === "string" && /[({]/.test(one)))
  const cleaned = mapValues(Object.fromEntries(kept), clean)
  const only = list(cleaned["anyOf"])
  if (only.length !== 1 || Object.keys(cleaned).length !== 1) return cleaned
  return only[0] ?? cleaned
}

const schemas: Record<string, Json> = Object.fromEntries(
  Object.entries(object(clean(object(object(generated["components"])["schemas"])))).filter(
    ([name]) => !["HttpApiDecodeError", "Issue", "PropertyKey"].includes(name)
  )
)

const resolve = (schema: Json | undefined): Object => {
  const { $ref, allOf } = object(schema)
  if (typeof $ref === "string") return resolve(schemas[$ref.split("/").at(-1) ?? ""])
  return Array.isArray(allOf) && allOf.length > 0 ? { ...resolve(allOf[0]), ...object(schema) } : object(schema)
}

/** An example of a schema, from its examples, constants and defaults. */
const exampleOf = (schema: Json | undefined): Json => {
  const { anyOf, const: constant, default: fallback, enum: values, examples, items, properties, type } = resolve(schema)
  if (Array.isArray(examples) && examples[0] !== undefined) return examples[0]
  if (constant !== undefined) return constant
  if (fallback !== undefined) return fallback
  if (Array.isArray(values) && values[0] !== undefined) return values[0]
  if (Array.isArray(anyOf)) return exampleOf(anyOf[0])
  if (type === "object") return mapValues(object(properties), exampleOf)
  if (type === "array") return [exampleOf(items)]
  if (type === "integer" || type === "number") return 1
  return type === "boolean"
    ? true
    : type === "null"
      ? null
      : resolve(schema)["format"] === "date-time"
        ? "2025-03-24T22:01:59.000Z"
        : "string"
}

const problemExample = (code: Code): Json => {
  const [status, title] = codes[code]
  return {
    value: { type: `/v1/docs/errors/${code}`, title, status, detail: `${title}.`, code, requestId: "req_01jz0000000000000000000000" }
  }
}

const header = (description: string, type = "string"): Json => ({ description, schema: { type } })
const headers: Object = {
  "X-Request-Id": header("Request id: the client's own if it matches [A-Za-z0-9_-]{8,64}, otherwise one that the service generates"),
  "RateLimit-Policy": header("Quota of the API key: q requests per w seconds"),
  RateLimit: header("Remaining quota: r requests; the quota is restored in t seconds")
}
const extraHeaders: Record<string, Object> = {
  "401": { "WWW-Authenticate": header("How to authenticate") },
  "429": { "Retry-After": header("Seconds to wait before the next request", "integer") },
  "503": { "Retry-After": header("Seconds to wait before the next request", "integer") }
}

/** The responses other than 2xx, by name: many operations share one, and the document contains each once. */
const problemResponses: Record<string, Json> = {}

/** The name of a problem's schema, or the names of a choice of them, as the name of a response. */
const responseName = (schema: Json): string => {
  const { $ref, allOf, anyOf } = object(schema)
  if (typeof $ref === "string") return $ref.split("/").at(-1) ?? ""
  return Array.isArray(anyOf) ? anyOf.map(responseName).sort().join("Or") : responseName(list(allOf)[0] ?? {})
}

/** A response with its headers, examples and, for problems, the media type and the codes in words. */
const response = (value: Json, status: string): Json => {
  const [contentType, media] = Object.entries(object(object(value)["content"]))[0] ?? []
  const common = { headers: { ...headers, ...extraHeaders[status] } }
  if (media === undefined || contentType === undefined) return { description: "Success, without a body", ...common }
  if (status.startsWith("2"))
    return {
      description: "Success",
      ...common,
      content: { [contentType]: { ...object(media), example: exampleOf(object(media)["schema"]) } }
    }
  const schema = object(media)["schema"] ?? {}
  const names = codesOf(schema)
  const name = responseName(schema)
  problemResponses[name] ??= {
    description: `${names.map((code) => codes[code][1]).join(". ")}.`,
    ...common,
    content: { "application/problem+json": { schema, examples: Object.fromEntries(names.map((code) => [code, problemExample(code)])) } }
  }
  return { $ref: `#/components/responses/${name}` }
}

const isCode = (value: Json): value is Code => typeof value === "string" && Object.hasOwn(codes, value)

/** The codes that a problem's schema, or a choice of them, allows. */
const codesOf = (schema: Json): ReadonlyArray<Code> => {
  const options = list(object(schema)["anyOf"])
  return (options.length === 0 ? [schema] : options).flatMap((one) =>
    list(object(object(resolve(one)["properties"])["code"])["enum"]).filter(isCode)
  )
}

const operation = (value: Json): Json => {
  const { operationId, parameters, requestBody, responses, ...rest } = object(value)
  return {
    ...rest,
    operationId: String(operationId).split(".").at(-1) ?? "",
    parameters: list(parameters).map((one) => ({
      ...object(one),
      description: object(one)["description"] ?? resolve(object(one)["schema"])["description"] ?? ""
    })),
    ...(requestBody === undefined ? {} : { requestBody: withBodyExample(requestBody) }),
    responses: mapValues(object(responses), (one, status) => response(one, status))
  }
}

const withBodyExample = (body: Json): Json => ({
  ...object(body),
  content: mapValues(object(object(body)["content"]), (media) => ({ ...object(media), example: exampleOf(object(media)["schema"]) }))
})

const cleanPaths = object(clean(generated["paths"] ?? {}))

// Responses may get new fields; a body with an unknown field is rejected.
for (const body of Object.values(cleanPaths).flatMap((item) =>
  Object.values(object(item)).map((one) => object(object(one)["requestBody"]))
)) {
  for (const media of Object.values(object(body["content"]))) {
    const name =
      String(object(object(media)["schema"])["$ref"])
        .split("/")
        .at(-1) ?? ""
    schemas[name] = { ...object(schemas[name]), additionalProperties: false }
  }
}

const paths = mapValues(cleanPaths, (item) => mapValues(object(item), operation))

const received = (name: string, description: string): Json => ({
  name,
  in: "header",
  required: true,
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
  received("webhook-signature", "v1,<base64> for each active secret (Standard Webhooks)"),
  received(
    "webhook-sequence",
    "Number of the delivery within its webhook, from 1 without gaps; a number that is missing was sent and not received"
  ),
  received("X-Service-Delivery-Id", "Id of the delivery"),
  received("X-Service-Attempt", "Number of the attempt, from 1"),
  received("X-Service-Event-Kind", "Kind of the event")
]

/** The envelope of a kind; schemas of the read API are references into the document. */
const eventSchema = (kind: Kind): Json => {
  const defs: Record<string, OpenApiJsonSchema.JsonSchema> = {}
  const schema = OpenApiJsonSchema.makeWithDefs(schemaOf(kind), { defs, additionalPropertiesStrategy: "allow" })
  for (const [name, one] of Object.entries(defs)) schemas[name] ??= clean(JSON.parse(JSON.stringify(one)))
  return clean(JSON.parse(JSON.stringify(schema)))
}

/** A kind as an OpenAPI webhook. */
const webhook = (name: Kind): readonly [string, Json] => {
  const kind = kinds[name]
  const schema = eventSchema(name)
  return [
    name,
    {
      post: {
        operationId: name,
        tags: ["Events"],
        summary: kind.when,
        description: `${kind.when}. ${kind.scope === "vault" ? "Vault-scoped." : "Not vault-scoped: it passes every vault filter."}`,
        parameters: deliveryHeaders,
        requestBody: { required: true, content: { "application/json": { schema, example: exampleOf(schema) } } },
        responses: { "2XX": { description: "Received. Any other response, or none within 10 seconds, is retried." } }
      }
    }
  ]
}

const webhooks = Object.fromEntries(names.map(webhook))

/** The document as served. */
export const document: Object = {
  openapi: "3.1.0",
  info: {
    title: "Custody Data Service API",
    version: "1.0.0",
    summary: "Read-only custody data and signed webhooks",
    description:
      "Vaults, balances, transactions, deposit addresses, assets and networks of an organization; webhooks, the event log and deliveries.\n\n" +
      "Timestamps are UTC ISO 8601. Amounts are decimal strings: parse them with a decimal library. Ids are opaque. Lists are paginated: pass " +
      "`nextCursor` back as `cursor`. Unknown parameters are rejected. Fields and enum values may be added at any time; ignore those that you do not know. " +
      "A wrong method on a known path returns 405 with `Allow`. A request with invalid framing, or with headers larger than 16 KiB, is " +
      "rejected by the HTTP parser without the error envelope.",
    license: { name: "Apache-2.0", identifier: "Apache-2.0" }
  },
  servers: [{ url: "/", description: "Where this document was served" }],
  tags: [...list(generated["tags"]), { name: "Events", description: "What webhooks receive." }],
  paths,
  webhooks,
  components: { ...object(generated["components"]), schemas, responses: problemResponses },
  security: [{ apiKey: [] }]
}
