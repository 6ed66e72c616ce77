import { describe, expect, test } from "bun:test"
import { Duration, Either } from "effect"
import fc from "fast-check"
import * as Format from "../../../src/runtime/settings/Format.ts"

const byte = fc.integer({ min: 0, max: 255 })
const v4 = fc.tuple(byte, byte, byte, byte)
const v6 = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 })

const text4 = (bytes: ReadonlyArray<number>) => bytes.join(".")
const text6 = (words: ReadonlyArray<number>) => words.map((word) => word.toString(16)).join(":")
const number = (parts: ReadonlyArray<number>, width: bigint) => parts.reduce((sum, part) => (sum << width) | BigInt(part), 0n)

/** Whether two addresses of `bits` bits share their first `length`: CIDR matching by arithmetic, for comparison. */
const shares = (a: bigint, b: bigint, length: number, bits: number) => a >> BigInt(bits - length) === b >> BigInt(bits - length)

const ranges = (text: string) => Either.getOrThrow(Format.cidrs(text))
const address = (text: string) => {
  const found = Format.address(text)
  if (found === undefined) throw new Error(`${text} is no address`)
  return found
}
/** Most addresses are made to differ from the range in the last significant bit, or in the first insignificant one. */
const near = fc.constantFrom(-1, 0, "any" as const)
const flip = (parts: ReadonlyArray<number>, width: number, bit: number) =>
  parts.map((part, index) => (Math.floor(bit / width) === index ? part ^ (1 << (width - 1 - (bit % width))) : part))
const isMapped = (words: ReadonlyArray<number>) => words.slice(0, 5).every((word) => word === 0) && words[5] === 0xffff

