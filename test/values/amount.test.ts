import { describe, expect, test } from "bun:test"
import { Decimal } from "decimal.js"
import { Either, Schema } from "effect"
import fc from "fast-check"
import * as Amount from "../../src/values/Amount.ts"

const digits = (min: number, max: number) => fc.stringMatching(new RegExp(`^[0-9]{${min},${max}}$`))
/** Plain decimals as a platform may write them, trailing zeros included. */
const plain = fc
  .tuple(digits(1, 78), fc.option(digits(1, 78), { nil: undefined }))
  .map(([whole, fraction]) => `${whole.replace(/^0+(?=.)/, "")}${fraction === undefined ? "" : `.${fraction}`}`)

const read = Schema.decodeUnknownEither(Amount.AmountInput)

describe("amounts as decimal strings", () => {
  test("every plain decimal keeps its value to the last digit and loses only trailing zeros", () => {
    fc.assert(
      fc.property(plain, (text) => {
        const [whole = "", fraction = ""] = text.split(".")
        const kept = fraction.replace(/0+$/, "")
        expect(Amount.canonical(text)).toBe(kept === "" ? whole : `${whole}.${kept}`)
        expect(Amount.isPlain(text)).toBe(true)
      }),
      { numRuns: 500 }
    )
  })

  test("equal values have one canonical text, which is its own canonical form", () => {
    fc.assert(
      fc.property(plain, fc.integer({ min: 1, max: 5 }), (text, zeros) => {
        const longer = text.includes(".") ? text + "0".repeat(zeros) : `${text}.${"0".repeat(zeros)}`
        expect(Amount.canonical(longer)).toBe(Amount.canonical(text))
        expect(Amount.canonical(Amount.canonical(text))).toBe(Amount.canonical(text))
        expect(new Decimal(Amount.canonical(text)).eq(text)).toBe(true)
      })
    )
  })

  test("fraction digits are counted as written", () => {
    fc.assert(
      fc.property(plain, (text) => {
        expect(Amount.fractionDigits(text)).toBe((text.split(".")[1] ?? "").length)
      })
    )
  })

  test("the largest 256-bit amount and the smallest unit are preserved", () => {
    for (const text of [
      "115792089237316195423570985008687907853269984665640564039457.584007913129639935",
      "115792089237316195423570985008687907853269984665640564039457584007913129639935",
      "0.000000000000000001",
      "0"
    ]) {
      expect(Amount.canonical(text)).toBe(text)
    }
  })

  test("anything but a plain decimal string is refused: signs, exponents, leading zeros, separators, spaces, numbers", () => {
    for (const bad of [
      "-1",
      "+1",
      "1e3",
      "1E-3",
      "01",
      "00",
      ".5",
      "5.",
      "1,000",
      "1_000",
      " 1",
      "1 ",
      "1\n",
      "0x10",
      "NaN",
      "Infinity",
      ""
    ]) {
      expect(Amount.isPlain(bad)).toBe(false)
      expect(Either.isLeft(read(bad))).toBe(true)
    }
    for (const bad of [1, 0.1, null, undefined, {}, ["1"], true]) expect(Either.isLeft(read(bad))).toBe(true)
    expect(Either.isLeft(read("1".repeat(79)))).toBe(true)
    expect(Either.isLeft(read(`0.${"1".repeat(79)}`))).toBe(true)
  })

  test("isPlain agrees with a strict pattern on any text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[-+0-9.eE ]{0,12}$/)), (text) => {
        expect(Amount.isPlain(text)).toBe(/^(0|[1-9][0-9]{0,77})(\.[0-9]{1,78})?$/.test(text) && !text.endsWith("\n"))
      }),
      { numRuns: 1000 }
    )
  })
})
