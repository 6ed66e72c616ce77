/** Errors of calls: the API's problems by code, and missing or unusable responses. */
import type { FieldIssue } from "./generated/custody.ts"
import type { ErrorCode, OperationErrors } from "./generated/operations.ts"

/** The content of an API error (RFC 9457). */
export interface Problem<Code extends string = string> {
  readonly code: Code
  readonly status: number
  readonly title: string
  readonly detail: string
  /** Id of the request in the service's log: give it to support. */
  readonly requestId: string
  /** The invalid fields, if any. */
  readonly errors: ReadonlyArray<FieldIssue>
  /** For `cursor_expired` and `cursor_gone`: the oldest cursor of the event feed to resume from. */
  readonly oldestCursor?: string | undefined
  /** For `not_sealed`, if the period ends before the vault's first statement: that statement's day, as YYYY-MM-DD. */
  readonly firstDate?: string | undefined
}

/** The API returned an error. `code` says why; {@link isCustodyError} narrows it. */
export class CustodyError<Code extends string = ErrorCode> extends Error implements Problem<Code> {
  override readonly name = "CustodyError"
  readonly code: Code
  readonly status: number
  readonly title: string
  readonly detail: string
  readonly requestId: string
  readonly errors: ReadonlyArray<FieldIssue>
  readonly oldestCursor: string | undefined
  readonly firstDate: string | undefined
  /** Seconds to wait before a retry, if the API sent `Retry-After`. */
  readonly retryAfter: number | undefined

  constructor(problem: Problem<Code>, retryAfter?: number) {
    super(`${problem.code}: ${problem.detail} (request ${problem.requestId})`)
    this.code = problem.code
    this.status = problem.status
    this.title = problem.title
    this.detail = problem.detail
    this.requestId = problem.requestId
    this.errors = problem.errors
    this.oldestCursor = problem.oldestCursor
    this.firstDate = problem.firstDate
    this.retryAfter = retryAfter
  }
}

/**
 * No usable response: `network` if there was no connection or it broke, `timeout`, `aborted` by the caller, or
 * `unexpected_answer` if the response is not the API's, such as a proxy's page.
 */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError"
  readonly reason: "network" | "timeout" | "aborted" | "unexpected_answer"
  /** Status of an unexpected response. */
  readonly status: number | undefined

  constructor(reason: NoAnswerError["reason"], message: string, options: { readonly cause?: unknown; readonly status?: number } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.reason = reason
    this.status = options.status
  }
}

/** A verification was not possible; `message` is the reason. */
export class NotVerifiable extends Error {
  override readonly name = "NotVerifiable"
}

/** Whether an error is the API's, optionally with one of these codes. */
export const isCustodyError = <Code extends ErrorCode = ErrorCode>(
  error: unknown,
  ...codes: ReadonlyArray<Code>
): error is CustodyError<Code> => error instanceof CustodyError && (codes.length === 0 || codes.some((code) => code === error.code))

/** Whether an error is the API's response to an operation: narrows `code` to those of the operation. */
export const isErrorOf = <Name extends keyof OperationErrors>(
  error: unknown,
  _operation: Name
): error is CustodyError<OperationErrors[Name]> => error instanceof CustodyError
