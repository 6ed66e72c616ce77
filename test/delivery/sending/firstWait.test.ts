/** A schedule whose first wait is not zero. Decision D-20. */
import { expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "5s,1s" }))

test("the first wait is kept and shown, and applies before a redelivery, too", async () => {
  const key = await feedOrganization(app, 1)
  const webhook = await webhookOf(app, key, 0, receiver.url("/hook"))
  await feedTransactions(app, [0])
  const waits = async (count: number) => {
    const { createdAt, id, nextAttemptAt } = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "PENDING")
    expect(Date.parse(nextAttemptAt) - Date.parse(createdAt)).toBeGreaterThanOrEqual(5_000)
    expect(Date.parse(nextAttemptAt) - Date.parse(createdAt)).toBeLessThan(5_500)
    const request = await until("the request", () => receiver.to("/hook")[count])
    expect(request.at - Date.parse(createdAt)).toBeGreaterThanOrEqual(5_000)
    await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
    return id
  }
  const id = await waits(0)
  expect((await app.request("POST", `/v1/webhook-deliveries/${id}/redeliver`, { key })).status).toBe(202)
  await waits(1)
})
