/**
 * JSON bodies: read within the limit, strictly as UTF-8, and decoded against the contract; every field at fault is
 * told. A field that the contract does not have is refused, so a misspelt one never passes unnoticed. Decision D-4.
 */
import { HttpServerRequest } from "@effect/platform"
import { Effect, ParseResult, Schema } from "effect"
import { type FieldIssue, type ProblemOf, problem, problems } from "./Problem.ts"

/** Largest body of the public API, in bytes. */
export const MAX_BODY = 64 * 1024

/** 400 of paths with a body. */
export const InvalidBody = problems("InvalidBody", "malformed_json", "invalid_body", "invalid_parameter", "unknown_parameter")
/** 413 of paths with a body. */
export const PayloadTooLarge = problems("PayloadTooLarge", "payload_too_large")
/** 415 of paths with a body. */
export const UnsupportedMediaType = problems("UnsupportedMediaType", "unsupported_media_type")

/** How a body can fail to be read. */
export type BodyProblem = ProblemOf<"malformed_json" | "invalid_body" | "payload_too_large" | "unsupported_media_type">

const tooLarge = () => problem("payload_too_large", `A body has at most ${MAX_BODY} bytes.`)

/** The text of the request's body. A request without one gives the empty text. */
export const text = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (Number(request.headers["content-length"] ?? 0) > MAX_BODY) return yield* tooLarge()
  const bytes = yield* Effect.mapError(request.arrayBuffer, () => problem("malformed_json", "The body could not be read."))
  if (bytes.byteLength > MAX_BODY) return yield* tooLarge()
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

/**
 * Reads a JSON body and decodes it. `types` are the media types that are taken. Returns the value and the text that
 * it came from.
 */
export const json = <A, I>(
  schema: Schema.Schema<A, I>,
  types: ReadonlyArray<string> = ["application/json"]
): Effect.Effect<A, BodyProblem, HttpServerRequest.HttpServerRequest> => {
  const decode = Schema.decodeUnknown(schema, { onExcessProperty: "error", errors: "all" })
  return Effect.gen(function* () {
    yield* mediaType(types)
    const source = yield* text
    const value = yield* Effect.try({
      try: (): unknown => JSON.parse(source),
      catch: () => problem("malformed_json", "The body is not JSON.")
    })
    return yield* Effect.mapError(decode(value), invalidBody)
  })
}

/** A body that does not match its schema, with every field at fault. */
const invalidBody = (error: ParseResult.ParseError) => {
  const fields = new Map<string, FieldIssue>()
  for (const issue of ParseResult.ArrayFormatter.formatErrorSync(error)) {
    const field = issue.path.map(String).join(".")
    const known = fields.get(field)
    const detail = detailOf(issue)
    // A union reports each of its members; the sentence that was written for people is the one to keep.
    if (known === undefined || (!/^must /.test(known.detail) && /^must /.test(detail))) {
      fields.set(field, { in: "body", field, code: codeOf(issue._tag), detail })
    }
  }
  return invalidFields([...fields.values()])
}

/** `invalid_body` for fields that are at fault for reasons that a schema cannot know. */
export const invalidFields = (fields: ReadonlyArray<FieldIssue>) => {
  const [first] = fields
  return problem(
    "invalid_body",
    first === undefined ? "The body does not match the contract." : `${first.field === "" ? "The body" : first.field} ${first.detail}.`,
    { fields }
  )
}

/** One field of a body that is at fault. */
export const fieldIssue = (field: string, detail: string, code = "invalid"): FieldIssue => ({ in: "body", field, code, detail })

const codeOf = (tag: string) => (tag === "Unexpected" ? "unknown_field" : tag === "Missing" ? "missing" : "invalid")

const detailOf = ({ _tag, message }: ParseResult.ArrayFormatterIssue): string => {
  if (_tag === "Unexpected") return "is not a field of this body"
  if (_tag === "Missing") return "is missing"
  if (/^must /.test(message)) return message.slice(0, 300)
  const expected = /^Expected (.+?), actual/s.exec(message)?.[1]
  return expected === undefined || expected.length > 200
    ? "does not fit"
    : `must be ${expected.replaceAll('"', "").replaceAll(" | ", " or ")}`
}
