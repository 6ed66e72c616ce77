/**
 * Parameters of a request, strictly: one that is not in the contract, or is given twice, is refused, since a
 * misspelt filter must never return unfiltered data. Decision D-1.
 */
import { Schema } from "effect"

/** The query parameters of an endpoint; none but these. */
export const query = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct(fields).annotations({ parseOptions: { onExcessProperty: "error", errors: "all" } })

/** An endpoint without query parameters. A record of nothing: a struct without fields would take any. */
export const noQuery = Schema.Record({ key: Schema.String, value: Schema.Never }).annotations({ parseOptions: { errors: "all" } })

/** An id in a path: any text. What it names, if anything, is the statement's business; a malformed one is a 404. Decision D-14. */
export const pathId = (name: string) =>
  Schema.transform(Schema.String.annotations({ jsonSchema: { type: "string" } }), Schema.String, {
    strict: true,
    // Postgres takes no NUL in a text; no id has one, and the empty id names nothing.
    decode: (id) => (id.includes("\u0000") ? "" : id),
    encode: (id) => id
  }).annotations({ description: `Opaque id of the ${name}` })
