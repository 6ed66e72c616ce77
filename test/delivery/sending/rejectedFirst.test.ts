/** A queue does not wait for what the endpoint rejects. C-5. */
import { expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

const REJECTED = 12
/** From the resume to the delivery behind those that are rejected: a pause of a second or two after each would take longer. */
const SECONDS = 10

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => receiverEnv(receiver))

test("rejected deliveries at the head of a resumed queue do not delay the next one", async () => {
  receiver.on("/hook", ({ headers }) => new Response("", { status: Number(headers["webhook-sequence"]) <= REJECTED ? 400 : 200 }))
  const key = await feedOrganization(app, 1)
  const { id } = await webhookOf(app, key, 0, receiver.url("/hook"))
  const patch = (status: string) => app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status } })
  expect((await patch("PAUSED")).status).toBe(200)
  await feedTransactions(
    app,
    Array.from({ length: REJECTED + 1 }, () => 0)
  )
  await until("all are held", async () => {
    const all = await deliveriesOf(app, key, id)
    return all.length === REJECTED + 1 && all.every(({ status }) => status === "HELD")
  })
  const resumedAt = performance.now()
  expect((await patch("ACTIVE")).status).toBe(200)
  const good = () => receiver.to("/hook").find(({ headers }) => headers["webhook-sequence"] === String(REJECTED + 1))
  await until("the request of the last one", good)
  expect((performance.now() - resumedAt) / 1_000).toBeLessThan(SECONDS)
  // The others go on with their own schedules.
  const all = await until("the attempts of the others", async () => {
    const all = await deliveriesOf(app, key, id)
    return all.every(({ status }) => status !== "HELD" && status !== "PENDING") && all
  })
  const statuses = all.toSorted((a, b) => a.sequence - b.sequence).map(({ status }) => status)
  expect(statuses).toEqual([...Array.from({ length: REJECTED }, () => "RETRYING"), "DELIVERED"])
})
