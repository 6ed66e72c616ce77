/**
 * The error envelope: RFC 9457 `application/problem+json` on every response that is not 2xx. Each code has one status and
 * one title, defined here. A handler fails with a {@link Problem} whose code is in its contract, and the error boundary
 * (errorBoundary.ts) writes it. Spec: Errors 1. Decision D-4.
 */
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import { Data, Schema } from "effect"

/** Codes of the web portal only; the API's documentation leaves them out. */
export const portalCodes = {
  signed_out: [401, "Not signed in"],
  sign_in_failed: [401, "The sign-in failed"],
  second_factor_required: [403, "A second factor is required"],
  second_factor_failed: [403, "The second factor is not valid"],
  foreign_origin: [403, "The request comes from another origin"],
  invitation_refused: [409, "The user cannot be invited"],
  invitation_invalid: [410, "The invitation is not valid"],
  password_reset_refused: [409, "Passwords are not reset by e-mail"],
  password_reset_invalid: [410, "The link is not valid"],
  passkey_limit_reached: [409, "The account has as many passkeys as it can have"],
  delivery_ended: [409, "The delivery has ended"],
  webhook_paused: [409, "The webhook is paused"],
  misdirected_request: [421, "The portal is not served at this address"]
} as const satisfies Record<string, readonly [number, string]>

/** Every code with its status and its title. */
export const codes = {
  invalid_parameter: [400, "A parameter is not valid"],
  unknown_parameter: [400, "A parameter is unknown"],
  invalid_cursor: [400, "The cursor is not valid for this list"],
  malformed_json: [400, "The body is not JSON"],
  invalid_body: [400, "The body does not match the contract"],
  missing_credentials: [401, "No API key was sent"],
  invalid_api_key: [401, "The API key is not valid"],
  expired_api_key: [401, "The API key has expired"],
  revoked_api_key: [401, "The API key was revoked"],
  ip_not_allowed: [403, "The API key is not allowed from this address"],
  insufficient_scope: [403, "The API key lacks a required scope"],
  owner_required: [403, "An owner-level API key is required"],
  not_found: [404, "Resource not found"],
  method_not_allowed: [405, "Method not allowed"],
  not_acceptable: [406, "Responses are JSON only"],
  webhook_limit_reached: [409, "The entity has as many webhooks as can cover it"],
  webhook_disabled: [409, "The webhook is disabled"],
  recovery_running: [409, "A recovery of the webhook is running"],
  recovery_ended: [409, "The recovery has ended"],
  not_sealed: [409, "A day is not sealed"],
  rotation_limit_reached: [409, "Too many active secrets"],
  redelivery_limit_reached: [409, "The event has as many deliveries as can be redelivered"],
  idempotency_in_progress: [409, "A request with this idempotency key is still in progress"],
  cursor_expired: [410, "The cursor is older than the log"],
  cursor_gone: [410, "The log has another event at the cursor's place"],
  payload_too_large: [413, "The body is too large"],
  uri_too_long: [414, "The URI is too long"],
  unsupported_media_type: [415, "The body must be JSON"],
  url_not_deliverable: [422, "The URL cannot be delivered to"],
  idempotency_key_reused: [422, "The idempotency key was used for another request"],
  too_many_rows: [422, "Too many rows match"],
  too_many_exports: [429, "Too many exports are running"],
  rate_limited: [429, "Too many requests"],
  too_many_failed_auth: [429, "Too many failed authentications"],
  too_many_streams: [429, "Too many streams are open"],
  internal_error: [500, "Internal error"],
  service_unavailable: [503, "Service unavailable"],
  ...portalCodes
} as const satisfies Record<string, readonly [number, string]>

/** A stable code of an error, in snake_case. */
export type Code = keyof typeof codes

/** The codes of the API. */
export const apiCodes = (Object.keys(codes) as ReadonlyArray<Code>).filter((code) => !Object.hasOwn(portalCodes, code))

const text = (description: string, example: string) => Schema.String.annotations({ description, examples: [example] })

/** One invalid field: where it is, its name or path, a code, and a sentence. */
export const FieldIssue = Schema.Struct({
  in: Schema.Literal("path", "query", "header", "body").annotations({ description: "The part of the request" }),
  field: text("Name of the parameter, or path in the body", "eventKinds.0"),
  code: text("What kind of error it is", "invalid"),
  detail: text("What is expected", "must be one of transaction.pending, transaction.confirmed")
}).annotations({ identifier: "FieldIssue" })
export type FieldIssue = typeof FieldIssue.Type

/**
 * An error that the client gets. `detail` is a sentence for people and reveals nothing about internals; `headers` are
 * added to the response (`Retry-After`, `Allow`, `WWW-Authenticate`).
 */
