/**
 * The OpenAPI 3.1 document, derived from the contract that the server implements and from the registry of event kinds.
 * This adds what the framework does not know (headers, examples, codes, webhook events) and brings schemas into the form
 * that generators of clients take (schemas.ts). Spec: the whole API. Decisions D-18, D-32.
 */
import * as OpenApi from "@effect/platform/OpenApi"
import * as OpenApiJsonSchema from "@effect/platform/OpenApiJsonSchema"
import { names } from "../../events/log/Kind.ts"
import { ProblemBody } from "../../http/Problem.ts"
import { Api } from "../Api.ts"
import { generatedEvent, webhookOf } from "./events.ts"
import { withExample } from "./examples.ts"
import { type Json, json, list, mapValues, type Object, object, reached, refOf } from "./json.ts"
import { Responses } from "./responses.ts"
import { opened, Schemas } from "./schemas.ts"

const generated = json(OpenApi.fromApi(Api, { additionalPropertiesStrategy: "allow" }))
const events = names.map(generatedEvent)
const problemDefs: Record<string, OpenApiJsonSchema.JsonSchema> = {}
OpenApiJsonSchema.makeWithDefs(ProblemBody, { defs: problemDefs, additionalPropertiesStrategy: "allow" })

const schemas = new Schemas({
  ...Object.assign({}, ...events.map(({ defs }) => defs)),
  ...object(object(generated["components"])["schemas"]),
  ...json(problemDefs)
})
const operations = mapValues(object(generated["paths"]), (item) => mapValues(object(item), schemas.tidy))

const requests = Object.values(operations).flatMap((item) =>
  Object.values(object(item)).map((one) => ({ parameters: object(one)["parameters"] ?? [], body: object(one)["requestBody"] ?? {} }))
)
/** Schemas that requests use, and of these the bodies, in which a field that the contract does not have is rejected. */
const requested = reached(requests, schemas.get)
const bodies = new Set(
  requests.flatMap(({ body }) => Object.values(object(object(body)["content"])).map((media) => refOf(object(media)["schema"])))
)
const closed = (name: string): Object | undefined => {
  const schema = schemas.get(name)
  return requested.has(name) && schema["enum"] !== undefined ? schema : undefined
}
const formOf = (name: string): Object =>
  bodies.has(name)
    ? { ...schemas.get(name), additionalProperties: false }
    : requested.has(name)
      ? schemas.get(name)
      : object(opened(schemas.get(name), closed))
/** `Balance record page` for `BalanceRecordPage`: generators name types after titles. */
const titleOf = (name: string): string => name.replaceAll(/(?<=[a-z0-9])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
const schemaOf = (name: string): Object => ({ ...formOf(name), title: titleOf(name) })

const responses = new Responses(schemaOf)

/** A parameter; its description is that of its schema. */
const parameter = (value: Json): Json => {
  const { description, schema, ...rest } = object(value)
  const { description: own, ...type } = object(schema)
  return { ...rest, schema: type, description: description ?? own ?? schemas.get(refOf(schema) ?? "")["description"] ?? "" }
}

const operation = (value: Json): Json => {
  const { description, operationId, parameters, requestBody, responses: all, ...rest } = object(value)
  const answers = object(opened(all ?? {}, closed))
  return {
    ...rest,
    operationId: String(operationId).split(".").at(-1) ?? "",
    description: `${description}\n\n${responses.errorsOf(answers)}`,
    parameters: list(parameters).map(parameter),
    ...(requestBody === undefined
      ? {}
      : {
          requestBody: {
            ...object(requestBody),
            content: mapValues(object(object(requestBody)["content"]), (media) => withExample(media, schemaOf))
          }
        }),
    responses: responses.of(answers)
  }
}

const paths = mapValues(operations, (item) => mapValues(object(item), operation))
const webhooks = Object.fromEntries(
  events.map(({ kind, schema }) => [kind, webhookOf(kind, opened(schemas.tidy(schema), closed), schemaOf)])
)
const used = reached({ responses: responses.shared, paths, webhooks }, schemaOf)

/** The document without the address of the service. */
const document: Object = {
  openapi: "3.1.0",
  info: {
    title: "Custody Data Service API",
    version: "1.0.0",
    summary: "Read-only custody data and signed webhooks",
    description:
      "Vaults, balances, transactions, deposit addresses, assets and networks of an organization; webhooks, the event log and deliveries.\n\n" +
      "Timestamps are UTC ISO 8601. Amounts are decimal strings: parse them with a decimal library. Ids are opaque. Lists are paginated: pass " +
      "`nextCursor` back as `cursor`. Unknown parameters are rejected. Fields and enum values may be added at any time; ignore those that you do not know: " +
      "`x-extensible-enum` lists the values of today. " +
      "A wrong method on a known path returns 405 with `Allow`. A request with invalid framing, or with headers larger than 16 KiB, is " +
      "rejected by the HTTP parser without the error envelope.",
    license: { name: "Apache-2.0", identifier: "Apache-2.0" }
  },
  tags: [...list(generated["tags"]), { name: "Events", description: "What webhooks receive." }],
  paths,
  webhooks,
  components: {
    ...object(generated["components"]),
    schemas: Object.fromEntries([...used].map((name) => [name, schemaOf(name)])),
    responses: responses.shared
  },
  security: [{ apiKey: [] }]
}

/** The document as a service serves it whose API has this origin. */
export const documentAt = (origin: string): Object => {
  const { openapi, info, ...rest } = document
  return { openapi: openapi ?? "", info: info ?? {}, servers: [{ url: origin }], ...rest }
}
