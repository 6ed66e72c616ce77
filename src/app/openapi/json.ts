/** JSON as the parts of the document read and build it. */

export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }
export type Object = { readonly [key: string]: Json }

export const isObject = (value: unknown): value is Object => typeof value === "object" && value !== null && !Array.isArray(value)
export const object = (value: Json | undefined): Object => (isObject(value) ? value : {})
export const list = (value: Json | undefined): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])
export const mapValues = (value: Object, f: (value: Json, key: string) => Json): Object =>
  Object.fromEntries(Object.entries(value).map(([key, one]) => [key, f(one, key)]))

/** A value of the framework as the JSON that it is; its type is narrower than what happens to it here. */
export const json = (value: unknown): Object => object(JSON.parse(JSON.stringify(value)))

/** Applies a rule to every object in a value, innermost first. */
export const rewrite = (value: Json, rule: (one: Object) => Object): Json =>
  Array.isArray(value)
    ? value.map((one) => rewrite(one, rule))
    : isObject(value)
      ? rule(mapValues(value, (one) => rewrite(one, rule)))
      : value

const SCHEMAS = "#/components/schemas/"

/** A reference to a schema of the document. */
export const refTo = (name: string): Object => ({ $ref: `${SCHEMAS}${name}` })

/** The name of the schema that a value refers to; undefined if it is not a reference. */
export const refOf = (value: Json | undefined): string | undefined => {
  const { $ref } = object(value)
  return typeof $ref === "string" && $ref.startsWith(SCHEMAS) ? $ref.slice(SCHEMAS.length) : undefined
}

/** The names of the schemas that a value refers to, directly or through others. */
export const reached = (value: Json, schemaOf: (name: string) => Json | undefined, names = new Set<string>()): ReadonlySet<string> => {
  rewrite(value, (one) => {
    const name = refOf(one)
    if (name !== undefined && !names.has(name)) reached(schemaOf(name) ?? {}, schemaOf, names.add(name))
    return one
  })
  return names
}
