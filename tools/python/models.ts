/**
 * Generates `models.py` of the Python client from the OpenAPI document: a dataclass for each object that an operation returns or
 * an event carries, and the known values of sets that may grow.
 */
import { documentAt } from "../../src/app/openapi/OpenApi.ts"
import { isNode, type Json, list, type Node, node, referent } from "../../test/support/jsonSchema.ts"
import { docstring, inPython, snake, upper } from "./text.ts"

/** The OpenAPI document. */
export const document: Node = documentAt("/")

/** The document's named schemas. */
export const schemas = node(node(document["components"])["schemas"])

const nameOfRef = (ref: Json | undefined) => String(ref).split("/").at(-1) ?? ""
/** The elements of a list of objects. */
export const nodes = (value: Json | undefined) => list(value).map(node)
/** Whether two values are the same JSON. */
export const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)
const quoted = (values: ReadonlyArray<unknown>) => values.map((value) => JSON.stringify(value)).join(", ")

/** A schema with its reference followed. */
export const resolved = (schema: Node): Node => {
  const { $ref, allOf, ...rest } = schema
  if (typeof $ref === "string") return { ...resolved(referent({ $ref }, document)), ...rest }
  return Array.isArray(allOf) && allOf.length === 1 ? { ...resolved(node(allOf[0])), ...rest } : schema
}

/** The description of a schema; empty without one. */
export const descriptionOf = (schema: Node): string => {
  const { description } = resolved(schema)
  return typeof description === "string" && description !== "an integer" ? inPython(description) : ""
}

/** The known values of a set of strings, whether or not values may be added to it. */
export const valuesOf = (schema: Node): ReadonlyArray<Json> =>
  schema["const"] === undefined ? list(schema["enum"] ?? schema["x-extensible-enum"]).filter((value) => value !== null) : [schema["const"]]

/** Whether a schema's pattern holds for these texts and for none of the others. */
const holds = ({ pattern }: Node, some: ReadonlyArray<string>, others: ReadonlyArray<string>) => {
  if (typeof pattern !== "string") return false
  const expression = new RegExp(pattern, "u")
  return some.every((text) => expression.test(text)) && !others.some((text) => expression.test(text))
}
const isDecimal = (schema: Node) => schema["format"] === "decimal" || holds(schema, ["0", "12.5"], ["", "x", "0x1", "1-1", "1.5.0", "1e5"])
const isDate = (schema: Node) =>
  schema["format"] === "date" ||
  holds(schema, ["2025-03-24"], ["", "2025", "2025-03-24T"]) ||
  (schema["pattern"] === undefined && /\bYYYY-MM-DD\b/.test(descriptionOf(schema)))

/** Fields whose type is more exact than the document's JSON schema: an event depends on its kind. */
const closerTypes: Readonly<Record<string, string>> = { "WebhookEvent.payload": "Event", "WebhookEventDetail.payload": "Event" }

/** The declarations of `models.py` by name; what a declaration uses comes before it. */
const declarations = new Map<string, string>()
const declared = new Map<string, Node>()
/** The names that are declared. */
export const declaredNames = (): ReadonlyArray<string> => [...declared.keys()]

/** Declares a name once, for one schema. */
const declare = (name: string, schema: Node, text: () => string): string => {
  const known = declared.get(name)
  if (known !== undefined && !same(known, schema)) throw new Error(`two types would be ${name}`)
  if (known === undefined) {
    declared.set(name, schema)
    declarations.set(name, text())
  }
  return name
}

/** The name that a set of values has as its title, if it has one. */
const titleOf = ({ title }: Node): string | undefined => (typeof title === "string" && /^([A-Z][a-z]+)+$/.test(title) ? title : undefined)

