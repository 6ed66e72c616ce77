import { describe, expect, test } from "bun:test"
import { Either, Schema } from "effect"
import fc from "fast-check"
import * as Timestamp from "../../src/values/Timestamp.ts"

const instant = fc.date({ min: new Date("0001-01-02T00:00:00Z"), max: new Date("9999-12-30T00:00:00Z"), noInvalidDate: true })
const offset = fc.record({ sign: fc.constantFrom(1, -1), hours: fc.integer({ min: 0, max: 23 }), minutes: fc.integer({ min: 0, max: 59 }) })
const two = (value: number) => String(value).padStart(2, "0")

describe("timestamps in UTC, ISO 8601", () => {
  test("a written timestamp parses to the same text", () => {
    fc.assert(fc.property(instant, (date) => expect(Timestamp.parse(date.toISOString())).toBe(date.toISOString())))
  })

  test("a time in any zone becomes the same instant in UTC", () => {
    fc.assert(
      fc.property(instant, offset, (date, { hours, minutes, sign }) => {
        const local = new Date(date.getTime() + sign * (hours * 60 + minutes) * 60_000).toISOString().replace("Z", "")
        expect(Timestamp.parse(`${local}${sign < 0 ? "-" : "+"}${two(hours)}:${two(minutes)}`)).toBe(date.toISOString())
      })
    )
  })

  test("fractions finer than milliseconds are truncated, and coarser ones are padded", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[0-9]{1,9}$/), (fraction) => {
        expect(Timestamp.parse(`2024-02-29T23:59:59.${fraction}Z`)).toBe(`2024-02-29T23:59:59.${fraction.padEnd(3, "0").slice(0, 3)}Z`)
      })
    )
    expect(Timestamp.parse("2024-02-29T23:59:59Z")).toBe("2024-02-29T23:59:59.000Z")
  })

  test("nonexistent days and times, and other forms, are refused", () => {
    for (const bad of [
      "2023-02-29T00:00:00Z",
      "2024-13-01T00:00:00Z",
      "2024-00-10T00:00:00Z",
      "2024-04-31T00:00:00Z",
      "2024-01-01T24:00:00Z",
      "2024-01-01T23:60:00Z",
      "2024-01-01T23:59:60Z",
      "2024-01-01T00:00:00",
      "2024-01-01",
      "2024-01-01 00:00:00Z",
      "2024-01-01T00:00:00z",
      "2024-01-01T00:00:00+24:00",
      "2024-01-01T00:00:00+00:60",
      "2024-01-01T00:00:00.Z",
      "2024-01-01T00:00:00.1234567890Z",
      "0000-01-01T00:00:00Z",
      "0001-01-01T00:00:00+01:00",
      "9999-12-31T23:59:59-01:00",
      "1719835200",
      "now",
      ""
    ]) {
      expect([bad, Timestamp.parse(bad)]).toEqual([bad, undefined])
    }
  })

  test("a record's time must end in Z, and a query's may have an offset", () => {
    const record = Schema.decodeUnknownEither(Timestamp.TimestampUtc)
    const query = Schema.decodeUnknownEither(Timestamp.TimestampParam)
    expect(record("2024-01-01T00:00:00Z")).toEqual(Either.right("2024-01-01T00:00:00.000Z"))
    expect(Either.isLeft(record("2024-01-01T00:00:00+00:00"))).toBe(true)
    expect(query("2024-01-01T02:00:00 02:00")).toEqual(Either.right("2024-01-01T00:00:00.000Z"))
    expect(Either.isLeft(query("2024-01-01 00:00:00Z"))).toBe(true)
  })
})
