/**
 * Generates the client's types and its table of operations from the OpenAPI document, which is derived from the contract.
 * The output is plain TypeScript with the contract's descriptions, without dependencies.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import { documentAt } from "../src/app/openapi/OpenApi.ts"
import { API as PORTAL, PortalApi } from "../src/portal/server/PortalApi.ts"
import { isNode, type Json, list, type Node, node, referent } from "../test/support/jsonSchema.ts"

const document = documentAt("/")

/** Open sets of values that are only written inline, by the names that they have as titles. */
const inlineSets = (value: Json): ReadonlyArray<readonly [string, Node]> =>
  isNode(value)
    ? [
        ...(typeof value["title"] === "string" && /^\w+$/.test(value["title"]) && value["x-extensible-enum"] !== undefined
          ? [[value["title"], { ...value, type: "string" }] as const]
          : []),
        ...Object.values(value).flatMap(inlineSets)
      ]
    : Array.isArray(value)
      ? value.flatMap(inlineSets)
      : []
const components = node(node(document["components"])["schemas"])
const schemas: Node = { ...components, ...Object.fromEntries(inlineSets(components).filter(([name]) => components[name] === undefined)) }

const nameOfRef = (ref: unknown) => String(ref).split("/").at(-1) ?? ""
const upper = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
const isProblem = (schema: Node) => ["code", "requestId"].every((name) => isNode(node(schema["properties"])[name]))
const resolved = (schema: Node): Node => {
  return schema["$ref"] === undefined ? schema : node(schemas[nameOfRef(schema["$ref"])])
}

/** Strings in responses get no type name, except for closed sets of values. */
const isNamed = (name: string) => {
  const schema = node(schemas[name])
  return (schema["type"] === "object" && !isProblem(schema)) || valuesOf(schema) !== undefined
}

/** The values of a set that the document closes, in requests, or leaves open, in responses. */
const valuesOf = (schema: Node): ReadonlyArray<unknown> | undefined => {
  const values = schema["enum"] ?? schema["x-extensible-enum"]
  return Array.isArray(values) ? values : undefined
}

/** An inlined set of values with a name. */
const namedEnum = (values: ReadonlyArray<unknown>) =>
  Object.keys(schemas).find((name) => {
    const known = valuesOf(node(schemas[name])) ?? []
    return known.length > 1 && JSON.stringify(known) === JSON.stringify(values)
  })

const doc = (schema: Node, indent = ""): string => {
  const own = schema["description"] ?? resolved(schema)["description"]
  const text = typeof own === "string" && own !== "an integer" ? own : ""
  return text === "" ? "" : `${indent}/** ${text.replaceAll("*/", "*\\/")} */\n`
}

const typeOf = (schema: Node, indent = "  ", self = ""): string => {
  if (schema["$ref"] !== undefined) {
    const name = nameOfRef(schema["$ref"])
    return isNamed(name) ? name : typeOf(node(schemas[name]), indent)
  }
  const { anyOf, const: constant, items, properties, type } = schema
  if (Array.isArray(type)) return type.map((one) => typeOf({ ...schema, type: one }, indent)).join(" | ")
  if (type === "null") return "null"
  if (constant !== undefined) return JSON.stringify(constant)
  const values = valuesOf(schema)
  if (values !== undefined) {
    const name = namedEnum(values)
    return name !== undefined && name !== self ? name : values.map((value) => JSON.stringify(value)).join(" | ")
  }
  if (Array.isArray(anyOf)) return anyOf.map((one) => typeOf(node(one), indent)).join(" | ")
  if (type === "array") return `ReadonlyArray<${typeOf(node(items), indent)}>`
  if (type === "object") {
    const fields = Object.entries(node(properties))
    const values = schema["additionalProperties"]
    if (fields.length === 0) return `Readonly<Record<string, ${isNode(values) ? typeOf(values, indent) : "unknown"}>>`
    const required = list(schema["required"])
    return `{\n${fields
      .map(
        ([name, one]) =>
          `${doc(node(one), `${indent}  `)}${indent}  readonly ${name}${required.includes(name) ? "" : "?"}: ${closerTypes[`${self}.${name}`] ?? typeOf(node(one), `${indent}  `)}${required.includes(name) ? "" : " | undefined"}`
      )
      .join("\n")}\n${indent}}`
  }
  if (type === "integer" || type === "number") return "number"
  if (type === "boolean") return "boolean"
  return type === "string" ? "string" : "unknown"
}

