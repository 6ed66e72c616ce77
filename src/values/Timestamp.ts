/**
 * Points in time. In the program and on the wire they have one form: UTC ISO 8601 text with milliseconds,
 * `2026-01-31T23:59:59.000Z`. Spec: Resources and their fields.
 */
import { ParseResult, Schema } from "effect"

const jsonSchema = { type: "string", format: "date-time", examples: ["2025-03-24T22:01:59.000Z"] }

/** A timestamp in a response. */
export const Timestamp = Schema.String.annotations({
  identifier: "Timestamp",
  description: "UTC ISO 8601 with milliseconds",
  jsonSchema
})

/** A timestamp in a response that the OpenAPI document describes by its meaning. */
export const timestamp = (description: string) => Timestamp.annotations({ description, jsonSchema: { ...jsonSchema, description } })

const form = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})$/

/**
 * Parses ISO 8601 with a zone: `Z` or an offset. Returns UTC with milliseconds; finer fractions are truncated, or rounded
 * up if `finer` is "up". Undefined for another form or a day that does not exist.
 */
export const parse = (text: string, finer: "cut" | "up" = "cut"): string | undefined => {
  const match = form.exec(text)
  if (match === null) return undefined
  const [, year, month, day, hour, minute, second, fraction = "", zone = "Z"] = match
  const millis = fraction.padEnd(3, "0").slice(0, 3)
  const local = `${year}-${month}-${day}T${hour}:${minute}:${second}.${millis}Z`
  const date = new Date(local)
  if (Number.isNaN(date.getTime()) || date.toISOString() !== local) return undefined
  const offset = zone === "Z" ? 0 : offsetMinutes(zone)
  if (offset === undefined) return undefined
  const up = finer === "up" && /[1-9]/.test(fraction.slice(3)) ? 1 : 0
  const shifted = new Date(date.getTime() + up - offset * 60_000)
  return shifted.getUTCFullYear() >= 1 && shifted.getUTCFullYear() <= 9999 ? shifted.toISOString() : undefined
}

const offsetMinutes = (zone: string): number | undefined => {
  const hours = Number(zone.slice(1, 3)),
    minutes = Number(zone.slice(4, 6))
  if (hours > 23 || minutes > 59) return undefined
  return (zone.startsWith("-") ? -1 : 1) * (hours * 60 + minutes)
}

const expected = "must be an ISO 8601 time with a zone, such as 2025-03-24T22:01:59Z"

const param = (finer: "cut" | "up") =>
  Schema.transformOrFail(Schema.String.annotations({ jsonSchema: { type: "string", format: "date-time" } }), Schema.String, {
    strict: true,
    // In a query string an unescaped + means a space; no valid time contains one.
    decode: (text, _, ast) => {
      const parsed = parse(text.replace(" ", "+"), finer)
      return parsed === undefined ? ParseResult.fail(new ParseResult.Type(ast, text, expected)) : ParseResult.succeed(parsed)
    },
    encode: ParseResult.succeed
  })

/** A time in a query: the caller's text, in any zone, becomes UTC. */
export const TimestampParam = param("cut")

/** The same as an inclusive lower bound: finer fractions are rounded up, so nothing earlier is included. */
export const TimestampFrom = param("up")

/** A time in a body: in any zone, it becomes UTC. */
export const TimestampField = Schema.transformOrFail(
  Schema.String.annotations({ jsonSchema: { type: "string", format: "date-time" }, message: () => expected }),
  Schema.String,
  {
    strict: true,
    decode: (text, _, ast) => {
      const parsed = parse(text)
      return parsed === undefined ? ParseResult.fail(new ParseResult.Type(ast, text, expected)) : ParseResult.succeed(parsed)
    },
    encode: ParseResult.succeed
  }
)

/** A time in a custody record: UTC, written with `Z`. */
export const TimestampUtc = Schema.transformOrFail(
  Schema.String.annotations({ jsonSchema: { type: "string", format: "date-time", pattern: "Z$" } }),
  Schema.String,
  {
    strict: true,
    decode: (text, _, ast) => {
      const parsed = text.endsWith("Z") ? parse(text) : undefined
      return parsed === undefined
        ? ParseResult.fail(new ParseResult.Type(ast, text, "must be a UTC ISO 8601 time, such as 2025-03-24T22:01:59Z"))
        : ParseResult.succeed(parsed)
    },
    encode: ParseResult.succeed
  }
)