export class Problem<C extends Code = Code> extends Data.TaggedError("Problem")<{
  readonly code: Code
  readonly detail: string
  readonly fields?: ReadonlyArray<FieldIssue>
  readonly headers?: Readonly<Record<string, string>>
  /** Further members of the body. */
  readonly members?: Readonly<Record<string, string>>
}> {
  /** Distinguishes problems of different codes for the type checker. */
  declare readonly _code: C
  get status(): number {
    return codes[this.code][0]
  }
  override get message() {
    return `${this.code}: ${this.detail}`
  }
}

/** The problems of some codes as a union, so that a wider contract accepts a narrower failure. */
export type ProblemOf<C extends Code> = C extends Code ? Problem<C> : never

/** A problem of one code. */
export const problem = <C extends Code>(
  code: C,
  detail: string,
  more: {
    readonly fields?: ReadonlyArray<FieldIssue>
    readonly headers?: Readonly<Record<string, string>>
    readonly members?: Readonly<Record<string, string>>
  } = {}
): Problem<C> => new Problem<C>({ code, detail, ...more })

/** The only 404: unknown, hidden and malformed ids get byte-identical responses. Spec: Errors 3. */
export const notFound = (): Problem<"not_found"> => problem("not_found", "The resource does not exist, or this API key cannot access it.")

/** A session of the portal has ended. The API's contract has no such error: its requests have no session. */
export const signedOut = (): Problem<"signed_out"> => problem("signed_out", "Sign in to continue.")

/** The body of a problem, as it goes over the wire. */
export const bodyOf = (self: Problem, requestId: string): string => {
  const [status, title] = codes[self.code]
  return JSON.stringify({
    type: `/v1/docs/errors/${self.code}`,
    title,
    status,
    detail: self.detail,
    code: self.code,
    requestId,
    ...self.members,
    ...(self.fields === undefined || self.fields.length === 0 ? {} : { errors: self.fields })
  })
}

/** The body of every problem of the API. */
export const ProblemBody = Schema.Struct({
  type: text("Documentation of the code", "/v1/docs/errors/not_found"),
  title: text("Short description of the code", "Resource not found"),
  status: Schema.Int.annotations({ jsonSchema: { type: "integer", description: "HTTP status of the response", examples: [404] } }),
  detail: text("What is wrong with this request", "The resource does not exist, or this API key cannot access it."),
  code: Schema.String.annotations({
    jsonSchema: {
      type: "string",
      "x-extensible-enum": apiCodes,
      description: "Stable code of the error. Values may be added.",
      examples: ["not_found"]
    }
  }),
  requestId: text("The request's id, as in X-Request-Id", "req_01jz0000000000000000000000"),
  errors: Schema.optional(Schema.Array(FieldIssue).annotations({ description: "The invalid fields, if any" })),
  oldestCursor: Schema.optional(
    text("With `cursor_expired`: the oldest cursor of the event feed that is valid", "mVb0rJ3cYw1n9XkQ5uTzHs7dLqEa2fGiPo4RvNxByC8KtMjZ")
  ),
  firstDate: Schema.optional(
    text("With `not_sealed`, if the period ends before the vault's first statement: the first statement's day", "2025-03-18")
  )
}).annotations({ identifier: "Problem", title: "Problem" })

/**
 * The schema of the problems of some codes that share a status, for a contract's `addError`. It carries the
 * codes into the OpenAPI document, where all have the schema of {@link ProblemBody}, and lets the typed client decode the body back into a {@link Problem}.
 */
export const problems = <const Codes extends readonly [Code, ...ReadonlyArray<Code>]>(identifier: string, ...list: Codes) => {
  const [status] = codes[list[0]]
  const wire = Schema.Struct({ ...ProblemBody.fields, status: Schema.Literal(status), code: Schema.Literal(...list) }).annotations({
    identifier
  })
  const self = Schema.declare(
    (value): value is ProblemOf<Codes[number]> => value instanceof Problem && list.some((code) => code === value.code)
  )
  return Schema.transform(wire, self, {
    strict: true,
    // The body has one of the codes, so the problem is one of theirs.
    decode: ({ code, detail, errors }) => problem(code, detail, errors === undefined ? {} : { fields: errors }) as ProblemOf<Codes[number]>,
    encode: (value) => ({
      type: "",
      title: "",
      status,
      detail: value.detail,
      code: value.code as Codes[number],
      requestId: ""
    })
  })
    .annotations(
      HttpApiSchema.annotations({
        status,
        description: list.map((code) => codes[code][1]).join(", or: ")
      })
    )
    .pipe(HttpApiSchema.withEncoding({ kind: "Json", contentType: "application/problem+json" }))
}

/** 400 of lists. */
export const InvalidList = problems("InvalidList", "invalid_parameter", "unknown_parameter", "invalid_cursor")
/** 400 of single resources. */
export const InvalidRequest = problems("InvalidRequest", "invalid_parameter", "unknown_parameter")
