/**
 * Strict request parameters: one that is not in the contract, or is given twice, is rejected, because a misspelled filter must
 * never return unfiltered data. Decision D-1.
 */
import { Schema } from "effect"
import { GivenId } from "../values/givenId.ts"

/** The query parameters of an endpoint; all others are rejected. */
export const query = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct(fields).annotations({ parseOptions: { onExcessProperty: "error", errors: "all" } })

/** Values of a filter that matches any of them, as a parameter that may be repeated. */
export const anyOf = <A extends string, I extends string>(item: Schema.Schema<A, I>, description: string) =>
  Schema.optional(Schema.Array(item).annotations({ description: `${description}; may be given several times` }))

/** Ids of such a filter. */
export const anyId = (description: string) => anyOf(GivenId, description)

/** An endpoint without query parameters. A record of never: a struct without fields would accept any parameter. */
export const noQuery = Schema.Record({ key: Schema.String, value: Schema.Never }).annotations({ parseOptions: { errors: "all" } })

/** `true` or `false` in a query. */
export const Flag = Schema.transform(
  Schema.String.pipe(Schema.filter((text) => text === "true" || text === "false" || "must be true or false")).annotations({
    jsonSchema: { type: "boolean" }
  }),
  Schema.Boolean,
  { strict: true, decode: (text) => text === "true", encode: String }
)

/** An id in a path; a malformed one is a 404. Decision D-14. */
export const pathId = (name: string) => GivenId.annotations({ description: `Opaque id of the ${name}` })
