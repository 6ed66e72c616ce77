/** The OpenAPI document as Markdown: operations with their parameters, bodies and answers, event kinds, errors, schemas. */
import { apiCodes, codes } from "../src/http/Problem.ts"
import { markdownTable } from "./markdown.ts"

type Node = { readonly [key: string]: unknown }
const node = (value: unknown): Node => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Node) : {})
const nodes = (value: unknown): ReadonlyArray<Node> => (Array.isArray(value) ? value.map(node) : [])
const text = (value: unknown): string => String(value ?? "").trim()
const nameOf = (reference: unknown): string => text(reference).split("/").at(-1) ?? ""
const anchor = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, "")
    .replaceAll(" ", "-")

/** A schema's type in a few words. */
const typeOf = (schema: Node): string => {
  const { $ref, anyOf, format, items, type } = schema
  if ($ref !== undefined) return `[${nameOf($ref)}](#${anchor(nameOf($ref))})`
  if (Array.isArray(type)) return type.map((one) => typeOf({ ...schema, type: one })).join(" or ")
  if (Array.isArray(anyOf)) return anyOf.map((one) => typeOf(node(one))).join(" or ")
  const values = type === "null" ? undefined : (schema.enum ?? schema["x-extensible-enum"])
  if (Array.isArray(values)) return values.map((one) => `\`${one}\``).join(", ")
  if (type === "array") return `array of ${typeOf(node(items))}`
  return `${text(type ?? "object")}${format === undefined ? "" : ` (${format})`}`
}

/** A table of the fields of an object; empty if it has none. */
const fieldsOf = (schema: Node): string => {
  const required = new Set(Array.isArray(schema.required) ? schema.required : [])
  const rows = Object.entries(node(schema.properties)).map(([name, one]) => [
    `\`${name}\`${required.has(name) ? "" : " (optional)"}`,
    typeOf(node(one)),
    text(node(one).description)
  ])
  return rows.length === 0 ? "" : markdownTable(["field", "type", ""], rows)
}

const example = (value: unknown): string => (value === undefined ? "" : `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\`\n\n`)

const answerOf = ([status, value]: readonly [string, Node]): ReadonlyArray<string> => {
  const content = node(value.content)
  const problem = node(content["application/problem+json"])
  if (!status.startsWith("2")) {
    return [
      status,
      Object.keys(node(problem.examples))
        .map((code) => `\`${code}\``)
        .join(", ")
    ]
  }
  const bodies = Object.entries(content).map(([type, media]) =>
    type === "application/json" ? typeOf(node(node(media).schema)) : `\`${type}\``
  )
  return [status, bodies.length === 0 ? "no body" : bodies.join(" or ")]
}

/** The document. */
export const apiDocument = (document: unknown): string => {
  const { components, info, paths, tags, webhooks } = node(document)
  const schemas = node(node(components).schemas)
  const resolve = (schema: Node): Node => (schema.$ref === undefined ? schema : node(schemas[nameOf(schema.$ref)]))
  const response = ({ $ref, ...value }: Node): Node => ($ref === undefined ? value : node(node(node(components).responses)[nameOf($ref)]))
  const operations = Object.entries(node(paths)).flatMap(([path, item]) =>
    Object.entries(node(item)).map(([method, value]) => ({ title: `${method.toUpperCase()} ${path}`, value: node(value) }))
  )
  const operation = ({ title, value }: (typeof operations)[number]): string => {
    const body = node(Object.values(node(node(value.requestBody).content))[0])
    const parameters = nodes(value.parameters).map((one) => [
      `\`${one.name}\`${one.required === true ? "" : " (optional)"}`,
      text(one.in),
      typeOf(node(one.schema)),
      text(one.description)
    ])
    const answers = Object.entries(node(value.responses)).map(([status, one]) => answerOf([status, response(node(one))]))
    const success = Object.entries(node(value.responses)).find(([status]) => status.startsWith("2"))?.[1]
    const sent = node(Object.values(node(node(success).content))[0]).example
    return [
      // The codes, which follow the first paragraph, are in the table of responses.
      `### ${title}\n\n${text(value.summary)}. ${text(value.description).split("\n\n", 1)[0]}`.trim(),
      parameters.length === 0 ? "" : markdownTable(["parameter", "in", "type", ""], parameters),
      body.schema === undefined
        ? ""
        : `Body${node(value.requestBody).required === true ? "" : " (optional)"}:\n\n${fieldsOf(resolve(node(body.schema)))}`,
      example(body.example).trim(),
      markdownTable(["status", "response"], answers),
      sent === undefined ? "" : `Example response:\n\n${example(sent)}`
    ]
      .filter((part) => part !== "")
      .map((part) => part.trim())
      .join("\n\n")
  }
  const groups = nodes(tags)
    .map((tag) => ({ tag, of: operations.filter(({ value }) => Array.isArray(value.tags) && value.tags[0] === tag.name) }))
    .filter(({ of }) => of.length > 0)
  const events = Object.entries(node(webhooks)).map(([kind, item]) => [`\`${kind}\``, text(node(node(item).post).summary)])
  const errors = apiCodes.map((code) => [`\`${code}\``, String(codes[code][0]), codes[code][1]])
  return `${[
    `# ${text(node(info).title)} ${text(node(info).version)}`,
    "<!-- Made from the OpenAPI document by `bun run golden`. -->",
    text(node(info).description),
    "A running service serves this at `/v1/docs`, and the OpenAPI document at `/v1/openapi.json`.",
    [
      ...groups.flatMap(({ of }) => of.map(({ title, value }) => `- [${text(value.summary)}](#${anchor(title)}): \`${title}\``)),
      "- [Event kinds](#event-kinds), [errors](#errors), [schemas](#schemas)"
    ].join("\n"),
    ...groups.flatMap(({ of, tag }) => [`## ${text(tag.name)}`, text(tag.description), ...of.map(operation)]),
    "## Event kinds",
    "A webhook receives the kinds that it lists, each as a signed POST of the event's envelope.",
    markdownTable(["kind", "when"], events).trim(),
    "## Errors",
    "Every response that is not 2xx is `application/problem+json` (RFC 9457) with `type`, `title`, `status`, `detail`, `code`, `requestId` and, if fields are invalid, `errors`.",
    markdownTable(["code", "status", "meaning"], errors).trim(),
    "## Schemas",
    ...Object.entries(schemas).flatMap(([name, schema]) => [
      `### ${name}`,
      text(node(schema).description),
      fieldsOf(node(schema)).trim() || `Type: ${typeOf(node(schema))}`
    ])
  ]
    .filter((part) => part !== "")
    .join("\n\n")}\n`
}
