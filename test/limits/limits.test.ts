/** What limits remember of callers: bounded in memory, and in a sliding window. Decisions D-10, D-12, D-26. */
import { describe, expect, test } from "bun:test"
import { Effect, Layer, Redacted } from "effect"
import { failedAuthentications } from "../../src/credentials/FailedAuthentications.ts"
import * as Database from "../../src/database/Database.ts"
import * as Exchange from "../../src/limits/Exchange.ts"
import { slidingWindows } from "../../src/limits/SlidingWindows.ts"
import { tokenBuckets } from "../../src/limits/TokenBuckets.ts"
import * as Format from "../../src/settings/Format.ts"

const address = (text: string) => {
  const parsed = Format.address(text)
  if (parsed === undefined) throw new Error(`${text} is no address`)
  return parsed
}
const rate = (text: string) => {
  const parsed = Format.rate(text)
  if (parsed._tag === "Left" || parsed.right === null) throw new Error(`${text} is no rate`)
  return parsed.right
}

/** The limits of a process that is alone. They never connect to this database. */
const alone = <A, E>(effect: Effect.Effect<A, E, Layer.Layer.Success<typeof services>>) =>
  Effect.runPromise(Effect.scoped(Effect.provide(effect, services)))
const services = Layer.merge(Exchange.alone, Database.layer(Redacted.make("postgres://127.0.0.1:1/none"), Database.pools.api))
const seconds = (effect: Effect.Effect<number>) => Effect.runSync(effect)

describe("memory is bounded, whatever addresses and names callers invent", () => {
  test("a limiter counts each key separately and starts again for a forgotten key", () =>
    alone(
      Effect.gen(function* () {
        const buckets = yield* tokenBuckets(rate("2/1h"))
        const takes = (key: string) => Effect.runSync(buckets.take(key)).remaining >= 0
        expect(["a", "a", "b", "a"].map(takes)).toEqual([true, true, true, false])
        for (let index = 0; index < 50_000; index++) takes(`other-${index}`)
        expect(takes("a")).toBe(true)
      })
    ))
})

describe("a sliding window", () => {
  test("counts each entry for exactly its length", () =>
    alone(
      Effect.gen(function* () {
        const windowMs = 3_000
        const window = yield* slidingWindows({ name: "test", limit: 3, windowMs })
        const take = (key: string) => Effect.runSync(window.take(key))
        const begun = performance.now()
        expect([take("x"), take("x")]).toEqual([0, 0])
        const noted = performance.now()
        yield* Effect.promise(() => Bun.sleep(windowMs / 2))
        expect(take("x")).toBe(0)
        const asked = performance.now()
        const wait = take("x")
        const told = performance.now()
        // The first entry leaves the window, however late this process runs.
        expect(wait).toBeGreaterThanOrEqual(begun + windowMs - told)
        expect(wait).toBeLessThanOrEqual(noted + windowMs - asked)
        yield* Effect.promise(() => Bun.sleep(wait + noted - begun + 20))
        expect([take("x"), take("x")]).toEqual([0, 0])
        expect(take("x")).toBeGreaterThan(0)
        expect(take("y")).toBe(0)
      })
    ))

  test("thirty failed authentications block the address or its /64, and no other", () =>
    alone(
      Effect.gen(function* () {
        const failures = yield* failedAuthentications
        const blockedFor = (text: string) => seconds(failures.blockedFor(address(text)))
        for (let count = 0; count < 29; count++) failures.failed(address("2001:db8::1"))
        expect(blockedFor("2001:db8::1")).toBe(0)
        failures.failed(address("2001:db8::ffff"))
        expect(blockedFor("2001:db8::2")).toBe(900)
        expect(blockedFor("2001:db8:0:1::1")).toBe(0)
        expect(blockedFor("192.0.2.1")).toBe(0)
      })
    ))
})
