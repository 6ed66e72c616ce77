/**
 * The plain documentation page: the OpenAPI document for people. One HTML file without scripts or external requests, so
 * it also works offline. Anchors: an operation's id, an error's code, an event's kind.
 */
import { codes, portalCodes } from "../../http/Problem.ts"
import { document } from "../OpenApi.ts"
import { escaped } from "./page.ts"

type Node = { readonly [key: string]: unknown }
const node = (value: unknown): Node => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Node) : {})
const nodes = (value: unknown): ReadonlyArray<Node> => (Array.isArray(value) ? value.map(node) : [])
const text = (value: unknown): string => escaped(String(value ?? ""))
const prose = (value: unknown): string =>
  text(value)
    .replaceAll(/`([^`]+)`/g, "<code>$1</code>")
    .replaceAll("\n\n", "</p><p>")

const schemas = node(node(document["components"])["schemas"])
const sharedResponses = node(node(document["components"])["responses"])

/** A schema's type in a few words, with links to the schemas in it. */
const typeOf = (schema: Node): string => {
  const { $ref, allOf, anyOf, enum: values, format, items, type } = schema
  if (typeof $ref === "string") return linkTo($ref.split("/").at(-1) ?? "")
  if (Array.isArray(allOf)) return typeOf(node(allOf[0]))
  if (Array.isArray(anyOf)) return anyOf.map((one) => typeOf(node(one))).join(" or ")
  if (Array.isArray(values)) return values.map((one) => `<code>${text(one)}</code>`).join(", ")
  if (type === "array") return `array of ${typeOf(node(items))}`
  return `${text(type ?? "object")}${format === undefined ? "" : ` (${text(format)})`}`
}
const linkTo = (name: string) => `<a href="#schema-${text(name)}">${text(name)}</a>`

const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  rows.length === 0
    ? ""
    : `<div class="table"><table><thead><tr>${head.map((one) => `<th>${one}</th>`).join("")}</tr></thead><tbody>${rows
        .map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join("")}</tr>`)
        .join("")}</tbody></table></div>`

const fields = (schema: Node): string => {
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : [])
  return table(
    ["Field", "Type", ""],
    Object.entries(node(schema["properties"])).map(([name, one]) => [
      `<code>${text(name)}</code>${required.has(name) ? "" : " <small>optional</small>"}`,
      typeOf(node(one)),
      prose(node(one)["description"])
    ])
  )
}

const operation = (method: string, path: string, value: Node): string => {
  const parameters = nodes(value["parameters"])
  const body = Object.values(node(node(value["requestBody"])["content"]))[0]
  const responses = Object.entries(node(value["responses"]))
  return `<section id="${text(value["operationId"])}"><h3><span class="method ${method}">${method.toUpperCase()}</span> <code>${text(path)}</code></h3>
<p><strong>${text(value["summary"])}.</strong> ${prose(value["description"])}</p>
${table(
  ["Parameter", "Type", ""],
  parameters.map((one) => [
    `<code>${text(one["name"])}</code> <small>${text(one["in"])}</small>`,
    typeOf(node(one["schema"])),
    prose(one["description"])
  ])
)}
${body === undefined ? "" : `<h4>Body</h4>${fields(resolve(node(node(body)["schema"])))}${example(node(body)["example"])}`}
${responses.map(([status, one]) => answer(status, node(one))).join("")}</section>`
}

const resolve = (schema: Node): Node => {
  const reference = schema["$ref"] ?? node(Array.isArray(schema["allOf"]) ? schema["allOf"][0] : undefined)["$ref"]
  return typeof reference === "string" ? node(schemas[reference.split("/").at(-1) ?? ""]) : schema
}

const example = (value: unknown) => (value === undefined ? "" : `<pre>${text(JSON.stringify(value, null, 2))}</pre>`)

const answer = (status: string, given: Node): string => {
  const reference = given["$ref"]
  const value = typeof reference === "string" ? node(sharedResponses[reference.split("/").at(-1) ?? ""]) : given
  if (!status.startsWith("2")) {
    const media = node(node(value["content"])["application/problem+json"])
    return `<p class="answer"><b>${status}</b> ${Object.keys(node(media["examples"]))
      .map((code) => `<a href="#${code}"><code>${code}</code></a>`)
      .join(" ")}</p>`
  }
  const media = node(Object.values(node(value["content"]))[0])
  return `<p class="answer"><b>${status}</b> ${media["schema"] === undefined ? "no body" : typeOf(node(media["schema"]))}</p>${example(media["example"])}`
}

