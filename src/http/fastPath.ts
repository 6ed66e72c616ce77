/**
 * The fast path: calls the handler of a hot read without the framework's router. It is derived from the contract's
 * endpoint and accepts a request only in its plainest form: the path with a plain id, and a query without escapes that
 * decodes with the contract's schema. Everything else, including errors, is left to the framework, so the fast path adds
 * speed and no behavior. Both use the same authorization, handler and error boundary.
 */

import type { HttpApp, HttpServerResponse } from "@effect/platform"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Context, Effect, Either, Schema } from "effect"
import type { Problem } from "./Problem.ts"

/** A hot read. */
export interface FastPath<Caller, Query, QueryText> {
  /** The path in the contract, with one id or none: `/v1/vaults/:vaultId/transactions`. */
  readonly path: string
  readonly query: Schema.Schema<Query, QueryText>
  /** The authorization that the route's middleware does. */
  readonly authorize: Effect.Effect<Caller, Problem, HttpServerRequest.HttpServerRequest>
  /** `id` is empty if the path has none. */
  readonly handle: (caller: Caller, id: string, query: Query) => Effect.Effect<HttpServerResponse.HttpServerResponse, Problem>
}

/** Most parameters that are decoded here, before the caller is known; more than any hot read has. */
const MAX_PARAMETERS = 16

/** Ids and query texts that every parser reads the same way. */
const ID = "(?<id>[A-Za-z0-9_-]{1,100})",
  QUERY = "(?:\\?(?<text>[A-Za-z0-9_=&.:-]*))?"

/** An app that handles plain requests of a hot read and passes every other one on. */
export const fastPath = <Caller, Query, QueryText>({ authorize, handle, path, query }: FastPath<Caller, Query, QueryText>) => {
  const pattern = new RegExp(`^${path.replace(/:\w+/, ID)}${QUERY}$`)
  const decode = Schema.decodeUnknownEither(query)
  /** The parameters of a plain query; undefined when one is given twice or without a value. */
  const parameters = (text: string): Record<string, string> | undefined => {
    const found: Record<string, string> = {}
    if (text === "") return found
    const pairs = text.split("&", MAX_PARAMETERS + 1)
    if (pairs.length > MAX_PARAMETERS) return undefined
    for (const pair of pairs) {
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
        const { id = "", text = "" } = match?.groups ?? {}
        const given = match === null ? undefined : parameters(text)
        const read = given === undefined ? undefined : decode(given)
        return read === undefined || Either.isLeft(read)
          ? app
          : serve(Effect.flatMap(authorize, (caller) => handle(caller, id, read.right)))
      })
}
