/** A queue at an endpoint that works but fails now and then is sent at full speed. C-5. */
import { expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { feedOrganization, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { transaction } from "../../support/records.ts"

const EVENTS = 400
/** Each of these first attempts fails: a pause of a second or two after each would take a minute. */
const FAILS = 10
/** How long the queue may take, in ms. */
const SOON_MS = 45_000

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s,1s" }))

test(`${EVENTS} queued deliveries, with one first attempt in ${FAILS} failing, are sent within ${SOON_MS / 1_000} s`, async () => {
  const key = await feedOrganization(app, 1)
  receiver.on(
    "/hook",
    ({ headers }) =>
      new Response("", { status: headers["x-service-attempt"] === "1" && Number(headers["webhook-sequence"]) % FAILS === 0 ? 503 : 200 })
  )
  const { id } = await webhookOf(app, key, 0, receiver.url("/hook"), { status: "PAUSED" })
  await app.feed(Array.from({ length: EVENTS }, (_, number) => transaction("vault_0", 30_000 + number)))
  const counted = async (status: string) => {
    const [row] = await app.sql("SELECT count(*)::int AS count FROM deliveries WHERE webhook_id = $1 AND status = $2", [id, status])
    return Number(row?.["count"])
  }
  await until("the queue", async () => (await counted("HELD")) === EVENTS)
  const startedAt = performance.now()
  await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "ACTIVE" } })
  await until("all deliveries", async () => (await counted("DELIVERED")) === EVENTS)
  expect(performance.now() - startedAt).toBeLessThan(SOON_MS)
  expect(receiver.to("/hook")).toHaveLength(EVENTS + EVENTS / FAILS)
})