/** A set of values as the literals that this version knows: with a name if the document names it. */
const literalOf = (schema: Node, name?: string): string => {
  const values = valuesOf(schema)
  const named = values.length > 1 ? Object.keys(schemas).find((one) => same(valuesOf(node(schemas[one])), values)) : undefined
  const known = name ?? named ?? titleOf(schema)
  if (known === undefined) return `Literal[${quoted(values)}]`
  const lines = values.map((value) => `    ${JSON.stringify(value)},\n`).join("")
  const text = () => `${known}: TypeAlias = Literal[\n${lines}]\n${docstring("", descriptionOf(node(schemas[known] ?? schema)))}`
  return declare(known, { values }, text)
}

/** The Python type of a schema: of a result, whose sets of values may grow, or of an argument. `name` is that of a class for an object without one. */
export const typeOf = (schema: Node, name: string, use: "result" | "argument"): string => {
  const { $ref, allOf, anyOf, items, properties, type } = schema
  if (typeof $ref === "string") {
    const target = node(schemas[nameOfRef($ref)])
    if (valuesOf(target).length > 1) return opened(literalOf(target, nameOfRef($ref)), use)
    return typeOf(target, nameOfRef($ref), use)
  }
  if (Array.isArray(allOf) && allOf.length === 1) return typeOf(node(allOf[0]), name, use)
  if (Array.isArray(type)) {
    const [some = "null", ...more] = type.filter((one) => one !== "null")
    if (more.length > 0) throw new Error(`${name} has several types`)
    return `${typeOf({ ...schema, type: some }, name, use)} | None`
  }
  const values = valuesOf(schema)
  if (values.length > 0) {
    const fixed = values.length === 1 && schema["x-extensible-enum"] === undefined
    return fixed ? literalOf(schema) : opened(literalOf(schema), use)
  }
  const options = nodes(anyOf)
  if (options.length > 0) {
    const types = [...new Set(options.map((one) => typeOf(one, name, use)))]
    const last = ["str", "None"]
    return types.sort((a, b) => last.indexOf(a) - last.indexOf(b)).join(" | ")
  }
  switch (type) {
    case "array":
      return `${use === "result" ? "list" : "Sequence"}[${typeOf(node(items), name.replace(/s$/, ""), use)}]`
    case "object": {
      if (Object.keys(node(properties)).length > 0) return declare(name, schema, () => model(name, schema))
      const values = schema["additionalProperties"]
      return `dict[str, ${isNode(values) ? typeOf(values, name.replace(/s$/, ""), use) : "Any"}]`
    }
    case "integer":
      return "int"
    case "number":
      return "float"
    case "boolean":
      return "bool"
    case "null":
      return "None"
    case "string":
      if (schema["format"] === "date-time") return "dt.datetime"
      return isDecimal(schema) ? "Decimal" : isDate(schema) ? "dt.date" : "str"
    default:
      // A value of any kind has no type.
      if (type !== undefined || schema["oneOf"] !== undefined || allOf !== undefined) throw new Error(`${name} has an unknown type`)
      return "Any"
  }
}
const opened = (literal: string, use: "result" | "argument") => (use === "result" ? `${literal} | str` : literal)

/** Whether None is a value of a type. */
export const isNullable = (type: string) => type.endsWith("None") || type === "Any"

/** Whether an object has all fields of another one, as they are, and more. */
const extend = (schema: Node, other: Node) => {
  const [all, some] = [node(schema["properties"]), node(other["properties"])]
  const names = Object.keys(some)
  return (
    names.length > 4 &&
    names.length < Object.keys(all).length &&
    names.every((name) => same(all[name], some[name]) && list(schema["required"]).includes(name) === list(other["required"]).includes(name))
  )
}

