/**
 * The error boundary: every response passes through it. It rejects requests that no route should see (a URI that is too
 * long, an `Accept` that no response can satisfy), turns every failure into the error envelope, logs defects once, and sets
 * the request id. Decision D-4.
 */

import type { HttpApp } from "@effect/platform"
import * as HttpApiError from "@effect/platform/HttpApiError"
import * as HttpServerError from "@effect/platform/HttpServerError"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Cause, Effect } from "effect"
import { isUnavailable } from "../runtime/database/unavailable.ts"
import { bodyOf, type FieldIssue, notFound, Problem, problem } from "./Problem.ts"
import { currentRequest, type RequestState, unshared } from "./RequestContext.ts"
import { asRead, lastIfUnread } from "./unread.ts"

/** Longest request target. */
const MAX_URI = 8_192
/** Most parameters of a request, and most different ones: more than any path takes, and few enough to describe. */
const MAX_PARAMETERS = 500,
  MAX_NAMES = 32
/** A query of up to this length has few parameters. */
const SHORT_QUERY = 200

/** What the error boundary needs to know about the routes behind it. */
export interface Routes<R> {
  /** Paths that need no key. */
  readonly isPublic: (path: string) => boolean
  /** Methods of a path; empty for an unknown path. */
  readonly methods: (path: string) => ReadonlyArray<string>
  /** Authentication, which comes before routing. */
  readonly authenticate: Effect.Effect<unknown, Problem, R>
  /** Whether its clients are the operator's own, who may leave unread what they like. */
  readonly isInternal?: boolean
  /** The `detail` of responses while Postgres is unavailable, if the usual one is not enough. */
  readonly unavailable?: string
}

