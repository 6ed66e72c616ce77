/** Places of attempts in flight in a process. Decision D-52. */
import { expect, test } from "bun:test"
import { Effect } from "effect"
import * as fc from "fast-check"
import { PLACES, Places } from "../../src/sending/Places.ts"
import { shareOf } from "../../src/sending/WorkerProcess.ts"

const take = (places: Places, webhookId: string, organizationId = "org_a", patienceMs = 0) =>
  Effect.runPromise(places.take({ webhookId, organizationId }, performance.now() + patienceMs))

test("a webhook has its share of places, and the next attempt gets none", async () => {
  const places = new Places(() => 2)
  await take(places, "whs_a")
  const second = await take(places, "whs_a")
  expect(await take(places, "whs_a")).toBeUndefined()
  expect(await take(places, "whs_b")).toBeDefined()
  second?.()
  expect(await take(places, "whs_a")).toBeDefined()
})

test("attempts that wait get places in the order in which they came", async () => {
  const places = new Places(() => 1)
  const first = await take(places, "whs_a")
  const order: Array<number> = []
  const waiting = [1, 2, 3].map(async (number) => {
    const release = await take(places, "whs_a", "org_a", 5_000)
    order.push(number)
    release?.()
  })
  first?.()
  await Promise.all(waiting)
  expect(order).toEqual([1, 2, 3])
})

test("an organization has at most a quarter of all places, also for its drains", async () => {
  const places = new Places(() => PLACES)
  for (let count = 0; count < PLACES / 4; count++)
    expect(places.takeSlot({ webhookId: `whs_${count}`, organizationId: "org_a" })).toBeDefined()
  expect(places.takeSlot({ webhookId: "whs_x", organizationId: "org_a" })).toBeUndefined()
  expect(await take(places, "whs_x")).toBeUndefined()
  expect(await take(places, "whs_x", "org_b")).toBeDefined()
})

test("releasing a place twice frees one", async () => {
  const places = new Places(() => 1)
  const release = await take(places, "whs_a")
  release?.()
  release?.()
  expect(places.of("whs_a")).toBe(0)
  await take(places, "whs_a")
  expect(await take(places, "whs_a")).toBeUndefined()
})

test("the shares of all processes are whole numbers that add up to the limit", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: 50 }), (limit, processes) => {
      const shares = Array.from({ length: processes }, (_, rank) => shareOf(limit, rank, processes))
      expect(shares.reduce((sum, share) => sum + share, 0)).toBe(limit)
      expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1)
    })
  )
})
