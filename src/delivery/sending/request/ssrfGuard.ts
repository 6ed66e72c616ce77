/**
 * The SSRF guard: which addresses a delivery may connect to. Every DNS response is checked for each attempt, and the
 * connection goes to exactly the checked address, so changing the DNS response in between is useless. One denied address
 * blocks all. Fails closed. Decision D-30; reliability, deny list.
 */

import { Resolver } from "node:dns/promises"
import { Data, Effect } from "effect"
import ipaddr from "ipaddr.js"
import { checkResolver, isUnanswered } from "../../../runtime/processes/resolver.ts"
import * as Format from "../../../runtime/settings/Format.ts"
import { cached, type Resolved } from "./NameCache.ts"

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** The endpoint has no allowed address. */
export class NoAddress extends Data.TaggedError("NoAddress")<{
  readonly result: "dns_error" | "blocked_address"
  /** Whether the service's own resolver does not respond at all. */
  readonly resolverAway?: boolean
}> {}

/** The service's own resolver does not respond, not even to a query for the root: nothing is known about the name. */
class ResolverAway extends Error {}

const ranges = (text: string) =>
  text.split(" ").map((cidr): [Address, number] => {
    const [address, bits] = ipaddr.parseCIDR(cidr)
    return [address, bits]
  })

/** IPv4 ranges that are not on the public internet, and 168.63.129.16, which looks public but is a cloud's internal address. */
const denied4 = ranges(
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 " +
    "192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 " +
    "224.0.0.0/4 240.0.0.0/4"
)
/** In IPv6 only the global unicast range is allowed, without these parts. */
const global6 = ranges("2000::/3")
const denied6 = ranges("2001::/23 2001:db8::/32 2002::/16 3fff::/20 2620:4f:8000::/48")

const inside = (list: ReadonlyArray<readonly [Address, number]>, address: Address): boolean =>
  list.some(([network, bits]) =>
    network instanceof ipaddr.IPv4
      ? address instanceof ipaddr.IPv4 && address.match(network, bits)
      : address instanceof ipaddr.IPv6 && address.match(network, bits)
  )

/**
 * IPv4-mapped IPv6 is checked as the IPv4 address that the system connects to. All other forms of IPv4 in IPv6 are
 * outside the global range.
 */
const unmapped = (address: Address): Address =>
  address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address

/** What the operator allows in addition, and what is denied although it is public: the service's own hosts. */
export interface Policy {
  readonly allow: ReadonlyArray<Format.Cidr>
  readonly own: ReadonlySet<string>
  /** Whether IPv6 hosts can be reached; if not, IPv4 addresses are preferred. */
  readonly speaks6: Effect.Effect<boolean>
}

/** Whether a delivery may connect to the address. */
export const isAllowed = (given: Address, { allow, own }: Pick<Policy, "allow" | "own">): boolean => {
  const address = unmapped(given)
  if (Format.holds(allow, address)) return true
  if (own.has(address.toString())) return false
  return address instanceof ipaddr.IPv4 ? !inside(denied4, address) : inside(global6, address) && !inside(denied6, address)
}

/** Timeout of resolving. */
const DNS_MS = 2_000
/** Addresses of each kind that are used of a response: every one is checked for every attempt. */
const MOST_ADDRESSES = 32

/** Resolves names with the given DNS servers, or the system's. */
export interface Lookup {
  readonly resolve: (hostname: string) => Promise<ReadonlyArray<string>>
}

/**
 * A resolver that queries A and AAAA concurrently with a timeout, because the system's waits far too long. A response is
 * cached for its TTL, at most 30 s, and a failure for 5 s.
 */
export const lookup = (servers: ReadonlyArray<string>): Lookup => {
  const resolve = async (hostname: string): Promise<Resolved> => {
    const resolver = new Resolver({ timeout: 900, tries: 2 })
    if (servers.length > 0) resolver.setServers([...servers])
    const timer = setTimeout(() => resolver.cancel(), DNS_MS)
    try {
      const answers = await Promise.allSettled([resolver.resolve4(hostname, { ttl: true }), resolver.resolve6(hostname, { ttl: true })])
      const isSilent = answers.every((answer) => answer.status === "rejected" && isUnanswered(answer.reason))
      if (isSilent && (await checkResolver(servers))) throw new ResolverAway()
      const records = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value.slice(0, MOST_ADDRESSES) : []))
      return { addresses: records.map(({ address }) => address), ttlSeconds: Math.min(...records.map(({ ttl }) => ttl)) }
    } finally {
      clearTimeout(timer)
    }
  }
  const known = cached(resolve)
  return { resolve: (hostname) => (hostname === "localhost" ? Promise.resolve(["127.0.0.1"]) : known(hostname)) }
}

/** An address to connect to, and every address that the guard allows for the name now. */
export interface Chosen {
  readonly address: string
  readonly allowed: ReadonlyArray<string>
}

/**
 * The address to connect to for a URL's host, in the canonical form that was checked. `turn` selects one of several, so
 * that attempts alternate. Fails with {@link NoAddress}: `dns_error` if the name does not resolve in time,
 * `blocked_address` if any address is denied.
 */
export const choose = (hostname: string, policy: Policy, { resolve }: Lookup, turn: number): Effect.Effect<Chosen, NoAddress> =>
  Effect.gen(function* () {
    const literal = Format.address(hostname.replace(/^\[(.*)\]$/, "$1"))
    const answers =
      literal !== undefined
        ? [literal.toString()]
        : yield* Effect.tryPromise({
            try: () => resolve(hostname),
            catch: (error) => new NoAddress({ result: "dns_error", resolverAway: error instanceof ResolverAway })
          })
    const judged = answers.map(Format.address).filter((address) => address !== undefined && isAllowed(address, policy))
    if (judged.length < answers.length) return yield* new NoAddress({ result: "blocked_address" })
    const allowed = judged.map(String)
    const four = (yield* policy.speaks6) ? [] : allowed.filter((text) => !text.includes(":"))
    const candidates = four.length > 0 ? four : allowed
    const address = candidates[turn % candidates.length] ?? (yield* new NoAddress({ result: "dns_error" }))
    return { address, allowed }
  })
