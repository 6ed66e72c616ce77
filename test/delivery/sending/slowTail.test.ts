/** One slow answer does not keep a webhook's queue waiting. C-5. */
import { expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

/** Deliveries that a step of the drain cannot send one after the other. */
const QUEUED = 30

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_MAX_IN_FLIGHT: "2" }))

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
