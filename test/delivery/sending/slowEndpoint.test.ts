/** An endpoint that works but is slower than its events: its deliveries are held until their turn, at no cost to others. C-5. */
import { expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { transaction } from "../../support/records.ts"

const receiver = useReceiver()
/** Attempts in flight: so few that even a busy machine starts deliveries faster than the endpoint responds. */
const IN_FLIGHT = 2
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_MAX_IN_FLIGHT: String(IN_FLIGHT) }))
/** The duration of a response, in ms, and events beyond what the endpoint accepts: fed at once, and while those are held. */
const TAKES = 1_000,
  BURST = 20,
  LATER = 10

test("deliveries to an endpoint that cannot keep up are held and sent in order", async () => {
  const key = await feedOrganization(app, 1)
  receiver.on("/slow", async () => {
    await Bun.sleep(TAKES)
    return new Response("")
  })
  const { id } = await webhookOf(app, key, 0, receiver.url("/slow"))
  const health = async () => (await app.get(`/v1/webhooks/${id}`, key)).json.health
  const delivered = async () => (await deliveriesOf(app, key, id)).filter(({ status }) => status === "DELIVERED").length
  const isHeld = async () => (await app.sql("SELECT 1 FROM webhook_queues WHERE webhook_id = $1", [id])).length > 0
  await feedTransactions(app, [0])
  await until("the first delivery, which shows that it is slow", async () => (await delivered()) === 1)
  let all = 1
  const feed = async (count: number) => {
    await app.feed(Array.from({ length: count }, (_, index) => transaction("vault_0", 1_000 + all + index)))
    all += count
  }
  await until("what is held", async () => {
    // A busy machine may start deliveries so late that none waits.
    if ((await delivered()) === all) await feed(BURST)
    return (await health()).heldDeliveries > 0
  })
  expect((await health()).state).toBe("HEALTHY")
  await feed(LATER)
  await until("all of them", async () => (await delivered()) === all, 90)
  expect((await deliveriesOf(app, key, id)).map(({ attempts }) => attempts.length)).toEqual(Array.from({ length: all }, () => 1))

  const order = receiver.to("/slow").map(({ headers }) => Number(headers["webhook-sequence"]))
  expect(order).toHaveLength(all)
  // Those recorded while others were held have no workflow and are sent in order, but for those in flight together. An earlier
  // one, whose workflow waits for its turn itself, may come between them.
  const rows = await app.sql("SELECT sequence FROM deliveries WHERE webhook_id = $1 AND NOT started ORDER BY sequence", [id])
  const held = rows.map(({ sequence }) => Number(sequence))
  expect(held.length).toBeGreaterThanOrEqual(LATER)
  const sent = order.filter((number) => held.includes(number))
  const places = sent.map((number, index) => Math.abs(held.indexOf(number) - index))
  const distance = places.reduce((sum, one) => sum + one, 0) / places.length
  expect(distance, `the order was ${order}`).toBeLessThanOrEqual(IN_FLIGHT)
  await until("the end of the hold", async () => !(await isHeld()))
  expect(await app.sql("SELECT 1 FROM notices WHERE webhook_id = $1", [id])).toEqual([])
})
