/** When first attempts share workflows by default: in a burst, and above 60 a second, however few each claim finds. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import type { Client } from "@temporalio/client"
import { RecentRate } from "../../src/dispatch/RecentRate.ts"
import { type Answer, useApp } from "../support/app.ts"
import { deliveriesOf, feedOrganization, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { operator } from "../support/temporal.ts"

/** Webhooks that each record matches: a claim of one record finds too few to share a workflow for their number. */
const WEBHOOKS = 16
/** Records of a burst: with their deliveries, the last second had more than 60. They share so few workflows that the next record is claimed beside them. */
const BURST = 6
/** Records that follow a burst one by one. */
const SINGLES = 5
/** How many times a busy machine, which claims late, may try. */
const TRIES = 20

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => receiverEnv(receiver))
let key = "",
  client: Client,
  close: () => Promise<void>

beforeAll(async () => {
  ;({ client, close } = await operator())
  key = await feedOrganization(app, 2)
})
afterAll(() => close())

const delivered = (webhookId: string, count: number) =>
  until(`${count} deliveries`, async () => {
    const all = await deliveriesOf(app, key, webhookId)
    return all.length === count && all.every(({ status }) => status === "DELIVERED") && all
  })
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
})

test("Decision D-48: above 60 deliveries a second, those that a claim finds share a workflow, however few they are", async () => {
  const webhooks: Array<Answer["json"]> = []
  for (let count = 0; count < WEBHOOKS; count++) webhooks.push(await webhookOf(app, key, 1, receiver.url(`/steady/${count}`)))
  let posted = 0
  const post = (count: number) => app.feed(Array.from({ length: count }, () => transaction("vault_1", 1_000 + posted++)))
  /** The deliveries in each shared workflow. */
  const groups = async () =>
    Promise.all((await workflows("firstAttempts")).map(async (id) => Object.keys(await client.workflow.getHandle(id).result())))
  /** Whether the deliveries of a record that follows a burst share a workflow, and with no others. */
  const attempt = async (): Promise<boolean> => {
    await post(BURST)
    for (let single = 0; single < SINGLES; single++) await post(1)
    const eventOf = await until("all deliveries", async () => {
      const rows = await app.sql("SELECT id, event_id FROM deliveries WHERE status = 'DELIVERED' AND webhook_id = ANY($1)", [
        webhooks.map(({ id }) => id)
      ])
      return rows.length === posted * WEBHOOKS && new Map(rows.map((row) => [String(row["id"]), row["event_id"]]))
    })
    return (await groups()).some((ids) => ids.length > 1 && new Set(ids.map((id) => eventOf.get(id))).size === 1)
  }
  let shared = false
  for (let tries = 0; !shared && tries < TRIES; tries++) shared = await attempt()
  expect(shared).toBe(true)
  for (const [count, { id }] of webhooks.entries()) {
    const deliveries = await delivered(id, posted)
    expect(deliveries.map(({ attempts }) => attempts.length)).toEqual(Array.from({ length: posted }, () => 1))
    expect(receiver.to(`/steady/${count}`)).toHaveLength(posted)
  }
})

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
