/**
 * Schemas in the form that generators of clients take. What the framework writes is valid, and generators reject some of it
 * or make types of it that break: alternatives with null, integers as numbers, sets of values without a name. In requests a
 * set of values is an `enum` with a name; in responses it is a string with `x-extensible-enum`, so that a client accepts a
 * value that was added after it was generated. Decision D-32.
 */
import { isObject, type Json, list, type Object, object, refOf, refTo, rewrite } from "./json.ts"

/** Schemas by name: those that the framework generated, and named sets of values that it wrote inline. */
export class Schemas {
  readonly #sources: Object
  readonly #found = new Map<string, Json>()

  /** `sources` are the framework's schemas. */
  constructor(sources: Object) {
    this.#sources = sources
    // Sets of values first: an inline use has another description.
    for (const name of Object.keys(sources)) if (object(sources[name])["enum"] !== undefined) this.get(name)
  }

  /** A schema by name. */
  readonly get = (name: string): Object => {
    const source = this.#sources[name]
    if (!this.#found.has(name) && source !== undefined) {
      const tidied = this.tidy(source)
      // One whose title is its name was entered while it was tidied.
      if (!this.#found.has(name)) this.#found.set(name, tidied)
    }
    return object(this.#found.get(name))
  }

  /** A value, usually a schema, with every schema in it in the right form. */
  readonly tidy = (value: Json): Json => rewrite(value, (one) => this.#named(this.#nullable(single(integer(plain(one))))))

  /** An inline schema whose title is a name, as a reference: another description or status takes its identifier away. */
  #named(schema: Object): Object {
    const { enum: values, properties, title, ...rest } = schema
    const content = values ?? properties
    if (typeof title !== "string" || !/^\w+$/.test(title) || content === undefined || Array.isArray(rest["type"])) return schema
    const known = object(this.#found.get(title))
    // What an inline set of values is for is no description of the set.
    const isFirstInline = values !== undefined && this.#sources[title] === undefined
    if (!this.#found.has(title)) this.#found.set(title, isFirstInline ? without(schema, "description") : schema)
    else if (JSON.stringify(known["enum"] ?? known["properties"]) !== JSON.stringify(content))
      throw new Error(`two schemas are named ${title}`)
    const { description } = rest
    return defined({ ...refTo(title), description: description === this.get(title)["description"] ? undefined : description })
  }

  /** Null or a value that is not an object, as one schema of two types. */
  #nullable(schema: Object): Object {
    const { anyOf, ...rest } = schema
    const others = list(anyOf).filter((one) => object(one)["type"] !== "null")
    if (others.length !== 1 || others.length === list(anyOf).length) return schema
    const name = refOf(others[0])
    const found = name === undefined ? object(others[0]) : without(this.get(name), "examples")
    const { enum: values, type, ...other } = found
    if (typeof type !== "string" || (type === "object" && name !== undefined)) return schema
    return defined({ type: [type, "null"], enum: Array.isArray(values) ? [...values, null] : undefined, ...other, ...rest })
  }
}

const without = (value: Object, field: string): Object => Object.fromEntries(Object.entries(value).filter(([key]) => key !== field))

/** An object without its undefined fields. */
const defined = (value: { readonly [key: string]: Json | undefined }): Object =>
  Object.fromEntries(Object.entries(value).flatMap(([key, one]) => (one === undefined ? [] : [[key, one]])))

/** Without titles that are texts of types, `$id`, empty lists of fields, and what is true without being said. */
const plain = ({ $id: _, additionalProperties, properties, required, title, ...rest }: Object): Object => {
  const isMap = isObject(properties) && Object.keys(properties).length === 0
  return defined({
    ...rest,
    required: isMap ? undefined : required,
    properties: isMap ? undefined : properties,
    title: typeof title === "string" && !/^[A-Z][\w ]*$/.test(title) ? undefined : title,
    additionalProperties: additionalProperties === true && properties !== undefined ? undefined : additionalProperties
  })
}

/** The framework names its schema of integers, and calls constant integers numbers. */
const integer = (schema: Object): Object => {
  if (refOf(schema) === "Int") {
    const { $ref: _, ...rest } = schema
    return { type: "integer", ...rest }
  }
  const isInteger = schema["type"] === "number" && list(schema["enum"]).length > 0 && list(schema["enum"]).every(Number.isInteger)
  return isInteger ? { ...schema, type: "integer" } : schema
}

/** An alternative of one is that one. The framework's decode error never leaves the error boundary. */
const single = (schema: Object): Object => {
  const { allOf, anyOf, ...rest } = schema
  const options = list(allOf ?? anyOf).filter((one) => refOf(one) !== "HttpApiDecodeError")
  if (options.length === 1) return { ...object(options[0]), ...rest }
  return anyOf === undefined ? schema : { ...rest, anyOf: options }
}

/** A schema of a response or an event: its sets of values are open. `closed` are named sets that requests use. */
export const opened = (value: Json, closed: (name: string) => Object | undefined): Json =>
  rewrite(value, (one) => {
    const { $ref: _, ...rest } = one
    const set = closed(refOf(one) ?? "")
    const { enum: values, ...schema } = set === undefined ? one : { ...set, ...rest }
    if (!Array.isArray(values) || schema["type"] === "integer") return one
    return { ...schema, "x-extensible-enum": values.filter((known) => known !== null) }
  })
