import { describe, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import fc from "fast-check"
import { sealing } from "../../../src/runtime/crypto/MasterKey.ts"

const purposes = ["cursor", "webhook-secret", "idempotent-answer"] as const
const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array))
const key = randomBytes(32)
const { isCurrent, open, seal } = sealing(key, undefined)

describe("a value sealed under the master key", () => {
  test("opens to the same bytes for the same purpose and context only", () => {
    fc.assert(
      fc.property(
        bytes,
        fc.string(),
        fc.string(),
        fc.constantFrom(...purposes),
        fc.constantFrom(...purposes),
        (plain, context, other, a, b) => {
          const sealed = seal(a, plain, context)
          expect(open(a, sealed, context)?.equals(plain)).toBe(true)
          if (other !== context) expect(open(a, sealed, other)).toBeUndefined()
          if (a !== b) expect(open(b, sealed, context)).toBeUndefined()
        }
      )
    )
  })

  test("does not open if any bit is changed, or bytes are missing or added", () => {
    fc.assert(
      fc.property(bytes, fc.nat(), fc.integer({ min: 0, max: 7 }), fc.nat(), (plain, at, bit, cut) => {
        const sealed = seal("cursor", plain, "here")
        const flipped = Buffer.from(sealed)
        const index = at % sealed.length
        flipped.writeUInt8(flipped.readUInt8(index) ^ (1 << bit), index)
        expect(open("cursor", flipped, "here")).toBeUndefined()
        expect(open("cursor", sealed.subarray(0, cut % sealed.length), "here")).toBeUndefined()
        expect(open("cursor", Buffer.concat([sealed, Buffer.of(0)]), "here")).toBeUndefined()
      })
    )
  })

  test("is different every time it is sealed", () => {
    const texts = Array.from({ length: 100 }, () => seal("cursor", Buffer.from("same"), "here").toString("hex"))
    expect(new Set(texts).size).toBe(100)
  })

  test("opens after the master key was rotated, until the previous key is removed", () => {
    // Often enough for some pairs of keys to share the byte that identifies a key.
    for (let count = 0; count < 800; count++) {
      const next = randomBytes(32)
      const sealed = seal("cursor", Buffer.from("kept"), "here")
      expect(isCurrent("cursor", sealed, "here")).toBe(true)
      expect(sealing(next, key).isCurrent("cursor", sealed, "here")).toBe(false)
      expect(sealing(next, key).open("cursor", sealed, "here")?.toString()).toBe("kept")
      expect(sealing(next, undefined).open("cursor", sealed, "here")).toBeUndefined()
      const fresh = sealing(next, key).seal("cursor", Buffer.from("new"), "here")
      expect(sealing(next, undefined).open("cursor", fresh, "here")?.toString()).toBe("new")
    }
  })
})
