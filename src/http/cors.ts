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

const readableBy = <E, R>(origin: string, app: HttpApp.Default<E, R>): HttpApp.Default<E, R> =>
  Effect.flatMap(currentRequest, (context) => {
    context.headers["access-control-allow-origin"] = origin
    context.headers["access-control-expose-headers"] = "*"
    return app
  })

/** The response, marked so that a cache keeps one for each origin, also of those without permission. */
const variesByOrigin = (response: HttpServerResponse.HttpServerResponse) =>
  HttpServerResponse.setHeader(response, "vary", [response.headers["vary"] ?? [], "Origin"].flat().join(", "))

/** Wraps the API's app so that it answers preflights, and pages of other origins may read its answers. */
export const cors =
  ({ isPublic, origins }: CrossOrigin) =>
  <E, R>(app: HttpApp.Default<E, R>): HttpApp.Default<E, R> =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers, method, url }) => {
      const path = pathOf(url)
      if (isPublic(path)) return readableBy("*", app)
      if (origins.length === 0 || !path.startsWith("/v1/")) return app
      const { origin } = headers
      if (origin === undefined || !origins.includes(origin)) return Effect.map(app, variesByOrigin)
      const asks = method === "OPTIONS" && headers["access-control-request-method"] !== undefined
      return Effect.map(readableBy(origin, asks ? HttpServerResponse.empty({ status: 204, headers: preflight }) : app), variesByOrigin)
    })
