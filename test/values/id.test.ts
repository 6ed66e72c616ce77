import { describe, expect, test } from "bun:test"
import { Schema } from "effect"
import fc from "fast-check"
import * as Id from "../../src/values/Id.ts"

const prefixes = ["org", "entity", "vault", "user", "key", "whs", "evt", "del", "req"] as const
const prefix = fc.constantFrom(...prefixes)
const millis = fc.integer({ min: 0, max: Date.UTC(2500, 0) })

describe("ids", () => {
  test("an id is its prefix, _, and 26 characters of Crockford base32", () => {
    for (const one of prefixes) expect(Id.make(one)).toMatch(new RegExp(`^${one}_[0-7][0-9a-hjkmnp-tv-z]{25}$`))
  })

  test("ids created one after the other ascend strictly as text, even within a millisecond", () => {
    const made = Array.from({ length: 20_000 }, () => Id.make("evt"))
    for (let index = 1; index < made.length; index++) {
      if ((made[index - 1] ?? "") >= (made[index] ?? "")) throw new Error(`${made[index - 1]} is not before ${made[index]}`)
    }
    expect(new Set(made).size).toBe(made.length)
  })

  test("an id encodes its creation time, at most 100 ms ahead", () => {
    const before = Date.now()
    const at = Id.time(Id.make("del")) ?? 0
    expect(at).toBeGreaterThanOrEqual(before)
    expect(at).toBeLessThanOrEqual(Date.now() + 100)
  })

  test("the same parts and time always give the same id, and other parts another", () => {
    fc.assert(
      fc.property(prefix, millis, fc.string(), fc.string(), (one, at, a, b) => {
        expect(Id.derived(one, at, a, b)).toBe(Id.derived(one, at, a, b))
        expect(Id.time(Id.derived(one, at, a, b))).toBe(at)
        // Parts are separated: the same text split differently gives another id.
        expect(Id.derived(one, at, `${a}x`, b)).not.toBe(Id.derived(one, at, a, `x${b}`))
        expect(Id.derived(one, at, a, b)).not.toBe(Id.derived(one, at, `${a}${b}`))
      })
    )
  })

  test("ids derived from ascending ids ascend, and equal parts give equal ids", () => {
    const ids = Id.ascending("evt", 1_700_000_000_000, 5_000)
    const derived = ids.map((id) => Id.derivedFrom("del", id, "whs_a"))
    expect(derived.toSorted()).toEqual(derived)
    expect(derived.map(Id.time)).toEqual(ids.map(Id.time))
    expect(Id.derivedFrom("del", ids[0] ?? "", "whs_a")).toBe(derived[0] ?? "")
    expect(Id.derivedFrom("del", ids[0] ?? "", "whs_b")).not.toBe(derived[0] ?? "")
  })

  test("every id of a day lies between the day's bounds", () => {
    fc.assert(
      fc.property(millis, fc.string(), (at, part) => {
        const id = Id.derived("evt", at, part)
        expect(id >= Id.floor("evt", at)).toBe(true)
        expect(id < Id.floor("evt", at + 1)).toBe(true)
      })
    )
  })

  test("text of another form has no time", () => {
    for (const bad of [
      "",
      "evt",
      "evt_",
      "evt_zzz",
      "evt_80000000000000000000000000",
      "EVT_01jz0000000000000000000000",
      "x".repeat(5_000)
    ]) {
      expect(Id.time(bad)).toBeUndefined()
    }
  })

  test("the platform's ids are opaque, except for prefix and at most 64 plain characters", () => {
    const is = Schema.is(Id.given("vault"))
    for (const good of ["vault_a", "vault_dkjh7m6gvxzc2wjrphqz46b3br", "vault_A-b_9", `vault_${"x".repeat(64)}`])
      expect(is(good)).toBe(true)
    for (const bad of ["vault_", "vault", "user_a", "vault_ä", "vault_a b", "vault_a\n", `vault_${"x".repeat(65)}`, "vault_\u0000"]) {
      expect(is(bad)).toBe(false)
    }
  })
})
