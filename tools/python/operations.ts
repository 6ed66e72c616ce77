/** Generates `operations.py` of the Python client from the OpenAPI document: a method for each operation. */
import { list, type Node, node, referent } from "../../test/support/jsonSchema.ts"
import {
  bodyOf,
  declaredNames,
  descriptionOf,
  document,
  HEAD,
  isNullable,
  modelsFile,
  nodes,
  resolved,
  same,
  schemas,
  typeOf,
  valuesOf
} from "./models.ts"
import { docstring, inPython, snake, upper, wrapped } from "./text.ts"

interface Operation {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly value: Node
  readonly content: Node
}

const operations: ReadonlyArray<Operation> = Object.entries(node(document["paths"]))
  .flatMap(([path, item]) =>
    Object.entries(node(item)).map(([method, given]) => {
      const value = node(given)
      const [, success] = Object.entries(node(value["responses"])).find(([status]) => status.startsWith("2")) ?? []
      return {
        name: String(value["operationId"]),
        method: method.toUpperCase(),
        path,
        value,
        content: node(referent(success, document)["content"])
      }
    })
  )
  // The stream of events has a reader of its own.
  .filter(({ content }) => content["text/event-stream"] === undefined)

const parametersOf = ({ value }: Operation, place: string) =>
  nodes(value["parameters"])
    .map((one) => referent(one, document))
    .filter((one) => one["in"] === place)

/** What an operation returns: items of a list, a file, an object or nothing. */
const resultOf = (operation: Operation): { readonly kind: "pages" | "file" | "value"; readonly type: string } => {
  const { content, name } = operation
  if (Object.keys(content).length === 0) return { kind: "value", type: "None" }
  if (content["application/json"] === undefined) return { kind: "file", type: "Download" }
  const schema = node(node(content["application/json"])["schema"])
  const whole = resolved(schema)
  const { data, pagination } = node(whole["properties"])
  if (pagination !== undefined && parametersOf(operation, "query").some((one) => one["name"] === "cursor"))
    return { kind: "pages", type: typeOf(node(resolved(node(data))["items"]), "", "result") }
  return { kind: "value", type: typeOf(schema, `${upper(name)}Result`, "result") }
}

/** The codes that responses can have. */
const codesOf = ({ value }: Operation): ReadonlyArray<string> => {
  const problems = Object.entries(node(value["responses"]))
    .filter(([status]) => !status.startsWith("2"))
    .map(([, one]) => node(node(referent(one, document)["content"])["application/problem+json"]))
  return [...new Set(problems.flatMap(({ examples }) => Object.keys(node(examples))))]
}

const problemCodes = valuesOf(node(node(node(schemas["Problem"])["properties"])["code"])).map(String)
const everyCode = [...new Set([...operations.flatMap(codesOf), ...problemCodes])]
const commonCodes = operations
  .filter(({ value }) => !same(value["security"], []))
  .map(codesOf)
  .reduce((common, some) => common.filter((code) => some.includes(code)))

interface Argument {
  /** The API's name. */
  readonly name: string
  readonly schema: Node
  readonly required: boolean
  readonly description: string
}

/** A keyword argument. One that may be null has no default but UNSET, because null is a value of it. */
const keyword = ({ name, required, schema }: Argument): string => {
  const type = typeOf(schema, upper(name), "argument")
  if (required) return `${snake(name)}: ${type}`
  return isNullable(type) ? `${snake(name)}: ${type} | Unset = UNSET` : `${snake(name)}: ${type} | None = None`
}

