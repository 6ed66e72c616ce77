/**
 * Amounts: decimal strings, exact to the last digit. Between the record's text, Postgres `numeric` and the response's
 * text, an amount is never a float. Spec: Resources and their fields; custody records, rule 4.
 */
import { Decimal } from "decimal.js"
import { Schema } from "effect"

/** Most digits before and after the point; the largest 256-bit integer has 78. */
const WHOLE = 78
const FRACTION = 78

const form = new RegExp(`^(?:0|[1-9]\\d{0,${WHOLE - 1}})(?:\\.\\d{1,${FRACTION}})?$`)

const jsonSchema = { type: "string", pattern: "^(0|[1-9][0-9]*)(\\.[0-9]*[1-9])?$", examples: ["2455041.424650514344217245"] }

const description = "Exact decimal; parse it with a decimal library, never as floating point"

/** An amount in a response: no exponent, no trailing zeros, no sign. */
export const Amount = Schema.String.annotations({ identifier: "Amount", description, jsonSchema: { ...jsonSchema, description } })

/** An amount in a response that the OpenAPI document describes by its meaning. */
export const amount = (description: string, example: string) =>
  Amount.annotations({ description, jsonSchema: { ...jsonSchema, examples: [example], description } })

/** Whether text is a plain decimal: digits, at most one point, no sign, no exponent, no leading zeros. */
export const isPlain = (text: string): boolean => form.test(text)

/** The digits after the point as written, trailing zeros included. */
export const fractionDigits = (text: string): number => text.length - (text.indexOf(".") < 0 ? text.length : text.indexOf(".") + 1)

/** The canonical text of a plain decimal: every digit kept, trailing zeros removed. */
export const canonical = (text: string): string => new Decimal(text).toFixed()

/** An amount in a record: a JSON string with a plain decimal; numbers and exponents are rejected. */
export const AmountInput = Schema.String.annotations({ message: () => "must be a decimal string" }).pipe(
  Schema.filter((text) => isPlain(text) || `must be a decimal string: digits, at most ${WHOLE} before and ${FRACTION} after the point`, {
    jsonSchema: { pattern: form.source }
  })
)
