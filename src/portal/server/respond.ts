/** Builds the portal's own routes, typed by its contract, and their common responses. */
import * as Cookies from "@effect/platform/Cookies"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Data, Effect, type Schema } from "effect"
import * as Body from "../../http/Body.ts"
import { notFound, problem } from "../../http/Problem.ts"
import { isStorable } from "../../values/givenId.ts"
import type { PortalRoutes } from "./PortalRoutes.ts"

/** A JSON response, with the sign-in library's cookies if there are any. */
export const jsonResponse = (body: unknown, cookies: ReadonlyArray<string> = []): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.mergeCookies(HttpServerResponse.unsafeJson(body), Cookies.fromSetCookie([...cookies]))

/** A response that sets cookies. */
class WithCookies<A> extends Data.Class<{ readonly answer: A; readonly cookies: ReadonlyArray<string> }> {}
/** A response with the sign-in library's cookies. */
export const withCookies = <A>(answer: A, cookies: ReadonlyArray<string>) => new WithCookies({ answer, cookies })

type RoutesWithBody = { [N in keyof PortalRoutes]: PortalRoutes[N] extends { body: unknown } ? N : never }[keyof PortalRoutes]
type Answer<R extends keyof PortalRoutes> = PortalRoutes[R]["answer"]
type Handler<R extends keyof PortalRoutes, E, Q> = Effect.Effect<Answer<R> | WithCookies<Answer<R>>, E, Q>

const added = <R extends keyof PortalRoutes, E, Q>(name: R, handle: Handler<R, E, Q>) => {
  // The contract's names are a method and a path.
  const [method, path] = name.split(" ") as ["GET" | "POST" | "PATCH" | "DELETE", HttpRouter.PathInput]
  return HttpRouter.route(method)(
    path,
    Effect.map(handle, (given) => (given instanceof WithCookies ? jsonResponse(given.answer, given.cookies) : jsonResponse(given)))
  )
}

/** Adds a route of the contract without a body. */
export const route = <R extends Exclude<keyof PortalRoutes, RoutesWithBody>, E, Q>(name: R, handle: Handler<R, E, Q>) => added(name, handle)

/** Adds a route of the contract with a body, which `handle` reads when it needs it. */
export const routeWithBody = <R extends RoutesWithBody, A, E, Q>(
  name: R,
  schema: Schema.Schema<A, PortalRoutes[R]["body"]>,
  handle: (body: ReturnType<typeof Body.json<A, PortalRoutes[R]["body"]>>) => Handler<R, E, Q>
) => added(name, handle(Body.json(schema)))

/** The response to a change. */
export const done = { done: true } as const

/** A `rate_limited` error with the time until a retry. */
export const tooMany = (what: string, seconds: number) => {
  const minutes = Math.ceil(seconds / 60)
  const wait = minutes === 1 ? "a minute" : minutes <= 120 ? `${minutes} minutes` : `${Math.ceil(minutes / 60)} hours`
  return problem("rate_limited", `${what} Try again in ${wait}.`, { headers: { "retry-after": String(seconds) } })
}

/** The `id` in a path. */
export const pathId = Effect.flatMap(HttpRouter.params, ({ id }) => (id === undefined || !isStorable(id) ? notFound() : Effect.succeed(id)))

/** A query parameter; empty if absent. */
export const parameter = (name: string) =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) => new URLSearchParams(url.split("?", 2)[1]).get(name) ?? "")
