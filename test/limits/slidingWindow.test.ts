/** What limits remember of callers: bounded in memory, and in a sliding window. Decisions D-10, D-12, D-26. */
import { describe, expect, test } from "bun:test"
import { RateLimiter } from "@effect/experimental"
import { Effect, Exit } from "effect"
import { FailedAuthentications } from "../../src/credentials/FailedAuthentications.ts"
import * as RateLimits from "../../src/limits/RateLimits.ts"
import { SlidingWindow } from "../../src/limits/SlidingWindow.ts"
import * as Format from "../../src/settings/Format.ts"

const address = (text: string) => {
  const parsed = Format.address(text)
  if (parsed === undefined) throw new Error(`${text} is no address`)
  return parsed
}

describe("memory is bounded, whatever addresses and names callers invent", () => {
  test("a limiter counts each key separately and starts again for a forgotten key", async () => {
    const spend = (limiter: typeof RateLimiter.RateLimiter.Service, key: string) =>
      Effect.runPromiseExit(limiter.consume({ algorithm: "fixed-window", onExceeded: "fail", limit: 2, window: "1 hour", key }))
    const limiter = await Effect.runPromise(Effect.provide(RateLimiter.RateLimiter, RateLimits.layer))
    const outcomes = []
    for (const key of ["a", "a", "b", "a"]) outcomes.push(Exit.isSuccess(await spend(limiter, key)))
    expect(outcomes).toEqual([true, true, true, false])
    await Effect.runPromise(
      Effect.forEach(
        Array.from({ length: 50_000 }, (_, index) => `other-${index}`),
        (key) => limiter.consume({ algorithm: "fixed-window", onExceeded: "fail", limit: 2, window: "1 hour", key })
      )
    )
    expect(Exit.isSuccess(await spend(limiter, "a"))).toBe(true)
  })
})

describe("a sliding window", () => {
  test("counts each entry for exactly its length", async () => {
    const window = 3_000
    const log = new SlidingWindow(window)
    const begun = performance.now()
    expect([log.note("x"), log.note("x")]).toEqual([1, 2])
    const noted = performance.now()
    await Bun.sleep(window / 2)
    expect(log.note("x")).toBe(3)
    expect(log.roomIn("x", 4)).toBe(0)
    const asked = performance.now()
    const wait = log.roomIn("x", 3)
    const told = performance.now()
    // The first entry leaves the window, however late this process runs.
    expect(wait).toBeGreaterThanOrEqual(begun + window - told)
    expect(wait).toBeLessThanOrEqual(noted + window - asked)
    await Bun.sleep(wait + noted - begun + 20)
    expect(log.roomIn("x", 3)).toBe(0)
    expect(log.note("x")).toBe(2)
    expect(log.roomIn("y", 1)).toBe(0)
    log.clear("x")
    expect(log.note("x")).toBe(1)
  })

  test("thirty failed authentications block the address or its /64, and no other", () => {
    const failures = new FailedAuthentications()
    for (let count = 0; count < 29; count++) failures.failed(address("2001:db8::1"))
    expect(failures.blockedFor(address("2001:db8::1"))).toBe(0)
    failures.failed(address("2001:db8::ffff"))
    expect(failures.blockedFor(address("2001:db8::2"))).toBe(900)
    expect(failures.blockedFor(address("2001:db8:0:1::1"))).toBe(0)
    expect(failures.blockedFor(address("192.0.2.1"))).toBe(0)
  })
})
