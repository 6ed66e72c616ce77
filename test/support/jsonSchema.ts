/** The subset of JSON Schema that the OpenAPI document uses, strictly: an unknown keyword is an error. */

export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }
export type Node = { readonly [key: string]: Json }

export const isNode = (value: Json | undefined): value is Node => typeof value === "object" && value !== null && !Array.isArray(value)
export const node = (value: Json | undefined): Node => (isNode(value) ? value : {})
export const list = (value: Json | undefined): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])

const silent = new Set(["description", "title", "examples", "default", "$schema", "$id", "$defs", "deprecated", "readOnly", "writeOnly"])
const formats: { readonly [name: string]: RegExp } = {
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
  date: /^\d{4}-\d\d-\d\d$/,
  email: /^[^@\s]+@[^@\s]+$/,
  uri: /^[a-z][a-z0-9+.-]*:/
}

const is = (type: Json | undefined, value: Json): boolean => {
  switch (type) {
    case "object":
      return isNode(value)
    case "array":
      return Array.isArray(value)
    case "integer":
      return Number.isInteger(value)
    case "null":
      return value === null
    default:
      return typeof value === type
  }
}

/** The errors in a value, as paths with reasons; empty if it is valid. `root` is the document of `$ref`s. */
export const misfits = (schema: Json, value: Json, root: Node, at = ""): ReadonlyArray<string> => {
  const { $ref, ...rest } = node(schema)
  const found: Array<string> = typeof $ref === "string" ? [...misfits(resolve($ref, root), value, root, at)] : []
  const check = (ok: boolean, reason: string) => {
    if (!ok) found.push(`${at || "/"} ${reason}`)
  }
  for (const [keyword, given] of Object.entries(rest)) {
    switch (keyword) {
      case "type":
        check(Array.isArray(given) ? given.some((one) => is(one, value)) : is(given, value), `is no ${JSON.stringify(given)}`)
        break
      case "enum":
        check(
          list(given).some((one) => Bun.deepEquals(one, value)),
          `is none of ${JSON.stringify(given)}`
        )
        break
      // Clients accept other values; the service sends these only.
      case "x-extensible-enum":
        check(value === null || list(given).includes(value), `is none of ${JSON.stringify(given)}`)
        break
      case "const":
        check(Bun.deepEquals(given, value), `is not ${JSON.stringify(given)}`)
        break
      case "required":
        if (isNode(value)) for (const name of list(given)) check(Object.hasOwn(value, String(name)), `lacks ${name}`)
        break
      case "properties":
        if (isNode(value))
          for (const [name, one] of Object.entries(node(given)))
            if (Object.hasOwn(value, name)) found.push(...misfits(one, value[name] ?? null, root, `${at}/${name}`))
        break
      case "additionalProperties":
        if (isNode(value))
          for (const [name, one] of Object.entries(value))
            if (!Object.hasOwn(node(rest["properties"]), name)) {
              if (given === false) check(false, `has ${name}, which is not in the schema`)
              else if (isNode(given)) found.push(...misfits(given, one, root, `${at}/${name}`))
            }
        break
      case "items":
        list(value).forEach((one, index) => {
          found.push(...misfits(given, one, root, `${at}/${index}`))
        })
        break
      case "anyOf":
        check(
          list(given).some((one) => misfits(one, value, root, at).length === 0),
          "fits none of the alternatives"
        )
        break
      case "allOf":
        for (const one of list(given)) found.push(...misfits(one, value, root, at))
        break
      case "pattern":
        if (typeof value === "string") check(new RegExp(String(given), "u").test(value), `does not match ${given}`)
        break
      case "format":
        if (typeof value === "string") check((formats[String(given)] ?? /never/).test(value), `is no ${given}`)
        break
      case "minimum":
        if (typeof value === "number") check(value >= Number(given), `is less than ${given}`)
        break
      case "maximum":
        if (typeof value === "number") check(value <= Number(given), `is more than ${given}`)
        break
      case "minLength":
        if (typeof value === "string") check(value.length >= Number(given), `is shorter than ${given}`)
        break
      case "maxLength":
        if (typeof value === "string") check(value.length <= Number(given), `is longer than ${given}`)
        break
      case "minItems":
        if (Array.isArray(value)) check(value.length >= Number(given), `has fewer items than ${given}`)
        break
      case "maxItems":
        if (Array.isArray(value)) check(value.length <= Number(given), `has more items than ${given}`)
        break
      case "uniqueItems":
        if (Array.isArray(value) && given === true)
          check(new Set(value.map((one) => JSON.stringify(one))).size === value.length, "has an item twice")
        break
      default:
        if (!silent.has(keyword)) throw new Error(`JSON Schema keyword ${keyword} at ${at || "/"} is not known here`)
    }
  }
  return found
}

/** The target of a `$ref`; throws if there is none. */
export const resolve = (reference: string, root: Node): Json => {
  let at: Json | undefined = root
  for (const part of reference.replace(/^#\//, "").split("/")) at = node(at)[part.replaceAll("~1", "/").replaceAll("~0", "~")]
  if (!reference.startsWith("#/") || at === undefined) throw new Error(`${reference} points at nothing`)
  return at
}

/** A node of a document, or the target of its `$ref`. */
export const referent = (value: Json | undefined, root: Node): Node => {
  const { $ref } = node(value)
  return typeof $ref === "string" ? node(resolve($ref, root)) : node(value)
}

/**
 * Where a newer schema breaks readers of an older one: a missing field, type, value or guarantee. Fields and enum values
 * may be added. Decision D-32.
 */
export const broken = (
  before: Json,
  after: Json,
  roots: { readonly before: Node; readonly after: Node },
  at = ""
): ReadonlyArray<string> => {
  const [old, now] = [flat(before, roots.before), flat(after, roots.after)]
  const found: Array<string> = []
  for (const keyword of ["type", "const", "format", "pattern"]) {
    if (!Bun.deepEquals(old[keyword], now[keyword]))
      found.push(`${at || "/"} ${keyword} was ${JSON.stringify(old[keyword])} and is ${JSON.stringify(now[keyword])}`)
  }
  for (const value of list(old["enum"]))
    if (!list(now["enum"]).includes(value)) found.push(`${at || "/"} no longer has ${JSON.stringify(value)}`)
  if (old["enum"] === undefined && now["enum"] !== undefined) found.push(`${at || "/"} was any value and is now one of a list`)
  for (const name of list(old["required"]))
    if (!list(now["required"]).includes(name)) found.push(`${at}/${name} was always there and is no longer`)
  for (const [name, one] of Object.entries(node(old["properties"]))) {
    const other = node(now["properties"])[name]
    if (other === undefined) found.push(`${at}/${name} is gone`)
    else found.push(...broken(one, other, roots, `${at}/${name}`))
  }
  if (old["items"] !== undefined) found.push(...broken(old["items"], now["items"] ?? {}, roots, `${at}/*`))
  const [was, is] = [list(old["anyOf"]), list(now["anyOf"])]
  if (was.length !== is.length && (was.length > 0 || is.length > 0)) found.push(`${at || "/"} has other alternatives`)
  was.forEach((one, index) => {
    found.push(...broken(one, is[index] ?? {}, roots, `${at}|${index}`))
  })
  return found
}

/** A schema with its reference and its `allOf` of one followed. */
const flat = (schema: Json, root: Node): Node => {
  const { $ref, allOf, ...rest } = node(schema)
  if (typeof $ref === "string") return { ...flat(resolve($ref, root), root), ...rest }
  return Array.isArray(allOf) && allOf.length === 1 ? { ...flat(allOf[0] ?? {}, root), ...rest } : node(schema)
}
