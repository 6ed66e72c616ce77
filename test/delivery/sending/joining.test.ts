/**
 * A worker that starts beside another takes no task before it has a share of the attempts in flight: it would have to queue what
 * it gets. Decision D-52.
 */
import { expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

/** Retries of each delivery while the worker joins, a second apart. */
const RETRIES = 8

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({
  ...receiverEnv(receiver),
  WEBHOOK_RETRY_SCHEDULE: `0s${",1s".repeat(RETRIES)}`,
  WEBHOOK_HOLD: "off"
}))

test("deliveries in progress stay out of the queue while a second worker joins", async () => {
  const key = await feedOrganization(app, 1)
  receiver.on("/hook", () => new Response("", { status: 500 }))
  const { id } = await webhookOf(app, key, 0, receiver.url("/hook"))
  for (let event = 0; event < 4; event++) await feedTransactions(app, [0])
  await until("first attempts", () => receiver.to("/hook").length >= 4)
  const second = await app.start(["worker"])
  const queued: Array<unknown> = []
  await until("the end of the deliveries", async () => {
    queued.push(...(await app.sql("SELECT webhook_id FROM webhook_queues WHERE webhook_id = $1", [id])))
    const rows = await app.sql("SELECT 1 FROM deliveries WHERE webhook_id = $1 AND status <> 'FAILED'", [id])
    return rows.length === 0
  })
  expect(queued).toEqual([])
  expect(receiver.to("/hook")).toHaveLength(4 * (RETRIES + 1))
  await until("tasks for the second worker", () => second.output().includes("worker started"))
})
