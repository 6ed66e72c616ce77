/** What limits remember of callers: bounded in memory, and in a sliding window. Decisions D-10, D-12, D-26. */
import { describe, expect, test } from "bun:test"
import { Effect, Layer, Redacted } from "effect"
import { failedAuthentications } from "../../../src/access/credentials/FailedAuthentications.ts"
import * as SharedCounts from "../../../src/access/limits/SharedCounts.ts"
import { slidingWindows } from "../../../src/access/limits/SlidingWindows.ts"
import { tokenBuckets } from "../../../src/access/limits/TokenBuckets.ts"
import * as Database from "../../../src/runtime/database/Database.ts"
import * as Format from "../../../src/runtime/settings/Format.ts"

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

/** The limits of the only process. They never connect to this database. */
const asOnlyProcess = <A, E>(effect: Effect.Effect<A, E, Layer.Layer.Success<typeof services>>) =>
  Effect.runPromise(Effect.scoped(Effect.provide(effect, services)))
const services = Layer.merge(SharedCounts.singleProcess, Database.layer(Redacted.make("postgres://127.0.0.1:1/none"), Database.pools.api))
const seconds = (effect: Effect.Effect<number>) => Effect.runSync(effect)

describe("memory is bounded, whatever addresses and names callers invent", () => {
  test("a limiter counts each key separately and starts again for a forgotten key", () =>
    asOnlyProcess(
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
    asOnlyProcess(
      Effect.gen(function* () {
        const windowMs = 3_000
        const window = yield* slidingWindows({ name: "test", limit: 3, windowMs })
        const take = (key: string) => Effect.runSync(window.take(key))
        /** The test with a new key; undefined if this process was held up for so long that entries left together. */
        const measure = (key: string) =>
          Effect.gen(function* () {
            const begun = performance.now()
            const first = [take(key), take(key)]
            const noted = performance.now()
            yield* Effect.promise(() => Bun.sleep(windowMs / 2))
            const resumed = performance.now()
            const third = take(key)
            const asked = performance.now()
            const wait = take(key)
            const answered = performance.now()
            // Both first entries leave the window, and the third does not.
            yield* Effect.promise(() => Bun.sleep(wait + noted - begun + 20))
            const last = [take(key), take(key), take(key)]
            if (answered - begun >= windowMs || performance.now() - resumed >= windowMs) return undefined
            return { asked, begun, first, last, noted, third, answered, wait }
          })
        let measured = yield* measure("x0")
        for (let again = 1; measured === undefined && again < 5; again++) measured = yield* measure(`x${again}`)
        if (measured === undefined) throw new Error("held up every time")
        const { asked, begun, first, last, noted, third, answered, wait } = measured
        expect([...first, third]).toEqual([0, 0, 0])
        expect(wait).toBeGreaterThanOrEqual(begun + windowMs - answered)
        expect(wait).toBeLessThanOrEqual(noted + windowMs - asked)
        expect(last).toEqual([0, 0, expect.any(Number)])
        expect(last[2]).toBeGreaterThan(0)
        expect(take("y")).toBe(0)
      })
    ))

  test("thirty failed authentications block the address or its /64, and no other", () =>
    asOnlyProcess(
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
