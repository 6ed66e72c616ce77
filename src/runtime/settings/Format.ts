/**
 * Text formats of settings and command options: durations, addresses, rates. Each reader returns the value, or a
 * description of what it expected; it never throws.
 */
import { Duration, Either } from "effect"
import ipaddr from "ipaddr.js"

/** What a reader expected, as the end of the sentence "expected …". */
export type Read<A> = Either.Either<A, string>

const unit = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** `90d`, `12h`, `5m`, `30s`, `250ms`. Longest 100 years. */
export const duration = (text: string): Read<Duration.Duration> => {
  const match = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text.trim())
  if (match === null) return Either.left("a duration such as 90d, 12h, 5m, 30s or 250ms")
  const millis = Number(match[1]) * unit[match[2] as keyof typeof unit]
  return millis > 36_525 * unit.d ? Either.left("a duration of at most 36525d") : Either.right(Duration.millis(millis))
}

/** A duration in the largest unit that keeps it whole: the inverse of {@link duration}. */
export const showDuration = (value: Duration.Duration): string => {
  const millis = Duration.toMillis(value)
  for (const name of ["d", "h", "m", "s"] as const) {
    if (millis !== 0 && millis % unit[name] === 0) return `${millis / unit[name]}${name}`
  }
  return millis === 0 ? "0s" : `${millis}ms`
}

/** A range of addresses: the canonical text, as stored and shown, and the parsed network. */
export interface Cidr {
  readonly text: string
  readonly network: readonly [ipaddr.IPv4 | ipaddr.IPv6, number]
}

/** Parses `::8.8.8.8` as IPv6. The library reads this one spelling as IPv4-mapped, but the system connects to IPv6. */
const compatible = (text: string): string => text.replace(/^::(?=\d+\.)/, "0::")

/**
 * One CIDR of either family; a single address is a range of one. IPv4-mapped IPv6 is converted to IPv4, so that ranges
 * and addresses are compared in the same family. Decision D-11.
 */
export const cidr = (text: string): Read<Cidr> => {
  const trimmed = text.trim()
  const expected = "a CIDR such as 203.0.113.0/24 or 2001:db8::/32"
  const [address = "", bits, ...rest] = trimmed.split("/")
  if (rest.length > 0 || !ipaddr.isValid(address) || (!address.includes(":") && !ipaddr.IPv4.isValidFourPartDecimal(address))) {
    return Either.left(expected)
  }
  if (address.includes("%")) return Either.left(`${expected}, without a zone`)
  if (bits !== undefined && !/^\d{1,3}$/.test(bits)) return Either.left(expected)
  const parsed = ipaddr.parse(compatible(address))
  const width = parsed.kind() === "ipv4" ? 32 : 128
  const length = bits === undefined ? width : Number(bits)
  if (length > width) return Either.left(`${expected}, with at most ${width} bits`)
  if (parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress()) {
    if (length < 96) return Either.left(`${expected}; an IPv4-mapped range has at least 96 bits`)
    return Either.right(make(parsed.toIPv4Address(), length - 96))
  }
  return Either.right(make(parsed, length))
}

const make = (address: ipaddr.IPv4 | ipaddr.IPv6, length: number): Cidr => {
  const family = address instanceof ipaddr.IPv4 ? ipaddr.IPv4 : ipaddr.IPv6
  const first = family.networkAddressFromCIDR(`${address.toString()}/${length}`)
  return { text: `${first.toString()}/${length}`, network: [first, length] }
}

/** A comma-separated list of CIDRs; empty text is the empty list. */
export const cidrs = (text: string): Read<ReadonlyArray<Cidr>> => list(text, cidr)

/** Comma-separated items, each read by `item`; fails with the first invalid item. */
export const list = <A>(text: string, item: (text: string) => Read<A>): Read<ReadonlyArray<A>> => {
  const out: Array<A> = []
  for (const part of text
    .split(",")
    .map((_) => _.trim())
    .filter((_) => _ !== "")) {
    const read = item(part)
    if (Either.isLeft(read)) return Either.left(`${read.left} (at “${part}”)`)
    out.push(read.right)
  }
  return Either.right(out)
}

/**
 * An address from a socket or a header, in its own family: IPv4-mapped IPv6 becomes IPv4, IPv4-compatible IPv6
 * (`::8.8.8.8`) stays IPv6, a zone index is removed. Undefined for anything else. Decision D-11.
 */
export const address = (text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined => {
  const bare = text.replace(/%.*$/, "")
  if (!bare.includes(":") && !ipaddr.IPv4.isValidFourPartDecimal(bare)) return undefined
  return ipaddr.isValid(bare) ? ipaddr.process(compatible(bare)) : undefined
}

/** Whether any of the ranges contains the address; ranges of the other family never do. */
export const holds = (ranges: ReadonlyArray<Cidr>, value: ipaddr.IPv4 | ipaddr.IPv6): boolean =>
  ranges.some(({ network: [first, length] }) =>
    first instanceof ipaddr.IPv4
      ? value instanceof ipaddr.IPv4 && value.match(first, length)
      : value instanceof ipaddr.IPv6 && value.match(first, length)
  )

/** A whole number in a range, bounds included. */
export const integer =
  (from: number, to: number) =>
  (text: string): Read<number> => {
    const value = /^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN
    return value >= from && value <= to ? Either.right(value) : Either.left(`a whole number from ${from} to ${to}`)
  }

/** `50/1s burst 100`: tokens per period and the size of the bucket. */
export interface Rate {
  readonly tokens: number
  readonly period: Duration.Duration
  readonly burst: number
}

/** `50/1s burst 100`, `50/1s` (burst = tokens), or `off`, which is null. Decision D-12. */
export const rate = (text: string): Read<Rate | null> => {
  if (text.trim() === "off") return Either.right(null)
  const match = /^(\d{1,9})\/(\S+?)(?:\s+burst\s+(\d{1,9}))?$/.exec(text.trim())
  const period = match === null ? undefined : Either.getOrUndefined(duration(match[2] ?? ""))
  const tokens = Number(match?.[1])
  if (match === null || period === undefined || tokens < 1 || Duration.toMillis(period) < 1) {
    return Either.left("a rate such as 50/1s burst 100, or off")
  }
  const burst = match[3] === undefined ? tokens : Number(match[3])
  return burst < 1 ? Either.left("a rate with a burst of at least 1, or off") : Either.right({ tokens, period, burst })
}
