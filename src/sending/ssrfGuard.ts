/**
 * The address guard: which address a delivery may connect to. Every answer of the name servers is judged for each
 * attempt, and the connection goes to exactly the judged address, so that a name whose answer changes in between gains
 * nothing. One answer on the deny list refuses them all. Fails closed. Decision D-30; reliability, deny list.
 */

import { Resolver } from "node:dns/promises"
import { Data, Effect } from "effect"
import ipaddr from "ipaddr.js"
import * as Format from "../settings/Format.ts"
import { cached, type Resolved } from "./NameCache.ts"

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** An endpoint has no address that may be connected to. */
export class NoAddress extends Data.TaggedError("NoAddress")<{
  readonly result: "dns_error" | "blocked_address"
  /** Whether no resolver answered. */
  readonly unanswered?: boolean
}> {}

/** No resolver answered: nothing is known of the name. */
class Unanswered extends Error {}

const ranges = (text: string) =>
  text.split(" ").map((cidr): [Address, number] => {
    const [address, bits] = ipaddr.parseCIDR(cidr)
    return [address, bits]
  })

/** IPv4 that is not of the public internet, and 168.63.129.16, which looks public and is a cloud's inside. */
const denied4 = ranges(
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 " +
    "192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 " +
    "224.0.0.0/4 240.0.0.0/4"
)
/** Of IPv6 only the global unicast range is let through, and these parts of it are not. */
const global6 = ranges("2000::/3")
const denied6 = ranges("2001::/23 2001:db8::/32 2002::/16 3fff::/20 2620:4f:8000::/48")

const inside = (list: ReadonlyArray<readonly [Address, number]>, address: Address): boolean =>
  list.some(([network, bits]) =>
    network instanceof ipaddr.IPv4
      ? address instanceof ipaddr.IPv4 && address.match(network, bits)
      : address instanceof ipaddr.IPv6 && address.match(network, bits)
  )

/** IPv4-mapped IPv6 is judged as the IPv4 that the system connects to. Every other form of IPv4 in IPv6 is outside the global range. */
const unmapped = (address: Address): Address =>
  address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address

/** What the operator allows beside the public internet, and what is refused although it is public: the service's own hosts. */
export interface Policy {
  readonly allow: ReadonlyArray<Format.Cidr>
  readonly own: ReadonlySet<string>
  /** Whether IPv6 hosts can be reached; where they cannot, a name's IPv4 addresses are preferred. */
  readonly speaks6: Effect.Effect<boolean>
}

/** Whether a delivery may connect to the address. */
export const isAllowed = (given: Address, { allow, own }: Pick<Policy, "allow" | "own">): boolean => {
  const address = unmapped(given)
  if (Format.holds(allow, address)) return true
  if (own.has(address.toString())) return false
  return address instanceof ipaddr.IPv4 ? !inside(denied4, address) : inside(global6, address) && !inside(denied6, address)
}

/** Longest that resolving may take. */
const DNS_MS = 2_000

/** Resolves names: with the servers given, or the system's. */
export interface Lookup {
  readonly resolve: (hostname: string) => Promise<ReadonlyArray<string>>
}

/**
 * A resolver that asks for A and AAAA at once and gives up in time, where the system's own waits far too long. An answer
 * is kept for its TTL, at most 30 s, and a failure for 5 s.
 */
export const lookup = (servers: ReadonlyArray<string>): Lookup => {
  const resolve = async (hostname: string): Promise<Resolved> => {
    const resolver = new Resolver({ timeout: 900, tries: 2 })
    if (servers.length > 0) resolver.setServers([...servers])
    const timer = setTimeout(() => resolver.cancel(), DNS_MS)
    try {
      const answers = await Promise.allSettled([resolver.resolve4(hostname, { ttl: true }), resolver.resolve6(hostname, { ttl: true })])
      if (
        answers.every(
          (answer) => answer.status === "rejected" && /^(ETIMEOUT|ECONNREFUSED|ECANCELLED|EREFUSED)$/.test(String(answer.reason?.code))
        )
      )
        throw new Unanswered()
      const records = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []))
      return { addresses: records.map(({ address }) => address), ttlSeconds: Math.min(...records.map(({ ttl }) => ttl)) }
    } finally {
      clearTimeout(timer)
    }
  }
  const known = cached(resolve)
  return { resolve: (hostname) => (hostname === "localhost" ? Promise.resolve(["127.0.0.1"]) : known(hostname)) }
}

/** An address to connect to, and every address that the guard allows the name at this moment. */
export interface Chosen {
  readonly address: string
  readonly allowed: ReadonlyArray<string>
}

/**
 * The address to connect to for a URL's host, in the canonical form that was judged. `turn` picks among several, so that
 * attempts take turns. Fails with {@link NoAddress}: `dns_error` when the name has none in time, `blocked_address` when any answer is denied.
 */
export const choose = (hostname: string, policy: Policy, { resolve }: Lookup, turn: number): Effect.Effect<Chosen, NoAddress> =>
  Effect.gen(function* () {
    const literal = Format.address(hostname.replace(/^\[(.*)\]$/, "$1"))
    const answers =
      literal !== undefined
        ? [literal.toString()]
        : yield* Effect.tryPromise({
            try: () => resolve(hostname),
            catch: (error) => new NoAddress({ result: "dns_error", unanswered: error instanceof Unanswered })
          })
    const judged = answers.map(Format.address).filter((address) => address !== undefined && isAllowed(address, policy))
    if (judged.length < answers.length) return yield* new NoAddress({ result: "blocked_address" })
    const allowed = judged.map(String)
    const four = (yield* policy.speaks6) ? [] : allowed.filter((text) => !text.includes(":"))
    const candidates = four.length > 0 ? four : allowed
    const address = candidates[turn % candidates.length] ?? (yield* new NoAddress({ result: "dns_error" }))
    return { address, allowed }
  })
