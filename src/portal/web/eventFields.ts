/** The fields of an event by its JSON Schema, one row for each, as a table shows them. */

/** What is used of a JSON Schema. */
export interface JsonSchema {
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly $ref?: string
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly items?: JsonSchema
  readonly required?: ReadonlyArray<string>
  readonly properties?: Readonly<Record<string, JsonSchema>>
}

/** A schema with the schemas that it refers to. */
export interface RootSchema extends JsonSchema {
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> }
}

/** A field: its path, such as `data.balance.amount`, its type in words, and what it means. */
export interface EventField {
  readonly path: string
  readonly type: string
  readonly description: string
}

/** Every field of the schema that has a value or a meaning of its own, in its order. */
export const eventFields = (root: RootSchema): ReadonlyArray<EventField> => {
  const resolved = (schema: JsonSchema): JsonSchema => {
    const target = schema.$ref === undefined ? undefined : root.components.schemas[schema.$ref.split("/").at(-1) ?? ""]
    return target === undefined ? schema : { ...target, ...(schema.description === undefined ? {} : { description: schema.description }) }
  }
  const typeOf = (given: JsonSchema): string => {
    const schema = resolved(given)
    if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(" or ")
    if (schema.enum !== undefined) return schema.enum.map((one) => JSON.stringify(one)).join(", ")
    if (schema.type === "array") return `array of ${schema.items === undefined ? "values" : typeOf(schema.items)}`
    return schema.format ?? schema.type ?? "any"
  }
  const within = (given: JsonSchema, path: string): ReadonlyArray<EventField> => {
    const schema = resolved(given)
    const parts = [schema, ...(schema.anyOf ?? []).map(resolved)]
    const inArray = parts.flatMap(({ items }) => (items === undefined ? [] : within(items, `${path}[]`)))
    return [
      ...parts.flatMap(({ properties = {}, required = [] }) =>
        Object.entries(properties).flatMap(([name, property]) => {
          const at = path === "" ? name : `${path}.${name}`
          const { description = "" } = resolved(property)
          const type = `${typeOf(property)}${required.includes(name) ? "" : ", optional"}`
          const isFrame = type === "object" && description === ""
          return [...(isFrame ? [] : [{ path: at, type, description }]), ...within(property, at)]
        })
      ),
      ...inArray
    ]
  }
  return within(root, "")
}