const method = (operation: Operation): string => {
  const { name, path, value } = operation
  const { kind, type } = resultOf(operation)
  const argument = (one: Node): Argument => ({
    name: String(one["name"]),
    schema: { description: one["description"] ?? "", ...node(one["schema"]) },
    required: one["required"] === true,
    description: typeof one["description"] === "string" ? inPython(one["description"]) : descriptionOf(node(one["schema"]))
  })
  const ids = parametersOf(operation, "path").map(argument)
  const query = parametersOf(operation, "query").map(argument)
  const schema = bodyOf(value)
  const body = Object.entries(node(schema?.["properties"])).map(
    ([field, one]): Argument => ({
      name: field,
      schema: node(one),
      required: list(schema?.["required"]).includes(field),
      description: descriptionOf(node(one))
    })
  )
  const repeatable = parametersOf(operation, "header").some((one) => String(one["name"]).toLowerCase() === "idempotency-key")
  const options = [...(repeatable ? ["idempotency_key: str | None = None"] : []), "request_id: str | None = None"]
  const named = [...query, ...body].sort((a, b) => Number(b.required) - Number(a.required))
  const signature = [
    "self",
    ...ids.map((one) => `${snake(one.name)}: ${typeOf(one.schema, "", "argument")}`),
    "*",
    ...named.map(keyword),
    ...options
  ]
  const isUnset = (one: Argument) => one.required || isNullable(typeOf(one.schema, upper(one.name), "argument"))
  const pairs = (some: ReadonlyArray<Argument>, text: (one: Argument) => string) =>
    `{\n${some.map((one) => `                "${one.name}": ${text(one)},\n`).join("")}            }`
  const passed = [
    ...(kind === "file" ? [] : [kind === "value" && type === "None" ? "NoneType" : type]),
    ...(kind === "value" ? [`"${operation.method}"`] : []),
    `"${path.replaceAll(/\{\w+\}/g, "{}")}"`,
    ...(ids.length === 0 ? [] : [`(${ids.map((one) => snake(one.name)).join(", ")}${ids.length === 1 ? "," : ""})`]),
    ...(query.length === 0 ? [] : [`query=${pairs(query, (one) => snake(one.name))}`]),
    ...(schema === undefined ? [] : [`body=${pairs(body, (one) => (isUnset(one) ? snake(one.name) : `given(${snake(one.name)})`))}`]),
    ...(repeatable ? ["idempotency_key=once(idempotency_key)"] : []),
    "request_id=request_id"
  ]
  const own = codesOf(operation).filter((code) => !commonCodes.includes(code))
  const described = named.filter(({ description }) => description !== "")
  const call = `self._${{ pages: "pages", file: "download", value: "call" }[kind]}`
  return `    def ${snake(name)}(
${signature.map((one) => `        ${one},\n`).join("")}    ) -> ${kind === "pages" ? `Pages[${type}]` : type}:
${docstring(
  "        ",
  `${value["summary"]}. ${inPython(String(value["description"]).split("\n\nErrors: ")[0] ?? "")}`,
  `\`\`${operation.method} ${path}\`\``,
  described.length === 0
    ? ""
    : `        Args:\n${described.map((one) => wrapped(`${snake(one.name)}: ${one.description}`, " ".repeat(12), " ".repeat(4))).join("\n")}`,
  own.length === 0 ? "" : `Error codes beside those of every operation: ${own.map((code) => `\`\`${code}\`\``).join(", ")}.`
)}        ${type === "None" ? "" : "return "}${call}(
${passed.map((one) => `            ${one},\n`).join("")}        )
`
}

/** The methods, made first because they declare the models that they use. */
const methods = operations.map(method).join("\n")

/** `models.py` of the Python client: the objects of the API and the events that webhooks receive. */
export const pythonModels = (): string => modelsFile(everyCode)

/** `operations.py` of the Python client: a method for each operation. */
export const pythonOperations = (): string => {
  const names = declaredNames()
    .filter((name) => new RegExp(`\\b${name}\\b`).test(methods.replaceAll(/"""[\s\S]*?"""/g, "")))
    .sort()
  return `${HEAD}
import datetime as dt
from collections.abc import Sequence
from types import NoneType
from typing import Literal

from ._caller import Caller, once
from ._model import UNSET, Unset, given
from ._pages import Download, Pages
from .models import (
${names.map((name) => `    ${name},\n`).join("")})


class Operations(Caller):
    """Every operation of the API.

${wrapped(`Every operation can fail with these codes: ${commonCodes.map((code) => `\`\`${code}\`\``).join(", ")}.`, "    ")}
    """

${methods}`
}
