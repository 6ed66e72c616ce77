/** Examples of bodies, put together from the examples that the contract gives for their fields. */
import { type Json, list, mapValues, type Object, object, refOf } from "./json.ts"

/** An example of a schema. Throws if the contract has none for a field, because a made-up one says nothing. */
export const exampleOf = (schema: Json | undefined, get: (name: string) => Object, at = refOf(schema) ?? "a body"): Json => {
  const name = refOf(schema)
  const { $ref: _, ...own } = object(schema)
  const {
    anyOf,
    const: constant,
    default: fallback,
    enum: values,
    examples,
    format,
    items,
    minimum,
    properties,
    type,
    ...rest
  } = {
    ...(name === undefined ? {} : get(name)),
    ...own
  }
  const [given] = [...list(examples), constant, fallback, ...list(values ?? rest["x-extensible-enum"])].filter((one) => one !== undefined)
  if (list(type).includes("null") && list(examples).length === 0) return null
  if (given !== undefined) return given
  if (Array.isArray(anyOf)) return exampleOf(anyOf[0], get, at)
  if (properties !== undefined) return mapValues(object(properties), (one, field) => exampleOf(one, get, `${at}.${field}`))
  if (type === "array") return [exampleOf(items, get, `${at}[]`)]
  if (type === "boolean") return true
  if (typeof minimum === "number") return minimum
  if (format === "date-time") return "2025-03-24T22:01:59.000Z"
  throw new Error(`there is no example of ${at}`)
}

/** A body with an example. */
export const withExample = (media: Json, get: (name: string) => Object): Json => ({
  ...object(media),
  example: exampleOf(object(media)["schema"], get)
})
