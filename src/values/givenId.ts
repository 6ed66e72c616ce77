/** Texts that come from outside and go into statements. */
import { Schema } from "effect"

/** Whether Postgres can hold a text: it takes no NUL. */
export const isStorable = (text: string): boolean => !text.includes("\u0000")

/**
 * An id as a client gives it: any text. What it names, if anything, is the statement's business; one that Postgres cannot
 * hold becomes the empty id, which names nothing.
 */
export const GivenId = Schema.transform(Schema.String.annotations({ jsonSchema: { type: "string" } }), Schema.String, {
  strict: true,
  decode: (id) => (isStorable(id) ? id : ""),
  encode: (id) => id
})
