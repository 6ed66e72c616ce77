/** How many held deliveries are in flight while they drain. C-5. */
import { describe, expect, test } from "bun:test"
import { DrainWidth } from "../../src/sending/DrainWidth.ts"

/** The width that a drain keeps, if a round of 64 takes so many ms at a width. */
const kept = (ms: (width: number) => number, bound = 8): number => {
  const drain = new DrainWidth(bound)
  for (let round = 0; round < 10; round++) drain.took(64, ms(drain.width))
  return drain.width
}

describe("C-5: a drain has as few deliveries in flight as are nearly as fast as the bound", () => {
  test("one, if this process is the slower one", () => {
    expect(kept(() => 90)).toBe(1)
  })

  test("as many as it takes, if the endpoint answers after a while", () => {
    // Each response takes 5 ms, and the process sends at most one delivery per 1.4 ms.
    expect(kept((width) => 64 * Math.max(1.4, 5 / width))).toBe(4)
  })

  test("all, if each of them makes it faster", () => {
    expect(kept((width) => (64 * 40) / width)).toBe(8)
    expect(kept((width) => (64 * 2_000) / width)).toBe(8)
  })

  test("the bound, if it cannot be halved", () => {
    expect([kept(() => 90, 1), kept(() => 90, 5)]).toEqual([1, 5])
  })
})
