/** Texts from outside that are used in statements. */
import { Schema } from "effect"

/** Whether Postgres can store a text: NUL is not allowed. */
export const isStorable = (text: string): boolean => !text.includes("\u0000")

/**
 * An id from a client: any text. The statement decides what it names, if anything; text that Postgres cannot store becomes
 * the empty id, which names nothing.
 */
export const GivenId = Schema.transform(Schema.String.annotations({ jsonSchema: { type: "string" } }), Schema.String, {
  strict: true,
  decode: (id) => (isStorable(id) ? id : ""),
  encode: (id) => id
})
