/**
 * Headers of a webhook: what a gateway in front of its endpoint requires of a request, such as an API key. Every request to the
 * endpoint carries them. Their values are secrets: they are never returned, and a URL of another origin does not get them unless
 * the caller sends them again. C-12.
 */
import { Effect, Redacted, Schema } from "effect"
import { fieldIssue, invalidFields } from "../../http/Body.ts"

/** Most headers of a webhook, longest value, and most characters of all names and values. */
export const MAX_HEADERS = 10
const MAX_VALUE = 1_024,
  MAX_ALL = 4_096

/** What the service, HTTP or a trace sets itself, or only concerns one connection. */
const reserved =
  /^(host|connection|keep-alive|http2-settings|transfer-encoding|te|trailers?|upgrade|expect|user-agent|accept-encoding|traceparent|tracestate|(content|proxy|x-service|webhook)-.*)$/i

/** Whether a name is reserved. Gateways that pass headers on as variables, as CGI does, take an underscore for a hyphen. */
const isReserved = (name: string) => reserved.test(name.replaceAll("_", "-"))

const name = "Name; upper and lower case are the same"
const Name = Schema.String.pipe(
  Schema.filter((value) =>
    !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(value)
      ? "must be the name of an HTTP header"
      : !isReserved(value) || "must not be a header that the service sets itself"
  )
).annotations({
  jsonSchema: {
    type: "string",
    minLength: 1,
    maxLength: MAX_ALL,
    pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
    description: name,
    examples: ["X-Api-Key"]
  }
})

const text = `must have 1 to ${MAX_VALUE} visible ASCII characters, with spaces only between them`
const pattern = "^[!-~]([ -~]*[!-~])?$"
const Value = Schema.String.pipe(
  Schema.filter((value) => (value.length <= MAX_VALUE && new RegExp(pattern).test(value)) || text)
).annotations({
  jsonSchema: {
    type: "string",
    minLength: 1,
    maxLength: MAX_VALUE,
    pattern,
    description: "Value; it is never returned",
    examples: ["k-5f0c2b"]
  }
})

/** The headers in a body, whose names must differ. */
const headersOf = <A extends { readonly name: string }, I>(header: Schema.Schema<A, I>, description: string) =>
  Schema.Array(header)
    .pipe(
      Schema.filter((given) => {
        if (given.length > MAX_HEADERS) return `must list at most ${MAX_HEADERS} headers`
        const seen = new Set<string>()
        return given.flatMap(({ name }, index) => {
          const key = name.toLowerCase()
          if (!seen.has(key)) return seen.add(key) && []
          return [{ path: [index, "name"], message: "must differ from the names of the other headers" }]
        })
      })
    )
    .annotations({ description, jsonSchema: { maxItems: MAX_HEADERS } })

/** The headers in the body of a creation. */
export const NewHeaders = headersOf(
  Schema.Struct({ name: Name, value: Value }).annotations({ identifier: "WebhookHeader" }),
  `Headers that every request carries, for a gateway in front of the endpoint; ${MAX_ALL} characters in all`
)

/** The headers in the body of an update; null keeps the stored value. */
export const PatchedHeaders = headersOf(
  Schema.Struct({ name: Name, value: Schema.NullOr(Value).annotations({ description: "Value; null keeps the stored one" }) }).annotations({
    identifier: "PatchedWebhookHeader"
  }),
  "All headers from now on. A value of null keeps the stored one, but not if the origin of `url` changes"
)
export type PatchedHeaders = typeof PatchedHeaders.Type

/** The headers in responses: their values are not returned. */
export const ShownHeaders = Schema.Array(
  Schema.Struct({
    name: Schema.String.annotations({ description: name, examples: ["X-Api-Key"] }),
    value: Schema.NullOr(Schema.String).annotations({ description: "Always null: values are not returned" })
  }).annotations({ identifier: "ShownWebhookHeader" })
).annotations({ description: "Headers that every request carries, without their values" })

/** A header with its value. */
export type Header = readonly [name: string, value: Redacted.Redacted]

/**
 * The headers of a body with their values. Null takes the stored value of the same name. Fails with 400 if there is none, and
 * if all of them are too long.
 */
export const withValues = Effect.fnUntraced(function* (given: PatchedHeaders, stored: ReadonlyArray<Header>) {
  const known = new Map(stored.map(([name, value]) => [name.toLowerCase(), value]))
  const headers = given.flatMap(({ name, value }): ReadonlyArray<Header> => {
    const kept = value === null ? known.get(name.toLowerCase()) : Redacted.make(value)
    return kept === undefined ? [] : [[name, kept]]
  })
  if (headers.length < given.length) {
    const missing = given.flatMap(({ name, value }, index) => (value === null && !known.has(name.toLowerCase()) ? [index] : []))
    return yield* invalidFields(
      missing.map((index) => fieldIssue(`headers.${index}.value`, "must be given, because no value is stored for this URL"))
    )
  }
  if (headers.reduce((sum, [name, value]) => sum + name.length + Redacted.value(value).length, 0) > MAX_ALL)
    return yield* invalidFields([fieldIssue("headers", `must have at most ${MAX_ALL} characters in all`)])
  return headers
})