describe("CIDRs of both families", () => {
  test("an IPv4 range contains exactly the addresses with its prefix", () => {
    fc.assert(
      fc.property(v4, v4, fc.integer({ min: 0, max: 32 }), near, (range, other, length, bit) => {
        const candidate = bit === "any" ? other : flip(range, 8, length + bit)
        expect(Format.holds(ranges(`${text4(range)}/${length}`), address(text4(candidate)))).toBe(
          shares(number(range, 8n), number(candidate, 8n), length, 32)
        )
      }),
      { numRuns: 2_000 }
    )
  })

  test("an IPv6 range contains exactly the addresses with its prefix", () => {
    fc.assert(
      fc.property(v6, v6, fc.integer({ min: 0, max: 128 }), near, (range, other, length, bit) => {
        const candidate = bit === "any" ? other : flip(range, 16, length + bit)
        fc.pre(!isMapped(range) && !isMapped(candidate))
        expect(Format.holds(ranges(`${text6(range)}/${length}`), address(text6(candidate)))).toBe(
          shares(number(range, 16n), number(candidate, 16n), length, 128)
        )
      }),
      { numRuns: 2_000 }
    )
  })

  test("an IPv4 address and its IPv4-mapped IPv6 form are the same address", () => {
    fc.assert(
      fc.property(v4, v4, fc.integer({ min: 0, max: 32 }), (range, candidate, length) => {
        const plain = Format.holds(ranges(`${text4(range)}/${length}`), address(text4(candidate)))
        for (const mapped of [`::ffff:${text4(candidate)}`, `::FFFF:${text4(candidate)}`, `0:0:0:0:0:ffff:${text4(candidate)}`]) {
          expect(Format.holds(ranges(`${text4(range)}/${length}`), address(mapped))).toBe(plain)
        }
        expect(Format.holds(ranges(`::ffff:${text4(range)}/${96 + length}`), address(text4(candidate)))).toBe(plain)
      })
    )
  })

  test("an IPv4-compatible IPv6 address is IPv6, and no IPv4 range contains it", () => {
    for (const text of ["::8.8.8.8", "0::8.8.8.8", "0:0:0:0:0:0:8.8.8.8", "::808:808", "::8.8.8.8%eth0"]) {
      expect([text, Format.address(text)?.toString()]).toEqual([text, "::808:808"])
      expect([text, Format.holds(ranges("8.8.8.0/24"), address(text))]).toEqual([text, false])
    }
    expect(ranges("::8.8.8.8")[0]?.text).toBe("::808:808/128")
    expect(Format.address("::ffff:8.8.8.8")?.toString()).toBe("8.8.8.8")
  })

  test("a range of one family never contains an address of the other, not even /0", () => {
    expect(Format.holds(ranges("0.0.0.0/0"), address("2001:db8::1"))).toBe(false)
    expect(Format.holds(ranges("::/0"), address("203.0.113.7"))).toBe(false)
    expect(Format.holds(ranges("0.0.0.0/0"), address("203.0.113.7"))).toBe(true)
    expect(Format.holds(ranges("::/0"), address("2001:db8::1"))).toBe(true)
    expect(Format.holds(ranges(""), address("203.0.113.7"))).toBe(false)
  })

  test("a range is stored in its one canonical form, which parses to the same range", () => {
    expect(ranges("203.0.113.77/24, 2001:DB8:0:0::1/32,10.1.2.3,::ffff:192.0.2.130/121").map(({ text }) => text)).toEqual([
      "203.0.113.0/24",
      "2001:db8::/32",
      "10.1.2.3/32",
      "192.0.2.128/25"
    ])
    fc.assert(
      fc.property(
        fc.oneof(fc.tuple(v4.map(text4), fc.integer({ min: 0, max: 32 })), fc.tuple(v6.map(text6), fc.integer({ min: 96, max: 128 }))),
        ([base, length]) => {
          const [once] = ranges(`${base}/${length}`)
          const [twice] = ranges(once?.text ?? "")
          expect(twice?.text).toBe(once?.text ?? "nothing")
        }
      )
    )
  })

  test("text that is not a CIDR is refused with the expected form", () => {
    for (const bad of [
      "203.0.113.0/33",
      "203.0.113.0/-1",
      "203.0.113.0/",
      "203.0.113.0/24/24",
      "203.0.113/24",
      "203.0.113.256",
      "0x7f.1",
      "2130706433",
      "127.1",
      "2001:db8::/129",
      "2001:db8::1%eth0/64",
      "::ffff:10.0.0.0/8",
      "example.com",
      "*",
      "/24"
    ]) {
      const read = Format.cidr(bad)
      expect([bad, Either.isLeft(read)]).toEqual([bad, true])
      if (Either.isLeft(read)) expect(read.left).toStartWith("a CIDR such as")
    }
    const list = Format.cidrs("10.0.0.0/8, nonsense")
    if (Either.isLeft(list)) expect(list.left).toContain("nonsense")
    expect(Either.isLeft(list)).toBe(true)
  })

  test("text that is not an address is refused, in every lax notation", () => {
    for (const bad of [
      "",
      "localhost",
      "127.1",
      "0177.0.0.1",
      "0x7f000001",
      "2130706433",
      "1.2.3.4.5",
      "1.2.3",
      "::g",
      "1.2.3.4 ",
      "①.0.0.1"
    ]) {
      expect([bad, Format.address(bad)]).toEqual([bad, undefined])
    }
    expect(Format.address("fe80::1%eth0")?.toString()).toBe("fe80::1")
  })
})

describe("durations and rates in settings and commands", () => {
  test("a duration is a number and a unit, and is printed as written", () => {
    const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 36_525 }), fc.constantFrom("ms", "s", "m", "h", "d"), (amount, unit) => {
        const read = Either.getOrThrow(Format.duration(`${amount}${unit}`))
        expect(Duration.toMillis(read)).toBe(amount * units[unit])
        expect(Either.getOrThrow(Format.duration(Format.showDuration(read)))).toEqual(read)
      })
    )
  })

  test("text that is not a duration is refused", () => {
    for (const bad of ["", "5", "m", "-5m", "5 m", "1.5h", "1h30m", "5M", "1w", "36526d", "1e3s", "9999999999999s"]) {
      expect([bad, Either.isLeft(Format.duration(bad))]).toEqual([bad, true])
    }
  })

  test("a rate is tokens per period with a burst, or off", () => {
    expect(Either.getOrThrow(Format.rate("50/1s burst 100"))).toEqual({ tokens: 50, period: Duration.seconds(1), burst: 100 })
    expect(Either.getOrThrow(Format.rate("600/1m"))).toEqual({ tokens: 600, period: Duration.minutes(1), burst: 600 })
    expect(Either.getOrThrow(Format.rate("off"))).toBeNull()
    for (const bad of ["", "50", "0/1s", "50/0s", "50/1s burst 0", "50/1s burst", "50/second", "-1/1s", "on"]) {
      expect([bad, Either.isLeft(Format.rate(bad))]).toEqual([bad, true])
    }
  })
})
