/**
 * Which URLs a webhook may have. The parsed host is checked, so that no spelling of an address gets through: the parser
 * turns `2130706433`, `0x7f.1` and `①②⑦.0.0.1` into 127.0.0.1 first. This is only the first check: every attempt checks
 * what the name resolves to (sending/request/ssrfGuard.ts). Spec: Webhook, URL. Decision D-30.
 */
import { Either } from "effect"
import ipaddr from "ipaddr.js"
import * as Format from "../../runtime/settings/Format.ts"

/** Hosts and ports that the operator allows in addition to the public internet. */
export interface Allowed {
  readonly cidrs: ReadonlyArray<Format.Cidr>
  readonly ports: ReadonlyArray<number>
}

/** A rejected URL: for its form (`invalid_body`), or for its host or port (`url_not_deliverable`). */
export interface RefusedUrl {
  readonly code: "invalid_body" | "url_not_deliverable"
  readonly detail: string
}

/** The allowed ports, each once: two always, and those that the operator adds. */
export const portsOf = ({ ports }: Pick<Allowed, "ports">): ReadonlyArray<number> => [...new Set([443, 8443, ...ports])]

const MAX_LENGTH = 2_048
/** Longest host name, in characters. */
const MAX_HOST = 253
const label = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/

const malformed = (detail: string) => Either.left<RefusedUrl>({ code: "invalid_body", detail })
const undeliverable = (detail: string) => Either.left<RefusedUrl>({ code: "url_not_deliverable", detail })

/** The host of a URL as an IP address, if it is one; without the brackets of IPv6. */
const literalOf = (hostname: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined => Format.address(hostname.replace(/^\[(.*)\]$/, "$1"))

const LOOPBACK = [ipaddr.parse("127.0.0.1"), ipaddr.parse("::1")] as const

/** Whether an IP address or `localhost` is within what the operator allows. */
const allowedHost = (hostname: string, { cidrs }: Allowed): boolean => {
  const literal = literalOf(hostname)
  if (literal !== undefined) return Format.holds(cidrs, literal)
  return hostname === "localhost" && LOOPBACK.some((address) => Format.holds(cidrs, address))
}

/** The host of a stored URL, for people; a URL older than the rules may have none. */
export const hostOf = (text: string): string => (URL.canParse(text) ? new URL(text).hostname : "a URL without a host")

/** A URL's origin for people: its path and query may contain a secret of the endpoint. */
export const originOf = (text: string) => (URL.canParse(text) ? `${new URL(text).origin}/…` : "a URL without a host")

/** The URL to store, or why it is rejected. */
export const check = (text: string, allowed: Allowed): Either.Either<string, RefusedUrl> => {
  if (text.length > MAX_LENGTH) return malformed(`must have at most ${MAX_LENGTH} characters`)
  // The parser silently drops white space, control and invisible characters, so a URL with any would not mean what its
  // author sees.
  if (/[\s\p{Cc}\p{Cf}\\]/u.test(text)) return malformed("must not have spaces, backslashes or invisible characters")
  if (!URL.canParse(text)) return malformed("must be a URL")
  const url = new URL(text)
  if (url.protocol !== "https:") return malformed("must start with https://")
  if (!/^https:\/\/[^/]/i.test(text)) return malformed("must start with https:// and a host")
  if (url.username !== "" || url.password !== "" || /^https:\/\/[^/?#]*@/i.test(text))
    return malformed("must not carry a user name or password")
  if (text.includes("#")) return malformed("must not have a fragment")
  if (url.href.length > MAX_LENGTH) return malformed(`must have at most ${MAX_LENGTH} characters`)
  const { hostname } = url
  if (hostname.endsWith(".")) return malformed("must not have a dot at the end of its host")
  const port = url.port === "" ? 443 : Number(url.port)
  const ports = portsOf(allowed)
  if (!ports.includes(port)) return undeliverable(`must use port ${ports.join(" or ")}`)
  if (allowedHost(hostname, allowed)) return Either.right(url.href)
  if (literalOf(hostname) !== undefined) return undeliverable("must name a host, not an address")
  // The parser accepts host names that no DNS server knows: empty labels, special characters, labels and names that are
  // too long.
  if (hostname.length > MAX_HOST || !hostname.split(".").every((part) => label.test(part))) return malformed("must name a host")
  if (!hostname.includes(".")) return undeliverable("must name a host of the public internet")
  return Either.right(url.href)
}