/** The methods that routes have for a path, for 405 responses. A path with a name of its own is not one with a parameter. */
export const methodsIn = (routes: Iterable<{ readonly path: string; readonly method: string }>) => {
  const patterns = [...Map.groupBy(routes, ({ path }) => path)]
    .map(([path, found]) => ({
      parameters: path.split(":").length,
      pattern: new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`),
      methods: [...new Set(found.map(({ method }) => method))].sort()
    }))
    .sort((a, b) => a.parameters - b.parameters)
  return (path: string): ReadonlyArray<string> => patterns.find(({ pattern }) => pattern.test(path))?.methods ?? []
}

/** A request's target without its query. */
export const pathOf = (url: string): string => url.split("?", 1)[0] ?? url

/** Whether an `Accept` header accepts JSON, or one of the other types. */
export const takes = (accept: string | undefined, others: ReadonlyArray<string> = []): boolean =>
  accept === undefined ||
  accept.trim() === "" ||
  accept.split(",").some((range) => {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase())
    const quality = parameters.find((parameter) => parameter.startsWith("q="))
    return (
      ["*/*", "application/*", "application/json", "application/problem+json", ...others].includes(type) &&
      (quality === undefined || Number(quality.slice(2)) > 0)
    )
  })

/** Media types, other than JSON, that paths respond with. */
const otherTypes: Readonly<Record<string, ReadonlyArray<string>>> = { "/v1/event-feed/stream": ["text/event-stream"] }

/** Wraps the API's app so that it always returns a response. */
export const errorBoundary =
  <R>(routes: Routes<R>) =>
  <E, R2>(app: HttpApp.Default<E, R2>): HttpApp.Default<never, R | R2> =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.catchAllCause(
        request.url.length > MAX_URI
          ? Effect.fail(problem("uri_too_long", `The request target is longer than ${MAX_URI} bytes.`))
          : Effect.flatMap(app, (response) => (routes.isInternal === true ? Effect.succeed(response) : asRead(response, request.method))),
        (cause: Cause.Cause<unknown>) =>
          Effect.flatMap(currentRequest, (context) =>
            Effect.flatMap(problemOf(cause, request, context, routes), (self) => {
              const response = written(self, context)
              return routes.isInternal === true ? Effect.succeed(response) : lastIfUnread(response)
            })
          )
      )
    )

/**
 * Rejects what the contract's decoding cannot see: an `Accept` header without JSON; a `;` or `#` in the path, which the
 * router would read as the start of the query; a parameter named `__proto__`, which the framework's parameter object
 * drops; very many parameters, each of which would cost an error. Runs after authentication.
 */
export const acceptable = (
  { headers, url }: HttpServerRequest.HttpServerRequest,
  others: ReadonlyArray<string> = []
): Effect.Effect<void, Problem<"not_acceptable">> => {
  const end = url.indexOf("?")
  const path = end < 0 ? url : url.slice(0, end)
  const types = [...others, ...(otherTypes[path] ?? [])]
  if (!takes(headers.accept, types)) {
    return problem("not_acceptable", `The Accept header must allow ${["application/json", ...types].join(" or ")}.`)
  }
  if (/[;#]/.test(path)) return Effect.die(notFound())
  if (end < 0 || !(url.length - end > SHORT_QUERY || /__|%/.test(url.slice(end)))) return Effect.void
  const given = new URLSearchParams(url.slice(end))
  if (given.has("__proto__")) return Effect.die(invalidParameters([unknownParameter("__proto__")]))
  const names = [...given.keys()],
    surplus = names[MAX_PARAMETERS] ?? [...new Set(names)][MAX_NAMES]
  return surplus !== undefined
    ? Effect.die(invalidParameters([{ in: "query", field: surplus, code: "invalid_parameter", detail: "is one parameter too many" }]))
    : Effect.void
}

const written = (self: Problem, context: RequestState) =>
  HttpServerResponse.text(bodyOf(self, context.requestId), {
    status: self.status,
    contentType: "application/problem+json",
    headers: { ...unshared, ...self.headers }
  })

const problemOf = <R>(
  cause: Cause.Cause<unknown>,
  request: HttpServerRequest.HttpServerRequest,
  context: RequestState,
  routes: Routes<R>
): Effect.Effect<Problem, never, R> => {
  const error = Cause.squash(cause)
  if (error instanceof Problem) return Effect.succeed(error)
  if (error instanceof HttpApiError.HttpApiDecodeError && !context.inHandler) return Effect.succeed(decodeProblem(error, request))
  if (error instanceof HttpServerError.RouteNotFound) return unrouted(request, context, routes)
  if (isUnavailable(error)) {
    return Effect.as(
      Effect.logWarning("the database is unavailable", error),
      problem("service_unavailable", routes.unavailable ?? "The service is temporarily unavailable. Try again.", {
        headers: { "retry-after": "1" }
      })
    )
  }
  if (Cause.isInterruptedOnly(cause)) {
    return Effect.succeed(problem("service_unavailable", "The request timed out.", { headers: { "retry-after": "1" } }))
  }
  return Effect.as(Effect.logError("a request failed", cause), problem("internal_error", "The request could not be completed."))
}

/** An unknown path or method: authenticates first, then responds with 404 or 405. */
const unrouted = <R>(
  request: HttpServerRequest.HttpServerRequest,
  context: RequestState,
  routes: Routes<R>
): Effect.Effect<Problem, never, R> => {
  const path = pathOf(request.url)
  const methods = routes.methods(path)
  // A path that cannot be decoded matches a pattern but names no resource.
  const answer = (): Problem =>
    methods.length === 0 || methods.includes(request.method)
      ? notFound()
      : problem("method_not_allowed", `${request.method} is not allowed here.`, { headers: { allow: methods.join(", ") } })
  if (routes.isPublic(path)) return Effect.succeed(answer())
  return Effect.matchCauseEffect(routes.authenticate, {
    onFailure: (cause) => problemOf(cause, request, context, routes),
    onSuccess: () => Effect.succeed(answer())
  })
}

/** Parameters that do not match the contract. Path ids can be any text, so an error is always in the query. */
const decodeProblem = (error: HttpApiError.HttpApiDecodeError, request: HttpServerRequest.HttpServerRequest): Problem => {
  const query = new URLSearchParams(request.url.split("?", 2)[1])
  const byField = Map.groupBy(error.issues, (issue) => String(issue.path[0] ?? ""))
  return invalidParameters(
    [...byField].map(([field, issues]) =>
      issues.some(({ _tag, message }) => _tag === "Unexpected" || message.startsWith("Expected never"))
        ? unknownParameter(field)
        : {
            in: "query",
            field,
            code: "invalid_parameter",
            // An invalid item of a parameter that may be repeated has a place in its list.
            detail:
              query.getAll(field).length > 1 && issues.every(({ path }) => path.length === 1)
                ? "was given more than once"
                : plain(issues.map(({ message }) => message))
          }
    )
  )
}

const unknownParameter = (field: string): FieldIssue => ({
  in: "query",
  field,
  code: "unknown_parameter",
  detail: "is not a parameter of this path"
})

const invalidParameters = (fields: ReadonlyArray<FieldIssue>): Problem => {
  const unknown = fields.find((one) => one.code === "unknown_parameter")
  const first = unknown ?? fields[0]
  return problem(
    unknown === undefined ? "invalid_parameter" : "unknown_parameter",
    first === undefined ? "The request does not match the contract." : `${first.field} ${first.detail}.`,
    { fields }
  )
}

/** A schema's message about a value: the first one written for people, or the allowed values. */
const plain = (messages: ReadonlyArray<string>): string => {
  const said = messages.find((message) => /^(must|is) /.test(message))
  if (said !== undefined) return said
  const values = messages.flatMap((message) => /^Expected "([^"]+)", actual/.exec(message)?.[1] ?? [])
  return values.length === 0 ? "is not valid" : `must be one of ${values.join(", ")}`
}
