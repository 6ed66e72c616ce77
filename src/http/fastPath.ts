/**
 * The fast path: the way of a hot read from the request to its handler without the framework's router. A fast path is
 * made from the contract's endpoint and takes the request only in its plainest form: the path with a plain id, a query
 * without escapes that decodes by the contract's schema. Whatever is not plain, and whatever is at fault, goes the
 * framework's way, which answers it; so it adds speed and no behaviour. Authorization, handler and error boundary are the
 * very same on both.
 */
import { type HttpApp, HttpServerRequest, type HttpServerResponse } from "@effect/platform"
import { Context, Effect, Either, Schema } from "effect"
import type { Problem } from "./Problem.ts"

/** A hot read. */
export interface FastPath<Caller, Query, QueryText> {
  /** Path as the contract writes it, with one id: `/v1/vaults/:vaultId/transactions`. */
  readonly path: string
  readonly query: Schema.Schema<Query, QueryText>
  /** Who may, as the route's middleware says. */
  readonly authorize: Effect.Effect<Caller, Problem, HttpServerRequest.HttpServerRequest>
  readonly handle: (caller: Caller, id: string, query: Query) => Effect.Effect<HttpServerResponse.HttpServerResponse, Problem>
}

/** Ids and query texts that mean the same to every parser. */
const ID = "([A-Za-z0-9_-]{1,100})",
  QUERY = "(?:\\?([A-Za-z0-9_=&.:-]*))?"

/** An app that takes the plain requests of a hot read and hands every other one on. */
export const fastPath = <Caller, Query, QueryText>({ authorize, handle, path, query }: FastPath<Caller, Query, QueryText>) => {
  const pattern = new RegExp(`^${path.replace(/:\w+/, ID)}${QUERY}$`)
  const decode = Schema.decodeUnknownEither(query)
  /** The parameters of a plain query; undefined when one is given twice or without a value. */
  const parameters = (text: string): Record<string, string> | undefined => {
    const found: Record<string, string> = {}
    if (text === "") return found
    for (const pair of text.split("&")) {
      const at = pair.indexOf("=")
      const name = pair.slice(0, at)
      if (at < 1 || at === pair.length - 1 || Object.hasOwn(found, name) || name.includes("__")) return undefined
      found[name] = pair.slice(at + 1)
    }
    return found
  }

  return <E, R>(serve: (self: HttpApp.Default<Problem>) => HttpApp.Default<E, R>) =>
    <E2, R2>(app: HttpApp.Default<E2, R2>): HttpApp.Default<E | E2, R | R2> =>
      Effect.withFiberRuntime<HttpServerResponse.HttpServerResponse, E | E2, R | R2 | HttpServerRequest.HttpServerRequest>((fiber) => {
        const request = Context.unsafeGet(fiber.currentContext, HttpServerRequest.HttpServerRequest)
        const match = request.method === "GET" ? pattern.exec(request.url) : null
        const [, id = "", text = ""] = match ?? []
        const given = match === null ? undefined : parameters(text)
        const read = given === undefined ? undefined : decode(given)
        return read === undefined || Either.isLeft(read)
          ? app
          : serve(Effect.flatMap(authorize, (caller) => handle(caller, id, read.right)))
      })
}
