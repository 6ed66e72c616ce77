/** The pace at which groups of first attempts start workflows. */
import { expect, test } from "bun:test"
import { Effect } from "effect"
import { makePace } from "../../src/sending/pace.ts"

/** Ms from now at which each of `count` that wait at the same time has its turn. */
const turnsOf = async (count: number, turn: Effect.Effect<void>) => {
  const begun = performance.now()
  const at = Effect.map(turn, () => performance.now() - begun)
  return await Effect.runPromise(
    Effect.all(
      Array.from({ length: count }, () => at),
      { concurrency: "unbounded" }
    )
  )
}

test("some go at once after a pause, and then one at a time", async () => {
  const turn = makePace(100, 5)
  for (let round = 0; round < 2; round++) {
    const turns = await turnsOf(10, turn)
    expect(turns[4]).toBeLessThan(100)
    expect(turns).toEqual(turns.toSorted((a, b) => a - b))
    // Timers round to a millisecond.
    for (const [index, at] of turns.entries()) expect(at).toBeGreaterThan((index - 4) * 100 - 2)
    await Bun.sleep(600)
  }
})

test("thousands that wait cost no more than a few", async () => {
  const begun = process.cpuUsage()
  const turns = await turnsOf(4_000, makePace(0.5, 10))
  const { system, user } = process.cpuUsage(begun)
  expect(Math.max(...turns)).toBeGreaterThan(1_900)
  // With Effect's RateLimiter, each of 4,000 turns wakes all that wait, and they take minutes.
  expect((system + user) / 1e6).toBeLessThan(4)
})