/** Fields whose type is more exact than the document's JSON schema can be: the data of an event depends on its kind. */
const closerTypes: Readonly<Record<string, string>> = {
  "WebhookEvent.payload": "ReceivedEvent",
  "WebhookEventDetail.payload": "ReceivedEvent"
}

const declaration = (name: string, schema: Node): string => {
  const text = typeOf(schema, "", name)
  return `${doc(schema)}export ${schema["type"] === "object" ? `interface ${name} ${text}` : `type ${name} = ${text}`}\n`
}

/** The data of each kind; `receivedEvent.ts` has the fields common to all kinds. */
const events = () => {
  const webhooks = Object.entries(node(document["webhooks"])).map(([kind, one]) => [kind, node(one)] as const)
  const bodyOf = (one: Node) =>
    node(resolved(node(node(node(node(node(one["post"])["requestBody"])["content"])["application/json"])["schema"]))["properties"])
  const data = webhooks.map(([kind, one]) => {
    const summary = String(node(one["post"])["summary"])
    return `  /** ${summary} */\n  readonly "${kind}": ${typeOf(node(bodyOf(one)["data"]), "  ")}`
  })
  const scoped = webhooks
    .filter(([, one]) => Object.hasOwn(node(node(bodyOf(one)["data"])["properties"]), "vaultId"))
    .map(([kind]) => `"${kind}"`)
  return `/** What the event of each kind carries in its \`data\`. */
export interface EventData {
${data.join("\n")}
  /** A test, sent by a ping and not in the log */
  readonly "webhook.ping": { readonly webhookId: string }
}

/** Kinds whose events name the vault that they happened in. */
export type VaultEventKind = ${scoped.join(" | ")}
`
}

const HEAD = "// Made from the contract by `bun run golden`; not to be edited.\n"

/** Names of the schemas that the text of types uses. */
const namesIn = (text: string, among: ReadonlyArray<string>) => {
  const code = text.replaceAll(/\/\*\*.*\*\//g, "").replaceAll(/"[^"]*"/g, "")
  return among.filter((name) => new RegExp(`\\b${name}\\b`).test(code))
}
const imports = (names: ReadonlyArray<string>, from: string) =>
  names.length === 0 ? "" : `import type { ${names.join(", ")} } from "${from}.ts"\n`

const named = Object.keys(schemas).filter((name) => isNamed(name) && (!name.endsWith("Page") || name === "EventFeedPage"))
const custodyNames = named.slice(0, named.indexOf("CreateWebhook"))
const webhookNames = named.slice(named.indexOf("CreateWebhook"))

/** `src/client/generated/custody.ts`: the wire types of custody data, and of the parts common to all lists and errors. */
export const custody = (): string =>
  [
    HEAD,
    "/** A page of a list. */\nexport interface Page<A> {\n  readonly data: ReadonlyArray<A>\n  readonly pagination: Pagination\n}\n",
    ...custodyNames.map((name) => declaration(name, node(schemas[name])))
  ].join("\n")

/** `src/client/generated/webhooks.ts`: the wire types of webhooks, the event log and deliveries. */
export const webhooks = (): string => {
  const text = webhookNames.map((name) => declaration(name, node(schemas[name]))).join("\n")
  return `${HEAD}\n${imports(namesIn(text, custodyNames), "./custody")}${imports(namesIn(text, ["ReceivedEvent"]), "../receivedEvent")}\n${text}`
}

/** `src/client/generated/events.ts`: the events that webhooks receive. */
export const eventsFile = (): string => {
  const text = events()
  return `${HEAD}\n${imports(namesIn(text, custodyNames), "./custody")}${imports(namesIn(text, webhookNames), "./webhooks")}\n${text}`
}

/** `src/portal/web/apiRoutes.ts`: what the portal's pages may ask of the API. */
export const apiRoutesFile = (): string => {
  const all = operations().filter((one) => answerOf(one).file === undefined)
  const rows = all.map((one) => {
    const { item, type } = answerOf(one)
    const body = bodyTypeOf(one)
    return `  "${one.method} ${one.path}": { ${body === undefined ? "" : `body: ${body}${mayOmitBody(one) ? " | undefined" : ""}; `}answer: ${item !== undefined ? `Page<${item}>` : type === "void" ? "undefined" : type} }`
  })
  const text = rows.join("\n")
  const names = namesIn(text, [...custodyNames, ...webhookNames, "Page"]).sort()
  return `${HEAD}
import type { ${names.join(", ")} } from "../../client/index.ts"

/** The API's routes under \`/portal/api\`: the body that each takes and what it answers. */
export interface ApiRoutes {
${text}
}
`
}

/** `src/portal/web/portalRoutes.ts`: the portal's own routes by method and path, with the types of their contract. */
export const portalRoutesFile = (): string => {
  const rows: Array<string> = []
  HttpApi.reflect(PortalApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => {
      rows.push(`  "${endpoint.method} ${endpoint.path.slice(PORTAL.length)}": Route<"${endpoint.name}">`)
    }
  })
  return `${HEAD}
import type { Route } from "../server/PortalApi.ts"

/** The portal's own routes under \`/portal/api\`: the body that each takes and what it answers. */
export interface PortalRoutes {
${rows.join("\n")}
}
`
}

