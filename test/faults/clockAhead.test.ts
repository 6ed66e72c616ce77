/**
 * A sending process whose clock is a month ahead: what is held is found by the database's time, so a resume sends it all, and
 * nothing is taken for expired. Needs libfaketime. Reliability F22.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { App } from "../support/app.ts"
import { Clock, canShift } from "../support/clock.ts"
import { feedOrganization, webhookOf } from "../support/deliveryFixtures.ts"
import { statusesOf } from "../support/manyWebhooks.ts"
import { Receiver, receiverEnv, until } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"

const DAY = 86_400
/** For how long a delivery may be held, in days. */
const HELD_DAYS = 31
const EVENTS = 30

describe.skipIf(!canShift)("a sending process whose clock is a month ahead", () => {
  const receiver = new Receiver()
  const app = new App()
  const clock = canShift ? new Clock() : undefined
  let key = ""

  beforeAll(async () => {
    await receiver.open()
    await app.open(["api"], receiverEnv(receiver))
    clock?.shift(HELD_DAYS * DAY + 60)
    await app.start(["worker", "dispatcher"], clock?.env)
    key = await feedOrganization(app, 1)
  })
  afterAll(async () => {
    await app.close()
    await receiver.close()
    clock?.remove()
  })

  test("sends everything that is held when its webhook is resumed", async () => {
    const { id } = await webhookOf(app, key, 0, receiver.url("/held"), { status: "PAUSED" })
    await app.feed(Array.from({ length: EVENTS }, (_, number) => transaction("vault_0", number + 1)))
    await until("held deliveries", async () => (await statusesOf(app))["HELD"] === EVENTS)
    expect((await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "ACTIVE" } })).status).toBe(200)
    await until("all deliveries", async () => (await statusesOf(app))["DELIVERED"] === EVENTS).catch(() => undefined)
    expect(await statusesOf(app)).toEqual({ DELIVERED: EVENTS })
    // It was the process whose clock is ahead that sent them.
    const [first] = receiver.to("/held")
    expect(Number(first?.headers["webhook-timestamp"]) - Date.now() / 1_000).toBeGreaterThan((HELD_DAYS - 1) * DAY)
    expect(receiver.to("/held")).toHaveLength(EVENTS)
  })
})
