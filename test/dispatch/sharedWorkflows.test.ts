/** When first attempts share workflows by default: in a burst, and above 60 a second, however few each claim finds. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import type { Client } from "@temporalio/client"
import { RecentRate } from "../../src/dispatch/RecentRate.ts"
import { type Answer, useApp } from "../support/app.ts"
import { deliveriesOf, feedOrganization, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { operator } from "../support/temporal.ts"

/** Webhooks that each record of a burst matches, and its records: with their deliveries, the last second had more than 60. They share so few workflows that the next record is claimed beside them. */
const BURST_WEBHOOKS = 8,
  BURST = 9
/** Webhooks that each record after a burst matches, too few to share a workflow for their number; and how many such records follow one by one. */
const WEBHOOKS = 2,
  SINGLES = 5
/** How many times a busy machine, which claims late, may try. */
const TRIES = 20

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => receiverEnv(receiver))
let key = "",
  client: Client,
  close: () => Promise<void>

beforeAll(async () => {
  ;({ client, close } = await operator())
  key = await feedOrganization(app, 3)
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
  const webhooksOf = async (vault: number, count: number) => {
    const made: Array<Answer["json"]> = []
    for (let number = 0; number < count; number++) made.push(await webhookOf(app, key, vault, receiver.url(`/vault-${vault}/${number}`)))
    return made
  }
  const [burst, singles] = [await webhooksOf(1, BURST_WEBHOOKS), await webhooksOf(2, WEBHOOKS)]
  let tries = 0,
    posted = 0
  const post = (vault: string, count: number) => app.feed(Array.from({ length: count }, () => transaction(vault, 1_000 + posted++)))
  /** The deliveries in each shared workflow. */
  const groups = async () =>
    Promise.all((await workflows("firstAttempts")).map(async (id) => Object.keys(await client.workflow.getHandle(id).result())))
  /** Whether the deliveries of a record that follows a burst share a workflow, and with no others. */
  const attempt = async (): Promise<boolean> => {
    tries++
    await post("vault_1", BURST)
    for (let single = 0; single < SINGLES; single++) await post("vault_2", 1)
    const eventOf = await until("all deliveries", async () => {
      const rows = await app.sql("SELECT id, event_id FROM deliveries WHERE status = 'DELIVERED' AND webhook_id = ANY($1)", [
        [...burst, ...singles].map(({ id }) => id)
      ])
      const all = tries * (BURST * BURST_WEBHOOKS + SINGLES * WEBHOOKS)
      return rows.length === all && new Map(rows.map((row) => [String(row["id"]), row["event_id"]]))
    })
    return (await groups()).some((ids) => ids.length > 1 && new Set(ids.map((id) => eventOf.get(id))).size === 1)
  }
  let shared = false
  while (!shared && tries < TRIES) shared = await attempt()
  expect(shared).toBe(true)
  for (const { id, url } of [...burst, ...singles]) {
    const count = tries * (burst.some((one) => one.id === id) ? BURST : SINGLES)
    const deliveries = await delivered(id, count)
    expect(deliveries.map(({ attempts }) => attempts.length)).toEqual(Array.from({ length: count }, () => 1))
    expect(receiver.to(new URL(url).pathname)).toHaveLength(count)
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