interface Operation {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly value: Node
  readonly success: Node
}

const operations = (): ReadonlyArray<Operation> =>
  Object.entries(node(document["paths"]))
    .flatMap(
      ([path, item]) =>
        Object.entries(node(item)).map(([method, given]) => {
          const value = node(given)
          const [, success] = Object.entries(node(value["responses"])).find(([status]) => status.startsWith("2")) ?? []
          return { name: String(value["operationId"]), method: method.toUpperCase(), path, value, success: node(success) }
        })
      // A stream is not a response that can be awaited: its reader is handwritten.
    )
    .filter(({ success }) => node(success["content"])["text/event-stream"] === undefined)

const parametersOf = ({ value }: Operation, place: string) =>
  list(value["parameters"])
    .map(node)
    .filter((one) => one["in"] === place)

/** The result of an operation, and for lists the type of their items. */
const answerOf = (operation: Operation): { readonly type: string; readonly item?: string; readonly file?: true } => {
  const { success } = operation
  const content = node(success["content"])
  if (Object.keys(content).length > 0 && content["application/json"] === undefined)
    return { type: "ReadableStream<Uint8Array>", file: true }
  const schema = node(node(node(success["content"])["application/json"])["schema"])
  if (Object.keys(schema).length === 0) return { type: "void" }
  const { data, pagination } = node(resolved(schema)["properties"])
  if (pagination !== undefined && parametersOf(operation, "query").some((_) => _["name"] === "cursor"))
    return { type: "Page", item: typeOf(node(node(data)["items"])) }
  return { type: typeOf(schema) }
}

/** Whether an operation's body may be left out. */
const mayOmitBody = ({ value }: Operation): boolean => node(value["requestBody"])["required"] !== true

/** The type of an operation's body; undefined if it takes none. */
const bodyTypeOf = ({ value }: Operation): string | undefined =>
  value["requestBody"] === undefined
    ? undefined
    : typeOf(node(node(Object.values(node(node(value["requestBody"])["content"]))[0])["schema"]))

const codesOf = ({ value }: Operation): ReadonlyArray<string> => {
  const codes = Object.entries(node(value["responses"]))
    .filter(([status]) => !status.startsWith("2"))
    .flatMap(([, answer]) => Object.keys(node(node(node(referent(answer, document)["content"])["application/problem+json"])["examples"])))
  return [...new Set(codes)]
}