const paths = Object.entries(node(document["paths"])).flatMap(([path, item]) =>
  Object.entries(node(item)).map(([method, value]) => ({ method, path, value: node(value) }))
)
const groups = nodes(document["tags"]).map((tag) => ({
  tag,
  operations: paths.filter(({ value }) => Array.isArray(value["tags"]) && value["tags"][0] === tag["name"])
}))
const events = Object.entries(node(document["webhooks"])).map(([kind, item]) => ({ kind, value: node(node(item)["post"]) }))
const info = node(document["info"])

const style = `:root{color-scheme:light dark;--line:light-dark(#d8dce3,#3a404b);--soft:light-dark(#f5f6f8,#1b1f26);--ink:light-dark(#1d2330,#e4e8ef);--link:light-dark(#0b57d0,#8ab4f8)}
*{box-sizing:border-box}body{margin:0;font:16px/1.55 system-ui,sans-serif;color:var(--ink);background:light-dark(#fff,#12151a)}
main{max-width:60rem;margin:0 auto;padding:2rem 1rem 6rem}a{color:var(--link)}h1{font-size:1.7rem}h2{margin-top:3rem;border-bottom:1px solid var(--line)}
code,pre{font:.86em/1.5 ui-monospace,monospace;overflow-wrap:anywhere}pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:.8rem;overflow:auto;white-space:pre-wrap}
.table{overflow-x:auto}table{border-collapse:collapse;width:100%;margin:.6rem 0}th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--line)}th{font-weight:600}
.method{font:700 .8em ui-monospace,monospace;padding:.1rem .4rem;border-radius:4px;background:var(--soft);border:1px solid var(--line)}.answer{margin:.3rem 0}small{opacity:.75}nav li{margin:.15rem 0}
section{scroll-margin-top:1rem;margin-top:2rem}`

/** The page. */
export const plainReference = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${text(info["title"])}</title><style>${style}</style></head><body><main>
<h1>${text(info["title"])} <small>${text(info["version"])}</small></h1><p>${prose(info["description"])}</p>
<p>The same as a machine reads it: <a href="/v1/openapi.json">/v1/openapi.json</a>.</p>
<nav aria-label="Contents"><ul>${groups
  .map(
    ({ operations, tag }) =>
      `<li><b>${text(tag["name"])}</b><ul>${operations
        .map(
          ({ method, path, value }) =>
            `<li><a href="#${text(value["operationId"])}">${text(value["summary"])}</a> <small><code>${method.toUpperCase()} ${text(path)}</code></small></li>`
        )
        .join("")}</ul></li>`
  )
  .join("")}
<li><a href="#events">Event kinds</a></li><li><a href="#errors">Errors</a></li><li><a href="#schemas">Schemas</a></li></ul></nav>
${groups
  .filter(({ operations }) => operations.length > 0)
  .map(
    ({ operations, tag }) =>
      `<h2>${text(tag["name"])}</h2><p>${prose(tag["description"])}</p>${operations.map(({ method, path, value }) => operation(method, path, value)).join("")}`
  )
  .join("")}
<h2 id="events">Event kinds</h2><p>A webhook receives the kinds that it lists, as a signed POST of the envelope. Envelopes carry <code>id</code>, <code>kind</code>, <code>schemaVersion</code>, <code>date</code>, <code>entityId</code>, <code>vaultIds</code> and <code>data</code>.</p>
${table(
  ["Kind", "When", "Data"],
  events.map(({ kind, value }) => [
    `<code id="${text(kind)}">${text(kind)}</code>`,
    prose(value["summary"]),
    Object.keys(
      node(node(resolve(node(node(node(node(value["requestBody"])["content"])["application/json"])["schema"]))["properties"])["data"])[
        "properties"
      ] ?? {}
    )
      .map((one) => `<code>${text(one)}</code>`)
      .join(", ")
  ])
)}
<h2 id="errors">Errors</h2><p>Every response that is not 2xx is <code>application/problem+json</code> (RFC 9457) with <code>type</code>, <code>title</code>, <code>status</code>, <code>detail</code>, <code>code</code>, <code>requestId</code> and, if fields are invalid, <code>errors</code>.</p>
${table(
  ["Code", "Status", "Meaning"],
  Object.entries(codes)
    .filter(([code]) => !Object.hasOwn(portalCodes, code))
    .map(([code, [status, title]]) => [`<code id="${code}">${code}</code>`, String(status), text(title)])
)}
<h2 id="schemas">Schemas</h2>${Object.entries(schemas)
  .map(
    ([name, schema]) =>
      `<section id="schema-${text(name)}"><h3>${text(name)}</h3><p>${prose(node(schema)["description"])}</p>${
        fields(node(schema)) || `<p>${typeOf(node(schema))}</p>`
      }</section>`
  )
  .join("")}
</main></body></html>`
