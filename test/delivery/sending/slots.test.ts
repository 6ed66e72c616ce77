/** Slots of attempts in flight in a process. Decision D-52. */
import { expect, test } from "bun:test"
import { Effect, Fiber } from "effect"
import * as fc from "fast-check"
import { SLOTS, Slots } from "../../../src/delivery/sending/Slots.ts"
import { shareOf } from "../../../src/delivery/sending/WorkerProcess.ts"

const take = (slots: Slots, webhookId: string, organizationId = "org_a", patienceMs = 0) =>
  Effect.runPromise(slots.take({ webhookId, organizationId }, performance.now() + patienceMs))

test("a webhook has its share of slots, and the next attempt gets none", async () => {
  const slots = new Slots(() => 2)
  await take(slots, "whs_a")
  const second = await take(slots, "whs_a")
  expect(await take(slots, "whs_a")).toBeUndefined()
  expect(await take(slots, "whs_b")).toBeDefined()
  second?.()
  expect(await take(slots, "whs_a")).toBeDefined()
})

test("attempts that wait get slots in the order in which they came", async () => {
  const slots = new Slots(() => 1)
  const first = await take(slots, "whs_a")
  const order: Array<number> = []
  const waiting = [1, 2, 3].map(async (number) => {
    const release = await take(slots, "whs_a", "org_a", 5_000)
    order.push(number)
    release?.()
  })
  first?.()
  await Promise.all(waiting)
  expect(order).toEqual([1, 2, 3])
})

test("an attempt that is interrupted as it is let in keeps no slot", async () => {
  const slots = new Slots(() => 1)
  const first = await take(slots, "whs_a")
  const waiting = Effect.runFork(slots.take({ webhookId: "whs_a", organizationId: "org_a" }, performance.now() + 5_000))
  await new Promise(setImmediate)
  first?.()
  await Effect.runPromise(Fiber.interrupt(waiting))
  expect(slots.of("whs_a")).toBe(0)
})

test("an organization has at most a quarter of all slots, also for its drains", async () => {
  const slots = new Slots(() => SLOTS)
  for (let count = 0; count < SLOTS / 4; count++)
    expect(slots.takeNow({ webhookId: `whs_${count % 50}`, organizationId: "org_a" })).toBeDefined()
  expect(slots.takeNow({ webhookId: "whs_0", organizationId: "org_a" })).toBeUndefined()
  expect(await take(slots, "whs_0")).toBeUndefined()
  expect(await take(slots, "whs_0", "org_b")).toBeDefined()
})

test("webhooks of an organization that have many slots leave some to the others", async () => {
  const slots = new Slots(() => SLOTS)
  while (slots.takeNow({ webhookId: "whs_greedy", organizationId: "org_a" }) !== undefined) {}
  for (let count = 0; count < 50; count++) {
    expect(await take(slots, `whs_${count}`)).toBeDefined()
    expect(await take(slots, `whs_${count}`)).toBeUndefined()
  }
  // They end: with one attempt each, an organization has a third of all.
  let more = 0
  while (slots.takeNow({ webhookId: `whs_more_${more}`, organizationId: "org_a" }) !== undefined) more++
  expect(SLOTS / 4 + 50 + more).toBe(Math.ceil(SLOTS / 3))
})

test("organizations that take what they get leave slots to others", async () => {
  const slots = new Slots(() => SLOTS)
  const taken = (organizationId: string) => {
    let count = 0
    while (slots.takeNow({ webhookId: `whs_${organizationId}`, organizationId }) !== undefined) count++
    return count
  }
  const greedy = Array.from({ length: 8 }, (_, number) => taken(`org_${number}`))
  expect(greedy[0]).toBe(SLOTS / 4)
  expect(taken("org_late")).toBeGreaterThan(20)
})

test("releasing a slot twice frees one", async () => {
  const slots = new Slots(() => 1)
  const release = await take(slots, "whs_a")
  release?.()
  release?.()
  expect(slots.of("whs_a")).toBe(0)
  await take(slots, "whs_a")
  expect(await take(slots, "whs_a")).toBeUndefined()
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
