/** How many held deliveries are in flight while they drain. C-5. */
import { describe, expect, test } from "bun:test"
import { DrainWidth } from "../../src/sending/DrainWidth.ts"

/** The width that a drain keeps, if a round of 64 takes so many ms at a width. */
const kept = (ms: (width: number) => number, bound = 8): number => {
  const drain = new DrainWidth(bound)
  for (let round = 0; round < 10; round++) drain.took(64, ms(drain.width))
  return drain.width
}

describe("C-5: a drain keeps the smallest number of deliveries in flight that is nearly as fast as the maximum", () => {
  test("one, if this process is the bottleneck", () => {
    expect(kept(() => 90)).toBe(1)
  })

  test("as many as it takes, if the endpoint answers after a while", () => {
    // Each response takes 5 ms, and the process sends at most one delivery per 1.4 ms.
    expect(kept((width) => 64 * Math.max(1.4, 5 / width))).toBe(4)
  })

  test("the maximum, if every additional one makes it faster", () => {
    expect(kept((width) => (64 * 40) / width)).toBe(8)
    expect(kept((width) => (64 * 2_000) / width)).toBe(8)
  })

  test("the bound, if it cannot be halved", () => {
    expect([kept(() => 90, 1), kept(() => 90, 5)]).toEqual([1, 5])
  })
})
