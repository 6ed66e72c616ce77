/** When first attempts share workflows by default: in a burst, and above 60 a second, however few each claim finds. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import type { Client } from "@temporalio/client"
import { RecentRate } from "../../src/dispatch/RecentRate.ts"
import { useApp } from "../support/app.ts"
import { deliveriesOf, settle, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { operator } from "../support/temporal.ts"

/** Records posted one by one, and the time between two posts in ms. */
const RECORDS = 400,
  PACE = 8
/** Deliveries of a claim that are too many to have a workflow each. */
const BURST = 17

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => receiverEnv(receiver))
let key = "",
  client: Client,
  close: () => Promise<void>

beforeAll(async () => {
  ;({ client, close } = await operator())
  key = await settle(app, 2)
}, 60_000)
afterAll(() => close())

const delivered = (webhookId: string, count: number) =>
  until(
    `${count} deliveries`,
    async () => {
      const all = await deliveriesOf(app, key, webhookId)
      return all.length === count && all.every(({ status }) => status === "DELIVERED") && all
    },
    60
  )
const workflows = async (type: "deliver" | "firstAttempts") => {
  const found: Array<string> = []
  const query = `WorkflowType = "${type}" AND TaskQueue = "${app.env["TEMPORAL_TASK_QUEUE"]}"`
  for await (const { workflowId } of client.workflow.list({ query })) found.push(workflowId)
  return found
}

test("Decision D-48: at an ordinary rate, each delivery has its own workflow", async () => {
  const webhook = await webhookOf(app, key, 0, receiver.url("/calm"))
  for (let count = 1; count <= 5; count++) {
    await app.feed([transaction("vault_0", count)])
    await delivered(webhook.id, count)
  }
  const ids = (await deliveriesOf(app, key, webhook.id)).map(({ id }) => id)
  await until("their workflows", async () => (await workflows("deliver")).length === 5)
  expect((await workflows("deliver")).sort()).toEqual(ids.sort())
  expect(await workflows("firstAttempts")).toEqual([])
}, 60_000)

test("Decision D-48: above 60 deliveries a second, those that a claim finds share a workflow, however few they are", async () => {
  const webhook = await webhookOf(app, key, 1, receiver.url("/steady"))
  const posts: Array<Promise<unknown>> = []
  // A busy machine wakes up late: what is due by then is posted at once.
  for (const from = performance.now(); posts.length < RECORDS; await Bun.sleep(PACE)) {
    const due = Math.min(RECORDS, Math.ceil((performance.now() - from) / PACE))
    while (posts.length < due) posts.push(app.feed([transaction("vault_1", 1_000 + posts.length)]))
  }
  await Promise.all(posts)
  const deliveries = await delivered(webhook.id, RECORDS)
  expect(deliveries.map(({ attempts }) => attempts.length)).toEqual(Array.from({ length: RECORDS }, () => 1))
  expect(receiver.to("/steady")).toHaveLength(RECORDS)
  const groups = await Promise.all(
    (await workflows("firstAttempts")).map(async (id) => Object.values(await client.workflow.getHandle(id).result()))
  )
  expect(groups.filter(({ length }) => length < BURST).length).toBeGreaterThan(0)
  expect(groups.flat().length).toBeGreaterThan(RECORDS / 2)
}, 90_000)

test("a rate is that of the last second or so, for each key", async () => {
  const rate = new RecentRate()
  for (let count = 0; count < 10; count++) rate.add("one", 5)
  rate.add("other", 1)
  expect(rate.of("one")).toBeGreaterThan(25)
  expect(rate.of("one")).toBeLessThanOrEqual(50)
  expect([rate.of("other") <= 1, rate.of("none")]).toEqual([true, 0])
  await until("the rate to fall", () => rate.of("one") < 25, 5)
  expect(rate.of("one")).toBeGreaterThan(0)
})
