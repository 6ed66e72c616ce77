/** An attempt whose beginning was committed although its process never heard so: nothing waits for it for longer than a minute. */
import { expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { deliveriesOf, deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_MAX_IN_FLIGHT: "1" }))

test("a queue whose only place such an attempt takes is sent", async () => {
  const key = await feedOrganization(app, 1)
  const webhook = await webhookOf(app, key, 0, receiver.url("/queue"), { status: "PAUSED" })
  await feedTransactions(app, [0])
  const first = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "HELD")
  await app.sql(
    `INSERT INTO delivery_attempts (delivery_id, number, at, organization_id, webhook_id, process_id)
     SELECT d.id, 1, now() - interval '40 seconds', d.organization_id, d.webhook_id, p.id FROM deliveries d, processes p
     WHERE d.id = $1 AND p.role = 'worker'`,
    [first.id]
  )
  await app.request("PATCH", `/v1/webhooks/${webhook.id}`, { key, body: { status: "ACTIVE" } })
  await feedTransactions(app, [0])
  await until("both requests", () => receiver.to("/queue").length === 2)
  await until("both outcomes", async () => (await deliveriesOf(app, key, webhook.id)).every(({ status }) => status === "DELIVERED"))
  const rows = await app.sql("SELECT number, result FROM delivery_attempts WHERE delivery_id = $1 ORDER BY number", [first.id])
  expect(rows).toEqual([
    { number: 1, result: "interrupted" },
    { number: 2, result: "2xx" }
  ])
})