/** A dataclass of an object; one that has the fields of another and more is its subclass. */
const model = (name: string, schema: Node): string => {
  const required = list(schema["required"])
  const base = Object.keys(schemas).find((one) => extend(schema, node(schemas[one])))
  const inherited = base === undefined ? {} : node(node(schemas[base])["properties"])
  const added = Object.entries(node(schema["properties"])).filter(([field]) => inherited[field] === undefined)
  const fields = added.map(([field, value]) => {
    const own = node(value)
    const isRequired = required.includes(field)
    const type = closerTypes[`${name}.${field}`] ?? typeOf(own, `${name}${upper(field)}`, "result")
    const known = isRequired || isNullable(type) ? type : `${type} | None`
    // A secret is returned once, and does not belong in a log.
    const isSecret = field === "secret" || field === "clientSecret" || (field === "value" && /Header$/.test(name))
    // A field of a merge patch that is left out is not None.
    const isPatched = !isRequired && isNullable(type) && name.startsWith("Patched")
    const initial = isPatched ? "UNSET" : isRequired ? "" : "None"
    const assigned = isSecret
      ? ` = field(${initial === "" ? "" : `default=${initial}, `}repr=False)`
      : initial === ""
        ? ""
        : ` = ${initial}`
    return `    ${snake(field)}: ${known}${isPatched ? " | Unset" : ""}${assigned}\n${docstring("    ", descriptionOf(own))}`
  })
  const parent = base === undefined ? "Model" : typeOf({ $ref: `#/components/schemas/${base}` }, base, "result")
  return dataclass(`${name}(${parent})`, descriptionOf(schema), fields.join(""))
}

const dataclass = (head: string, description: string, fields: string): string =>
  `@dataclass(frozen=True, kw_only=True)\nclass ${head}:\n${docstring("    ", description)}${description === "" ? "" : "\n"}${fields}`

/** The schema of a request's body; undefined without a body. */
export const bodyOf = (value: Node): Node | undefined =>
  value["requestBody"] === undefined
    ? undefined
    : resolved(node(node(Object.values(node(referent(value["requestBody"], document)["content"]))[0])["schema"]))

const PING: Node = { type: "object", required: ["webhookId"], properties: { webhookId: { type: "string" } } }

/** Declares a class for each kind of event, and one for the data of the kinds that share them. */
const declareEvents = () => {
  const kinds = Object.entries(node(document["webhooks"])).map(([kind, item]) => {
    const post = node(node(item)["post"])
    const envelope = node(bodyOf(post)?.["properties"])
    const [version] = valuesOf(node(envelope["schemaVersion"]))
    return {
      kind,
      version,
      summary: String(post["summary"]),
      // The data of an event that happened in a vault names it.
      scoped: node(resolved(node(envelope["data"]))["properties"])["vaultId"] !== undefined,
      data: node(envelope["data"])
    }
  })
  kinds.push({ kind: "webhook.ping", version: 1, summary: "A test, sent by a ping and not in the log", scoped: false, data: PING })
  const className = (kind: string) => kind.split(/[._]/).map(upper).join("")
  const noun = (kind: string) => kind.split(".")[0] ?? ""
  for (const { data, kind, scoped, summary, version } of kinds) {
    const shared = kinds.every((other) => noun(other.kind) !== noun(kind) || same(other.data, data))
    const type = typeOf(resolved(data), `${className(shared ? noun(kind) : kind)}Data`, "result")
    const head = `${className(kind)}Event(Event, kind="${kind}", version=${version})`
    const fields = [`kind: Literal["${kind}"]`, `vault_ids: ${scoped ? "list[str]" : "None"}`, `data: ${type}`]
    declare(`${className(kind)}Event`, { kind }, () => dataclass(head, summary, fields.map((field) => `    ${field}\n`).join("")))
  }
}

/** How each generated file begins. */
export const HEAD = '"""Made from the contract by `bun run golden`; not to be edited."""\n\nfrom __future__ import annotations\n'

/** `models.py`, with these error codes and the models that were declared: those that operations use, of errors and of events. */
export const modelsFile = (errorCodes: ReadonlyArray<string>): string => {
  for (const name of ["FieldIssue", "Pagination"]) typeOf({ $ref: `#/components/schemas/${name}` }, name, "result")
  declareEvents()
  const codes = errorCodes.map((code) => `    "${code}",\n`).join("")
  return `${HEAD}
import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from ._model import UNSET, Event, Model, Unset

ErrorCode: TypeAlias = Literal[
${codes}]
"""Every code that the API fails with. Codes may be added."""


${[...declarations.values()].join("\n\n")}`
}
