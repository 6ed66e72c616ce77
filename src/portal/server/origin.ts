/**
 * The portal's origin, and whether a request comes from its own pages. Cookies belong to an origin, so there is exactly
 * one: `PORTAL_BASE_URL`, or the loopback address of the request on a developer's machine. Decision D-45.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Effect } from "effect"
import { problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { isLoopback } from "../../runtime/settings/readers.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import type { Values } from "../../runtime/settings/table.ts"

/** The portal's base path on the public listener. */
export const PATH = "/portal"

/**
 * The portal's URL for links: `PORTAL_BASE_URL`, or `localhost` if the service listens on loopback or all addresses
 * (passkeys need a name, not an IP address); otherwise the configured host, where the portal is served once
 * `PORTAL_BASE_URL` names it.
 */
export const addressOf = ({ host, port, portalBaseUrl, tlsCertFile }: Values, portInUse = port): string => {
  // If the port is chosen at startup, only a path is known.
  if (portalBaseUrl === undefined && portInUse === 0) return PATH
  const name = ["127.0.0.1", "::1", "0.0.0.0", "::"].includes(host) ? "localhost" : host.includes(":") ? `[${host}]` : host
  return `${portalBaseUrl ?? `${tlsCertFile === undefined ? "http" : "https"}://${name}:${portInUse}`}${PATH}`
}

/** Headers that proxies add. */
const FORWARDED = /^(forwarded|via|x-real-ip|x-forwarded-.+)$/

/**
 * The service's origin for this request; undefined if no setting confirms the requested name. Without `PORTAL_BASE_URL`
 * the portal only serves the machine itself: the client is on loopback, without a proxy, and `Host` is a loopback name in
 * canonical spelling. `Host` alone proves nothing: anyone can set it.
 */
export const originOf = Effect.gen(function* () {
  const { portalBaseUrl, tlsCertFile } = yield* Settings
  if (portalBaseUrl !== undefined) return portalBaseUrl
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { client } = yield* currentRequest
  if (client?.range() !== "loopback" || Object.keys(headers).some((name) => FORWARDED.test(name))) return undefined
  const host = headers["host"] ?? ""
  const text = `${tlsCertFile === undefined ? "http" : "https"}://${host}`
  const asked = URL.canParse(text) ? new URL(text) : undefined
  return asked !== undefined && asked.host === host && isLoopback(asked.hostname) ? asked.origin : undefined
})

/** Whether `Host` names an origin. Browsers leave out the default port. */
const names = (host: string, origin: string): boolean => {
  const text = `${new URL(origin).protocol}//${host}`
  return /^[^/?#@\\]+$/.test(host) && URL.canParse(text) && new URL(text).origin === origin
}

/** The portal's origin, or the error that it is not served here, which says where it is. */
export const requireOrigin = Effect.gen(function* () {
  const origin = yield* originOf
  if (origin === undefined)
    return yield* problem("misdirected_request", "The portal is served at this address only if PORTAL_BASE_URL is set to it.")
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  if (names(headers["host"] ?? "", origin)) return origin
  return yield* problem(
    "misdirected_request",
    `The portal is at ${origin}${PATH}. A proxy in front of the service must pass on the Host header.`
  )
})

/**
 * Rejects changes that do not come from the portal's own pages. Browsers send the origin of every such request and let no
 * page forge it; the extra header requires a preflight across origins, which the portal never accepts.
 */
export const requireOwnPage = (origin: string) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const site = headers["sec-fetch-site"]
    const own = headers["origin"] === origin && (site === undefined || site === "same-origin") && headers["x-portal"] === "1"
    return own ? Effect.void : problem("foreign_origin", "The request does not come from a page of the portal.")
  })
