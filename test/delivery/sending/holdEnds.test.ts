/** The end of a hold: an endpoint that answers is not down, whatever it thinks of single deliveries. C-5. */
import { expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

/** More than the oldest ten, of which probes choose. */
const REFUSED = 12
const LATER = 50

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({
  ...receiverEnv(receiver),
  WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s,1s,1s,1h,1h",
  WEBHOOK_HOLD_AFTER: "1s",
  WEBHOOK_PROBE_SCHEDULE: "1s"
}))

test("a hold ends when the endpoint answers again, even if it rejects the oldest deliveries", async () => {
  let down = true
  receiver.on(
    "/hook",
    ({ headers }) => new Response("", { status: down ? 503 : Number(headers["webhook-sequence"]) <= REFUSED ? 409 : 200 })
  )
  const key = await feedOrganization(app, 1)
  const { id } = await webhookOf(app, key, 0, receiver.url("/hook"))
  const health = async () => (await app.get(`/v1/webhooks/${id}`, key)).json.health
  const feed = (count: number) =>
    feedTransactions(
      app,
      Array.from({ length: count }, () => 0)
    )
  await feed(REFUSED)
  await until("the hold", async () => {
    const { heldDeliveries, state } = await health()
    return state === "HOLDING" && heldDeliveries === REFUSED
  })
  down = false
  await feed(LATER)
  await until("the end of the hold", async () => (await health()).state !== "HOLDING")
  const after = await until("the other deliveries", async () => {
    const all = await deliveriesOf(app, key, id)
    return all.filter(({ status }) => status === "DELIVERED").length === LATER && all
  })
  const delivered = after.filter(({ sequence }) => sequence > REFUSED).map(({ status }) => status)
  expect(delivered).toEqual(Array.from({ length: LATER }, () => "DELIVERED"))
  // The others go on with their own schedule.
  const own = await until("the attempts of the others", async () => {
    const rejected = (await deliveriesOf(app, key, id)).filter(({ sequence }) => sequence <= REFUSED)
    return rejected.every(({ status }) => status !== "HELD") && rejected
  })
  expect(own).toHaveLength(REFUSED)
  expect(own.filter(({ status }) => status !== "RETRYING" && status !== "FAILED")).toEqual([])
  expect((await app.get(`/v1/webhooks/${id}`, key)).json.status).toBe("ACTIVE")
  // The e-mail says so.
  const [notice] = await until("the notice", async () => {
    const found = await app.sql("SELECT subject, body FROM notices WHERE webhook_id = $1 AND cause LIKE 'recovered/%'", [id])
    return found.length > 0 && found
  })
  expect(notice?.["subject"]).toEndWith(" answers again, but not everything was delivered (localhost)")
  const counts = /^Retried: +(\d+) deliver\w+\nFailed: +(\d+) deliver/m.exec(String(notice?.["body"]))
  expect(Number(counts?.[1]) + Number(counts?.[2])).toBeGreaterThan(0)
  expect(notice?.["body"]).not.toContain("No action is needed")
})

test("a hold whose recovery is paused and canceled is not announced as recovered", async () => {
  receiver.on("/gone", () => new Response("", { status: 500 }))
  const key = await feedOrganization(app, 1)
  await feedTransactions(
    app,
    Array.from({ length: 30 }, () => 0)
  )
  await until("the outbox", async () => (await app.sql("SELECT 1 FROM event_outbox LIMIT 1")).length === 0)
  const { id } = await webhookOf(app, key, 0, receiver.url("/gone"))
  const since = new Date(Date.now() - 3_600_000).toISOString()
  const recovery = (await app.request("POST", `/v1/webhooks/${id}/recoveries`, { key, body: { since } })).json
  const command = async (verb: string) =>
    expect((await app.request("POST", `/v1/webhook-recoveries/${recovery.id}/${verb}`, { key })).status).toBe(200)
  const mails = async () =>
    (await app.sql("SELECT split_part(cause, '/', 1) AS kind FROM notices WHERE webhook_id = $1", [id])).map(({ kind }) => kind)
  await until("the hold", async () => (await mails()).includes("held"))
  await command("pause")
  await until("the end of the hold", async () => (await app.get(`/v1/webhooks/${id}`, key)).json.health.state !== "HOLDING")
  await command("cancel")
  await until("the end of its queue", async () => (await app.sql("SELECT 1 FROM webhook_queues WHERE webhook_id = $1", [id])).length === 0)
  expect(await mails()).toEqual(["held"])
  const log = (await app.get("/v1/audit-log?limit=500", key)).json.data.filter(
    ({ target }: { readonly target: { readonly id: string } }) => target.id === id
  )
  const actions = log.map(({ action }: { readonly action: string }) => action)
  expect(actions.filter((action: string) => action === "webhook.held" || action === "webhook.released")).toEqual([
    "webhook.released",
    "webhook.held"
  ])
})

test("a probe that ends after its queue leaves its delivery in a new queue", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  let mode: "down" | "hang" | "up" = "down",
    hanging = false
  receiver.on("/late", async () => {
    const answered = mode
    if (answered === "hang") {
      hanging = true
      await released
    }
    return new Response("", { status: answered === "up" ? 200 : 503 })
  })
  const key = await feedOrganization(app, 1)
  const { id } = await webhookOf(app, key, 0, receiver.url("/late"))
  await feedTransactions(app, [0, 0])
  await until("the hold", async () => (await app.get(`/v1/webhooks/${id}`, key)).json.health.state === "HOLDING")
  mode = "hang"
  await until("the probe", () => hanging)
  // As if its worker had stalled: the deliveries wait as after an interruption, and the hold ended.
  await app.sql("UPDATE deliveries SET status = 'RETRYING', next_attempt_at = now() + interval '1 hour' WHERE webhook_id = $1", [id])
  for (const table of ["webhook_queues", "webhook_health"]) await app.sql(`DELETE FROM ${table} WHERE webhook_id = $1`, [id])
  mode = "up"
  release()
  await until("the delivery", async () => (await deliveriesOf(app, key, id)).some(({ status }) => status === "DELIVERED"))
})

test("a queued delivery is attempted although the schedule is shorter than its attempts", async () => {
  receiver.on("/shorter", () => new Response(""))
  const key = await feedOrganization(app, 1)
  const { id } = await webhookOf(app, key, 0, receiver.url("/shorter"), { status: "PAUSED" })
  await feedTransactions(app, [0])
  const delivery = await until("the delivery", async () => (await deliveriesOf(app, key, id))[0])
  // As if it had been attempted eight times, and WEBHOOK_RETRY_SCHEDULE had seven afterwards.
  await app.sql(
    `INSERT INTO delivery_attempts (delivery_id, number, at, result, http_status, organization_id, webhook_id, process_id)
     SELECT $1, n, now() - interval '1 hour', '5xx', 500, 'org_a', $2, 'gone' FROM generate_series(1, 8) n`,
    [delivery.id, id]
  )
  await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "ACTIVE" } })
  await until("its end", async () => (await deliveriesOf(app, key, id))[0]?.status === "DELIVERED")
  expect(receiver.to("/shorter")).toHaveLength(1)
})
