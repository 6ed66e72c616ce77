/** A recovery goes on beside new events, also after some of its own attempts failed. C-4, C-5. */
import { expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

const RECOVERED = 20
/** Failures in a row after which the drain begins again with a single attempt. */
const FAILING = 3

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s,1s" }))

test("a recovery whose attempts failed goes on while an event is always in flight", async () => {
  const key = await feedOrganization(app, 1)
  await feedTransactions(
    app,
    Array.from({ length: RECOVERED }, () => 0)
  )
  const old = new Set((await app.sql("SELECT id FROM events")).map(({ id }) => String(id)))
  let failing = 0,
    inFlight = 0
  receiver.on("/hook", async ({ headers }) => {
    if (old.has(headers["webhook-id"] ?? "")) return new Response("", { status: ++failing > 1 && failing <= 1 + FAILING ? 500 : 200 })
    inFlight++
    await Bun.sleep(3_000)
    inFlight--
    return new Response("")
  })
  const { id } = await webhookOf(app, key, 0, receiver.url("/hook"))
  const stop = new AbortController()
  const feeding = (async () => {
    for (; !stop.signal.aborted; await Bun.sleep(1_000)) await feedTransactions(app, [0])
  })()
  try {
    await until("an event in flight", () => inFlight > 0)
    const since = new Date(Date.now() - 3_600_000).toISOString()
    const before = new Date((await app.sql("SELECT max(created_at) AS at FROM events WHERE id = ANY($1)", [[...old]]))[0]?.["at"] as Date)
    const body = { since, until: new Date(before.getTime() + 1).toISOString() }
    expect((await app.request("POST", `/v1/webhooks/${id}/recoveries`, { key, body })).status).toBe(202)
    await until("the recovered events", async () => {
      const rows = await app.sql("SELECT status FROM deliveries WHERE webhook_id = $1 AND recovery_id IS NOT NULL", [id])
      return rows.length === RECOVERED && rows.every(({ status }) => status === "DELIVERED")
    })
    expect(failing).toBe(RECOVERED + FAILING)
  } finally {
    stop.abort()
    await feeding
  }
})
