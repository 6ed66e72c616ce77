/** The proof of the second factor that an action takes in its request, and texts from people. */
import { Schema } from "effect"
import { isStorable } from "../../values/givenId.ts"

/** Text of at most `max` characters. Postgres cannot store NUL. */
export const text = (max: number) =>
  Schema.String.pipe(
    Schema.filter((value) => (value.length <= max && isStorable(value)) || `must have at most ${max} characters and no NUL`)
  )

/** Proof of the second factor for one action: a code, or a passkey's response. */
export const Confirmation = Schema.Struct({
  code: Schema.optional(text(40)),
  passkey: Schema.optional(Schema.Unknown)
})
export type Confirmation = typeof Confirmation.Type
