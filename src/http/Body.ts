/**
 * JSON bodies: read within the limit, strictly as UTF-8, and decoded against the contract. Every invalid field is reported,
 * or only the first if the body has very many values. A field that the contract does not have is rejected, so a misspelled
 * one is never ignored silently, even if the operation takes no body. Decisions D-4, D-70.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Effect, JSONSchema, ParseResult, Predicate, Schema } from "effect"
import { type FieldIssue, type ProblemOf, problem, problems } from "./Problem.ts"
import { currentRequest } from "./RequestContext.ts"

/** Largest body of the public API, in bytes. Decision D-4. */
export const MAX_BODY = 64 * 1024

/** 400 of routes with a body. */
export const InvalidBody = problems("InvalidBody", "malformed_json", "invalid_body", "invalid_parameter", "unknown_parameter")
/** 413 of routes with a body. */
export const PayloadTooLarge = problems("PayloadTooLarge", "payload_too_large")
/** 415 of routes with a body. */
export const UnsupportedMediaType = problems("UnsupportedMediaType", "unsupported_media_type")

/** Errors of reading a body. */
export type BodyProblem = ProblemOf<"malformed_json" | "invalid_body" | "payload_too_large" | "unsupported_media_type">

/** Values of a body up to which every invalid one is reported; in a larger body, only the first is. Decision D-4. */
const REPORTED = 200

/** Deepest nesting of a body. Valid bodies are far flatter. */
const MAX_DEPTH = 32

/** How many values parsed JSON has, and whether it is nested deeper than a body may be: decoding it would exhaust the stack. */
const measured = (value: unknown) => {
  let count = 0,
    tooDeep = false
  const visit = (one: unknown, depth: number): void => {
    count++
    if (typeof one !== "object" || one === null) return
    if (depth === 0) tooDeep = true
    else if (Array.isArray(one)) for (const item of one) visit(item, depth - 1)
    else for (const name in one) visit((one as Readonly<Record<string, unknown>>)[name], depth - 1)
  }
  visit(value, MAX_DEPTH)
  return { count, tooDeep }
}

/** Whether parsed JSON is nested deeper than 32 levels. */
export const isTooDeep = (value: unknown): boolean => measured(value).tooDeep

/**
 * How input is decoded: strictly, and with every error. For a large value, only the first is reported: describing tens of
 * thousands would block the process for seconds.
 */
export const strict = (value: unknown) => strictFor(measured(value).count)

const strictFor = (count: number) => ({ onExcessProperty: "error", errors: count > REPORTED ? "first" : "all" }) as const

/** The complete body of the request. Fails if the client disconnects or takes longer than the listener waits. */
const bytesOf = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.zipLeft(
    request.arrayBuffer,
    Effect.map(currentRequest, ({ bodyRead }) => bodyRead())
  )

/**
 * The text of the request's body, of at most `maximum` bytes; longer ones fail with the detail `tooLarge`. Empty for a
 * request without a body.
 */
export const text = (maximum: number, tooLarge: string) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const encoding = request.headers["content-encoding"]
    if (encoding !== undefined && encoding.trim().toLowerCase() !== "identity") {
      return yield* problem(
        "unsupported_media_type",
        `Content-Encoding ${encoding.slice(0, 100)} is not supported: send the body without it.`
      )
    }
    if (Number(request.headers["content-length"] ?? 0) > maximum) return yield* problem("payload_too_large", tooLarge)
    const bytes = yield* Effect.mapError(bytesOf(request), () => problem("malformed_json", "The body could not be read."))
    if (bytes.byteLength > maximum) return yield* problem("payload_too_large", tooLarge)
    return yield* Effect.try({
      try: () => new TextDecoder("utf-8", { fatal: true }).decode(bytes),
      catch: () => problem("malformed_json", "The body is not UTF-8.")
    })
  })

const mediaType = (types: ReadonlyArray<string>) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const type = headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase()
    return type !== undefined && types.includes(type)
      ? Effect.void
      : problem("unsupported_media_type", `Send the body as ${types.join(" or ")}.`)
  })

/** The text of a JSON body. `types` are the accepted media types. */
export const read = (types: ReadonlyArray<string> = ["application/json"]) => Effect.zipRight(mediaType(types), source)

/** Decodes the text of a JSON body: work for which a caller takes a turn, unlike for reading it. */
export const decode = <A, I>(schema: Schema.Schema<A, I>): ((json: string) => Effect.Effect<A, BodyProblem>) => {
  const decoded = Schema.decodeUnknown(schema)
  return Effect.fnUntraced(function* (json: string) {
    const value = yield* parsed(json)
    const { count, tooDeep } = measured(value)
    if (tooDeep) return yield* invalidFields([fieldIssue("", "is nested too deeply")])
    return yield* Effect.mapError(decoded(value, strictFor(count)), invalidBody)
  })
}

/** Reads a JSON body and decodes it. */
export const json = <A, I>(schema: Schema.Schema<A, I>) => Effect.flatMap(read(), decode(schema))

const source = text(MAX_BODY, `A body has at most ${MAX_BODY} bytes.`)

