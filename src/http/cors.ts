/**
 * Requests from pages of other origins. Browsers let such a page read an answer only if the answer names its origin, and ask
 * first, without the key, whether a request with a key may be sent (preflight). Decision D-71.
 */
import type { HttpApp } from "@effect/platform"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import { pathOf } from "./errorBoundary.ts"
import { currentRequest } from "./RequestContext.ts"

const preflight = {
  "access-control-allow-methods": "GET, HEAD, POST, PATCH, DELETE",
  // A wildcard would not cover the key's header.
  "access-control-allow-headers": "authorization, content-type, idempotency-key, last-event-id, x-request-id",
  "access-control-max-age": "7200"
}

/** Which pages may read answers. */
export interface CrossOrigin {
  /** Origins that may call the API with a key. */
  readonly origins: ReadonlyArray<string>
  /** Whether a path answers without a key: pages of any origin may read it. */
  readonly isPublic: (path: string) => boolean
}

/** Wraps the API's app so that it answers preflights, and pages of other origins may read its answers. */
export const cors =
  ({ isPublic, origins }: CrossOrigin) =>
  <E, R>(app: HttpApp.Default<E, R>): HttpApp.Default<E, R> =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
      const path = pathOf(request.url)
      const { origin } = request.headers
      const allowed = isPublic(path)
        ? "*"
        : origin !== undefined && path.startsWith("/v1/") && origins.includes(origin)
          ? origin
          : undefined
      if (allowed === undefined) return app
      return Effect.flatMap(currentRequest, ({ headers }): HttpApp.Default<E, R> => {
        headers["access-control-allow-origin"] = allowed
        headers["access-control-expose-headers"] = "*"
        const asks = request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined && allowed !== "*"
        return asks ? HttpServerResponse.empty({ status: 204, headers: preflight }) : app
      })
    })
