import { describe, expect, test } from "bun:test"
import { Either } from "effect"
import fc from "fast-check"
import { clientAddress } from "../../src/http/ClientAddress.ts"
import * as Format from "../../src/runtime/settings/Format.ts"

const trusted = Either.getOrThrow(Format.cidrs("10.0.0.0/8, 2001:db8:aaaa::/48"))
const of = (peer: string | undefined, forwardedFor: string | null, proxies = trusted) =>
  clientAddress(peer, forwardedFor, proxies)?.toString()

const byte = fc.integer({ min: 0, max: 255 })
const proxy = fc.tuple(byte, byte, byte).map((rest) => `10.${rest.join(".")}`)
const stranger = fc.tuple(fc.integer({ min: 11, max: 223 }), byte, byte, byte).map((bytes) => bytes.join("."))
const anything = fc.oneof(
  stranger,
  proxy,
  fc.string().map((text) => text.replaceAll(",", "")),
  fc.constant("unknown"),
  fc.constant("")
)

describe("the client address", () => {
  test("without a trusted proxy it is the socket's peer, whatever the header says", () => {
    fc.assert(
      fc.property(
        stranger,
        fc.array(anything).map((hops) => hops.join(", ")),
        (peer, header) => {
          expect(of(peer, header)).toBe(peer)
          expect(of(peer, header, [])).toBe(peer)
        }
      )
    )
  })

  test("behind trusted proxies it is the rightmost hop that is not trusted", () => {
    fc.assert(
      fc.property(fc.array(anything), stranger, fc.array(proxy), proxy, (forged, caller, proxies, peer) => {
        expect(of(peer, [...forged, caller, ...proxies].join(", "))).toBe(caller)
      })
    )
  })

  test("if every hop is a trusted proxy, it is the leftmost hop", () => {
    fc.assert(
      fc.property(fc.array(proxy, { minLength: 1 }), proxy, (hops, peer) => {
        expect(of(peer, hops.join(","))).toBe(hops[0] ?? "")
      })
    )
    expect(of("10.0.0.1", null)).toBe("10.0.0.1")
  })

  test("a hop that is not an address makes it unknown, and no allowlist admits it", () => {
    for (const hop of ["unknown", "", "_hidden", "999.1.1.1", "203.0.113.7:port", "localhost"]) expect(of("10.0.0.1", hop)).toBeUndefined()
    expect(of("10.0.0.1", "203.0.113.7, unknown")).toBeUndefined()
    expect(of(undefined, "203.0.113.7")).toBeUndefined()
  })

  test("IPv4, IPv6, IPv4-mapped forms and ports are understood", () => {
    expect(of("::ffff:10.0.0.1", "::ffff:203.0.113.7")).toBe("203.0.113.7")
    expect(of("2001:db8:aaaa::1", "2001:db8::7, 2001:db8:aaaa::2")).toBe("2001:db8::7")
    expect(of("10.0.0.1", "203.0.113.7:4711")).toBe("203.0.113.7")
    expect(of("10.0.0.1", "[2001:db8::7]:4711")).toBe("2001:db8::7")
    expect(of("10.0.0.1", "[2001:db8::7]")).toBe("2001:db8::7")
    expect(of("::ffff:203.0.113.9", "198.51.100.1")).toBe("203.0.113.9")
  })
})