const parsed = (json: string) =>
  Effect.try({ try: (): unknown => JSON.parse(json), catch: () => problem("malformed_json", "The body is not JSON.") })

/** The body of an operation that takes none: empty, or a JSON object without fields. Decision D-70. */
export const none: Effect.Effect<void, BodyProblem, HttpServerRequest.HttpServerRequest> = Effect.gen(function* () {
  const json = yield* source
  if (json === "") return
  yield* mediaType(["application/json"])
  const value = yield* parsed(json)
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return yield* invalidFields([fieldIssue("", "must be an object")])
  const names = Object.keys(value).slice(0, REPORTED)
  if (names.length > 0) return yield* invalidFields(names.map((name) => fieldIssue(name, UNKNOWN, "unknown_field")))
})

/** Reads a JSON body that may be left out, which is the same as an empty object, and decodes it. */
export const optional = <A, I>(schema: Schema.Schema<A, I>) =>
  Effect.flatMap(source, (json) =>
    json === "" ? decode(schema)("{}") : Effect.zipRight(mediaType(["application/json"]), decode(schema)(json))
  )

/** `OpenApi.Transform` of an operation whose body may be left out. */
export const optionalInDocument = ({ requestBody, ...operation }: Record<string, unknown>) => ({
  ...operation,
  requestBody: { ...(Predicate.isRecord(requestBody) ? requestBody : {}), required: false }
})

/** Any array, whose items are not decoded. */
const AnyArray = Schema.declare((value): value is ReadonlyArray<unknown> => Array.isArray(value), { identifier: "ReadonlyArray<unknown>" })

/**
 * A list in a body of 1 to `most` different items, `what` in plural. Its length is checked before any item is decoded.
 * Decision D-70.
 */
export const listOf = <A, I extends string>(item: Schema.Schema<A, I>, most: number, what: string, description: string) => {
  const { $schema: _, ...items } = JSONSchema.make(item.annotations({}))
  const message = `must list 1 to ${most} ${what}, each once`
  return Schema.compose(
    AnyArray.annotations({ message: () => message }).pipe(
      Schema.filter((given) => (given.length > 0 && given.length <= most && new Set(given).size === given.length) || message)
    ),
    Schema.Array(item),
    { strict: false }
  ).annotations({ jsonSchema: { type: "array", items, minItems: 1, maxItems: most, uniqueItems: true, description } })
}

const UNKNOWN = "is not a field of this body"

/** A body that does not match its schema, with every invalid field. */
const invalidBody = (error: ParseResult.ParseError) => {
  const byField = Map.groupBy(ParseResult.ArrayFormatter.formatErrorSync(error), ({ path }) => path.map(String).join("."))
  const names = [...byField.keys()]
  // An error inside a list is reported for its item; that the list may also be absent is not helpful.
  const reported = [...byField].filter(([field, issues]) => !names.some((name) => name.startsWith(`${field}.`)) || issues.some(isWritten))
  return invalidFields(reported.map(([field, issues]) => ({ in: "body", field, code: codeOf(issues), detail: detailOf(issues) })))
}

/** `invalid_body` for fields that are invalid for reasons that a schema cannot express. */
export const invalidFields = (fields: ReadonlyArray<FieldIssue>) => {
  const [first] = fields
  return problem(
    "invalid_body",
    first === undefined ? "The body does not match the contract." : `${first.field === "" ? "The body" : first.field} ${first.detail}.`,
    { fields }
  )
}

/** One invalid field of a body. */
export const fieldIssue = (field: string, detail: string, code = "invalid"): FieldIssue => ({ in: "body", field, code, detail })

type Issues = ReadonlyArray<ParseResult.ArrayFormatterIssue>

/** Whether an issue has a message written for people. */
const isWritten = ({ message }: ParseResult.ArrayFormatterIssue): boolean => /^must /.test(message)

const codeOf = (issues: Issues) =>
  issues.some(({ _tag }) => _tag === "Unexpected") ? "unknown_field" : issues.some(({ _tag }) => _tag === "Missing") ? "missing" : "invalid"

/** The everyday name of a type of the contract. */
const wordOf = (type: string): string =>
  type === "string"
    ? "a string"
    : type === "number"
      ? "a number"
      : type === "null"
        ? "null"
        : type.startsWith("ReadonlyArray<")
          ? "an array"
          : "an object"

/** What is wrong with a field: the message written for people, or what the alternatives of its type have in common. */
export const detailOf = (issues: Issues, unknown = UNKNOWN): string => {
  const code = codeOf(issues)
  if (code === "unknown_field") return unknown
  if (code === "missing") return "is missing"
  const written = issues.find(isWritten)
  if (written !== undefined) return written.message.slice(0, 300)
  const expected = issues.flatMap(({ message }) => /^Expected (.+?), actual/s.exec(message)?.[1] ?? [])
  const literals = expected.flatMap((type) => /^"(.+)"$/.exec(type)?.[1] ?? [])
  if (literals.length > 0) return `must be one of ${literals.join(", ")}`
  const words = new Set(expected.filter((type) => type !== "undefined").map(wordOf))
  return words.size === 0 ? "is not valid" : `must be ${[...words].join(" or ")}`
}