/** `src/client/generated/operations.ts`: the operations, their filters, and how each can fail. */
export const operationsFile = (): string => {
  const all = operations()
  const query = (one: Operation) => parametersOf(one, "query").filter((_) => _["name"] !== "cursor")
  const isList = (one: Operation) => answerOf(one).item !== undefined
  const once = (one: Operation) => parametersOf(one, "header").some((_) => _["name"] === "idempotency-key")

  /** Whether an operation has parameters other than a list's cursor. */
  const takesQuery = (one: Operation) => query(one).length > 0
  const interfaces = all
    .filter(takesQuery)
    .map((one) => {
      const fields = query(one).map(
        (parameter) =>
          `${doc(parameter, "  ")}  readonly ${String(parameter["name"])}${parameter["required"] === true ? "" : "?"}: ${typeOf(node(parameter["schema"]))}${parameter["required"] === true ? "" : " | undefined"}`
      )
      if (isList(one)) {
        fields.push("  /** Where to begin: `nextCursor` of a page with the same filters */\n  readonly cursor?: string | undefined")
      }
      return `/** Filters of {@link Operations.${one.name}}. */\nexport interface ${upper(one.name)}Query {\n${fields.join("\n")}\n}\n`
    })
    .join("\n")

  const signatures = all
    .map((one) => {
      const { item, type } = answerOf(one)
      const given = [
        ...parametersOf(one, "path").map((parameter) => `${String(parameter["name"])}: string`),
        ...(takesQuery(one)
          ? [`query${query(one).some((parameter) => parameter["required"] === true) ? "" : "?"}: ${upper(one.name)}Query`]
          : []),
        ...(bodyTypeOf(one) === undefined ? [] : [`body${mayOmitBody(one) ? "?" : ""}: ${bodyTypeOf(one)}`]),
        `options?: ${once(one) ? "OnceOptions" : "RequestOptions"}`
      ].join(", ")
      const { description, summary } = one.value
      // The codes, which follow the first paragraph, are a type.
      return `  /** ${String(summary)}. ${String(description).split("\n\n", 1)[0]} \`${one.method} ${one.path}\` */\n  ${one.name}(${given}): ${item === undefined ? `Promise<${type}>` : `Pages<${item}>`}`
    })
    .join("\n")

  const table = all.map(
    (one) =>
      `  ${one.name}: { method: "${one.method}", path: "${one.path}", pages: ${isList(one)}, query: ${takesQuery(one)}, file: ${answerOf(one).file === true}, ${answerOf(one).type === "void" ? "empty: true, " : ""}body: ${bodyTypeOf(one) !== undefined}, once: ${once(one)} }`
  )

  const quoted = (some: ReadonlyArray<string>) => some.map((code) => `"${code}"`).join(" | ")
  const everywhere = all
    .filter(({ value }) => list(value["security"]).length > 0)
    .map(codesOf)
    .reduce((common, some) => common.filter((code) => some.includes(code)))
  const codes = all.map((one) => {
    const own = codesOf(one).filter((code) => !everywhere.includes(code))
    return `  readonly ${one.name}: ${["CommonErrorCode", ...(own.length === 0 ? [] : [quoted(own)])].join(" | ")}`
  })
  const text = `${interfaces}\n${signatures}`
  return `${HEAD}
import type { OnceOptions, Pages, RequestOptions } from "../call.ts"
import type { Route } from "../route.ts"
${imports(namesIn(text, custodyNames), "./custody")}${imports(namesIn(text, webhookNames), "./webhooks")}
${interfaces}
/** Every operation of the API. */
export interface Operations {
${signatures}
}

/** Codes that every operation can fail with. */
export type CommonErrorCode = ${quoted(everywhere)}

/** The codes that each operation can fail with. */
export interface OperationErrors {
${codes.join("\n")}
}

/** Every code that the API fails with. */
export type ErrorCode = OperationErrors[keyof OperationErrors]

/** Every operation's route. */
export const routes: { readonly [Name in keyof Operations]: Route } = {
${table.join(",\n")}
}
`
}
