import { describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { Redacted } from "effect"
import fc from "fast-check"
import * as Secret from "../../../src/access/credentials/keySecret.ts"

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const fresh = () => Redacted.value(Secret.make())

describe("the secret of a key", () => {
  test("is cds_ and 49 base62 characters, so that secret scanners find it", () => {
    for (let count = 0; count < 200; count++) {
      const secret = fresh()
      expect(secret).toMatch(/^cds_[0-9A-Za-z]{49}$/)
      expect(Secret.isWellFormed(secret)).toBe(true)
    }
  })

  test("is different every time and is redacted when printed", () => {
    expect(new Set(Array.from({ length: 1_000 }, fresh)).size).toBe(1_000)
    const made = Secret.make()
    for (const shown of [String(made), JSON.stringify(made), Bun.inspect(made)]) expect(shown).not.toContain(Redacted.value(made))
  })

  test("fails its checksum if any character is wrong, before the database is queried", () => {
    fc.assert(
      fc.property(fc.integer({ min: 4, max: 52 }), fc.integer({ min: 1, max: 61 }), (at, shift) => {
        const secret = fresh()
        const other = digits.charAt((digits.indexOf(secret.charAt(at)) + shift) % 62)
        expect(Secret.isWellFormed(`${secret.slice(0, at)}${other}${secret.slice(at + 1)}`)).toBe(false)
      }),
      { numRuns: 500 }
    )
  })

  test("fails its checksum if two adjacent characters are swapped", () => {
    fc.assert(
      fc.property(fc.integer({ min: 4, max: 51 }), (at) => {
        const secret = fresh()
        fc.pre(secret.charAt(at) !== secret.charAt(at + 1))
        const swapped = `${secret.slice(0, at)}${secret.charAt(at + 1)}${secret.charAt(at)}${secret.slice(at + 2)}`
        expect(Secret.isWellFormed(swapped)).toBe(false)
      }),
      { numRuns: 500 }
    )
  })

  test("is not well-formed if anything is missing, added or changed", () => {
    const secret = fresh()
    for (const bad of [
      "",
      "cds_",
      secret.slice(0, -1),
      `${secret}0`,
      secret.toLowerCase(),
      ` ${secret}`,
      `${secret}\n`,
      secret.replace("cds", "whs")
    ]) {
      expect(Secret.isWellFormed(bad)).toBe(false)
    }
    fc.assert(fc.property(fc.string(), (text) => expect(Secret.isWellFormed(text)).toBe(false)))
  })

  test("is stored as its SHA-256", () => {
    const secret = fresh()
    expect(Secret.hash(secret).toString("hex")).toBe(createHash("sha256").update(secret).digest("hex"))
  })
})
