/**
 * Where the portal is, as browsers see it, and whether a request comes from its own pages. Cookies are tied to an
 * origin, so there is exactly one: `PORTAL_BASE_URL`, or on a developer's machine the loopback address in use.
 * Decision D-45.
 */
import { HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { problem } from "../http/Problem.ts"
import { currentRequest } from "../http/RequestContext.ts"
import { isLoopback } from "../settings/readers.ts"
import { Settings } from "../settings/Settings.ts"
import type { Values } from "../settings/table.ts"

/** The portal's own path on the public listener. */
export const PATH = "/portal"

/**
 * The portal's address, for links: under `PORTAL_BASE_URL`, or under `localhost` where the
 * service listens on the loopback or everywhere (passkeys need a name, no bare address does); otherwise it names the
 * host that is set, under which the portal answers once `PORTAL_BASE_URL` says so.
 */
export const addressOf = ({ host, port, portalBaseUrl, tlsCertFile }: Values, portInUse = port): string => {
  // Where the port is taken when the service starts, only a path can be told.
  if (portalBaseUrl === undefined && portInUse === 0) return PATH
  const name = ["127.0.0.1", "::1", "0.0.0.0", "::"].includes(host) ? "localhost" : host.includes(":") ? `[${host}]` : host
  return `${portalBaseUrl ?? `${tlsCertFile === undefined ? "http" : "https"}://${name}:${portInUse}`}${PATH}`
}

/** What a proxy adds to the requests that it passes on. */
const FORWARDED = ["forwarded", "x-forwarded-for", "x-forwarded-host", "via"]

/**
 * The portal's origin for this request; undefined when it was requested under a name that no setting confirms. Without
 * `PORTAL_BASE_URL` the portal is for the machine itself: the client is on the loopback, no proxy is in between, and the
 * `Host` is a loopback name in its canonical spelling. A `Host` alone proves nothing: anybody can write one.
 */
const originOf = Effect.gen(function* () {
  const { portalBaseUrl, tlsCertFile } = yield* Settings
  if (portalBaseUrl !== undefined) return portalBaseUrl
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { client } = yield* currentRequest
  if (client?.range() !== "loopback" || FORWARDED.some((name) => headers[name] !== undefined)) return undefined
  const host = headers["host"] ?? ""
  const text = `${tlsCertFile === undefined ? "http" : "https"}://${host}`
  const asked = URL.canParse(text) ? new URL(text) : undefined
  return asked !== undefined && asked.host === host && isLoopback(asked.hostname) ? asked.origin : undefined
})

/** The portal's origin, or the answer that there is no portal here. */
export const requireOrigin = Effect.flatMap(originOf, (origin) =>
  origin === undefined
    ? problem("misdirected_request", "The portal answers here only when PORTAL_BASE_URL names this address.")
    : Effect.succeed(origin)
)

/**
 * Refuses a change that does not come from one of the portal's own pages. A browser tells the origin of every request
 * that changes something and lets no page forge it; the extra header cannot be sent across origins without asking
 * first, which nothing here answers.
 */
export const requireOwnPage = (origin: string) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const site = headers["sec-fetch-site"]
    const own = headers["origin"] === origin && (site === undefined || site === "same-origin") && headers["x-portal"] === "1"
    return own ? Effect.void : problem("foreign_origin", "The request does not come from a page of the portal.")
  })
