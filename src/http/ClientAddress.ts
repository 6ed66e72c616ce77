/**
 * The client's address. It is the socket's peer, unless the peer is a trusted proxy: then `X-Forwarded-For` is read from
 * the right, and the first hop that is not a trusted proxy is the client. Anyone can write the left end of that header,
 * so it is never used. Decision D-11.
 */
import type { IPv4, IPv6 } from "ipaddr.js"
import * as Format from "../runtime/settings/Format.ts"

/**
 * The client's address; undefined if the peer is unknown or a trusted proxy sends a hop that is not an address (an IP
 * allowlist then rejects the request).
 */
export const clientAddress = (
  peer: string | undefined,
  forwardedFor: string | null,
  trusted: ReadonlyArray<Format.Cidr>
): IPv4 | IPv6 | undefined => {
  const direct = peer === undefined ? undefined : Format.address(peer)
  if (direct === undefined || forwardedFor === null || !Format.holds(trusted, direct)) return direct
  let hop: IPv4 | IPv6 = direct
  for (const text of forwardedFor.split(",").reverse()) {
    const previous = Format.address(withoutPort(text.trim()))
    if (previous === undefined) return undefined
    hop = previous
    if (!Format.holds(trusted, hop)) return hop
  }
  return hop
}

const NEARBY = new Set(["loopback", "private", "uniqueLocal", "linkLocal"])

/**
 * Whether a peer looks like a proxy that is missing in TRUSTED_PROXIES: it is nearby, sends `X-Forwarded-For`, and is not
 * trusted. All clients behind it then count as one.
 */
export const unnamedProxy = (peer: string | undefined, forwardedFor: string | null, trusted: ReadonlyArray<Format.Cidr>): boolean => {
  if (forwardedFor === null || peer === undefined) return false
  const direct = Format.address(peer)
  return direct !== undefined && NEARBY.has(direct.range()) && !Format.holds(trusted, direct)
}

/** Some proxies write `203.0.113.7:4711` or `[2001:db8::1]:4711`. */
const withoutPort = (text: string): string => /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text

/** The client as rate limits count it: in IPv6 the /64, because one client has a whole /64. */
export const networkOf = (address: IPv4 | IPv6): string =>
  address.kind() === "ipv4" ? address.toString() : address.toByteArray().slice(0, 8).join(".")

/** The wider network around a client, which one site or customer may have as a whole: in IPv6 the /48, in IPv4 the /24. */
export const siteOf = (address: IPv4 | IPv6): string =>
  address
    .toByteArray()
    .slice(0, address.kind() === "ipv4" ? 3 : 6)
    .join(".")
