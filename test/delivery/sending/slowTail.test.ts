/** One slow answer does not keep a webhook's queue waiting. C-5. */
import { expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

/** Deliveries that a step of the drain, of two seconds, cannot send one after the other. */
const QUEUED = 24

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_MAX_IN_FLIGHT: "2" }))

test("a recovery leaves slots free for events, however long its attempts take", async () => {
  let inFlight = 0,
    most = 0
  receiver.on("/slow", async () => {
    most = Math.max(most, ++inFlight)
    // Longer than a step of the drain.
    await Bun.sleep(4_000)
    inFlight--
    return new Response("")
  })
  const key = await feedOrganization(app, 1)
  await feedTransactions(app, [0, 0, 0])
  const { id } = await webhookOf(app, key, 0, receiver.url("/slow"))
  const since = new Date(Date.now() - 3_600_000).toISOString()
  expect((await app.request("POST", `/v1/webhooks/${id}/recoveries`, { key, body: { since } })).status).toBe(202)
  const statuses = async () => (await deliveriesOf(app, key, id)).map(({ status }) => status)
  await until("the recovered events", async () => {
    const all = await statuses()
    return all.length === 3 && all.every((status) => status === "DELIVERED")
  })
  expect(most).toBe(1)
  await app.request("DELETE", `/v1/webhooks/${id}`, { key })
})

test("a queue is sent while one of its attempts is in flight", async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  receiver.on("/hook", async ({ headers }) => {
    await (headers["webhook-sequence"] === "1" ? promise : Bun.sleep(100))
    return new Response("")
  })
  const key = await feedOrganization(app, 1)
  const { id } = await webhookOf(app, key, 0, receiver.url("/hook"), { status: "PAUSED" })
  await feedTransactions(
    app,
    Array.from({ length: QUEUED }, () => 0)
  )
  const statuses = async () => (await deliveriesOf(app, key, id)).map(({ status }) => status)
  await until("the queue", async () => (await statuses()).filter((status) => status === "HELD").length === QUEUED)
  await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "ACTIVE" } })
  await until("the others", async () => (await statuses()).filter((status) => status === "DELIVERED").length === QUEUED - 1)
  const open = () => app.sql("SELECT 1 FROM delivery_attempts WHERE webhook_id = $1 AND result IS NULL", [id])
  expect(await open()).toHaveLength(1)
  resolve()
  await until("the slow one", async () => (await statuses()).every((status) => status === "DELIVERED"))
  expect(receiver.to("/hook")).toHaveLength(QUEUED)
  await until("the end of the queue", async () => (await app.sql("SELECT 1 FROM webhook_queues")).length === 0)
})
