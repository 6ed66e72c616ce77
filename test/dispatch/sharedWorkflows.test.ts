/** When first attempts share workflows by default: in a burst, and above 60 a second, however few each claim finds. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import type { Client } from "@temporalio/client"
import { RecentRate } from "../../src/dispatch/RecentRate.ts"
import { type Answer, useApp } from "../support/app.ts"
import { deliveriesOf, settle, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { operator } from "../support/temporal.ts"

/** Webhooks that each record matches, and records of a round. */
const WEBHOOKS = 8,
  RECORDS = 40
/** Deliveries of a claim that do not share a workflow for their number: so many at most are outstanding. */
const FEW = 16
/** A rate of deliveries that is clearly above 60 a second, and how many rounds a busy machine gets to reach it. */
const FAST = 80,
  ROUNDS = 5

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
  const webhooks: Array<Answer["json"]> = []
  for (let count = 0; count < WEBHOOKS; count++) webhooks.push(await webhookOf(app, key, 1, receiver.url(`/steady/${count}`)))
  let posted = 0
  const received = () => webhooks.reduce((sum, _, count) => sum + receiver.to(`/steady/${count}`).length, 0)
  const round = async (): Promise<number> => {
    const from = performance.now()
    for (const last = posted + RECORDS; posted < last; ) {
      if ((posted + 1) * WEBHOOKS - received() <= FEW) await app.feed([transaction("vault_1", 1_000 + posted++)])
      else await Bun.sleep(1)
    }
    return (RECORDS * WEBHOOKS * 1_000) / (performance.now() - from)
  }
  for (let rounds = 1; (await round()) < FAST; rounds++)
    if (rounds === ROUNDS) throw new Error(`fewer than ${FAST} deliveries a second in each round`)
  for (const [count, { id }] of webhooks.entries()) {
    const deliveries = await delivered(id, posted)
    expect(deliveries.map(({ attempts }) => attempts.length)).toEqual(Array.from({ length: posted }, () => 1))
    expect(receiver.to(`/steady/${count}`)).toHaveLength(posted)
  }
  const groups = await Promise.all(
    (await workflows("firstAttempts")).map(async (id) => Object.values(await client.workflow.getHandle(id).result()))
  )
  expect(groups.every(({ length }) => length <= FEW)).toBe(true)
  expect(groups.flat().length).toBeGreaterThan((RECORDS * WEBHOOKS) / 2)
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
