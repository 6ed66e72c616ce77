/**
 * Sending everything that waits for a webhook while the process is killed: everything is queued, everything is sent, and
 * only attempts in flight are sent twice. C-5.
 */
import { expect, test } from "bun:test"
import { useApp } from "../support/app.ts"
import { feedOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { long, report } from "./Rig.ts"

const receiver = useReceiver()
const ALL = ["api", "worker", "dispatcher"]
const app = useApp(ALL, () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1h", WEBHOOK_HOLD: "off" }))
/** More than one part of those that are queued at once. */
const EVENTS = long ? 20_000 : 240
const KILLS = long ? 10 : 1

const counted = async (id: string) => {
  const rows = await app.sql("SELECT status, count(*)::int AS count FROM deliveries WHERE webhook_id = $1 GROUP BY status", [id])
  return Object.fromEntries(rows.map(({ count, status }) => [String(status), Number(count)]))
}

test(`${EVENTS} waiting deliveries are queued and drained while the process is killed ${KILLS} times`, async () => {
  const key = await feedOrganization(app, 1)
  let down = true
  receiver.on("/hook", () => new Response("", { status: down ? 400 : 200 }))
  const { id } = await webhookOf(app, key, 0, receiver.url("/hook"))
  await app.feed(Array.from({ length: EVENTS }, (_, number) => transaction("vault_0", 10_000 + number)))
  await until("first attempts", async () => (await counted(id))["RETRYING"] === EVENTS, 300)
  await app.main?.end()
  app.main = await app.start(["api"])
  // As an owner's retry of everything that waits does.
  await app.sql("INSERT INTO webhook_queues (webhook_id, live, due, retries_queued) VALUES ($1, true, now(), false)", [id])
  await app.sql("INSERT INTO commands (key) VALUES ('drain/' || $1)", [id])
  await app.main.end()
  down = false
  const before = receiver.to("/hook").length
  const killed = await app.start(ALL, { FAIL_AT: long ? "retries-queued:3" : "retries-queued:1" })
  app.main = killed
  // The workflows of the webhook's retries are started first.
  await until("its end", () => killed.child.signalCode === "SIGKILL", long ? 300 : 60)
  const some = await counted(id)
  expect(some["HELD"]).toBeGreaterThan(0)
  expect(some["RETRYING"]).toBeGreaterThan(0)
  app.main = await app.start(ALL)
  const startedAt = performance.now()
  for (let kill = 1; kill <= KILLS; kill++) {
    await until("a part", async () => receiver.to("/hook").length - before > (EVENTS / (KILLS + 1)) * kill, 120)
    await app.main.end("SIGKILL")
    app.main = await app.start(ALL)
  }
  await until("everything is delivered", async () => (await counted(id))["DELIVERED"] === EVENTS, 240)
  const seconds = (performance.now() - startedAt) / 1_000
  const requests = receiver.to("/hook").slice(before)
  const [row] = await app.sql(
    "SELECT count(*)::int AS attempts FROM delivery_attempts t JOIN deliveries d ON d.id = t.delivery_id WHERE d.webhook_id = $1 AND t.number > 1",
    [id]
  )
  const repeated = requests.length - new Set(requests.map(({ headers }) => headers["webhook-id"])).size
  report("queued and drained", { events: EVENTS, kills: KILLS, perSecond: Math.round(EVENTS / seconds), repeated })
  expect(new Set(requests.map(({ headers }) => headers["webhook-id"])).size).toBe(EVENTS)
  expect(repeated).toBeLessThanOrEqual(8 * KILLS)
  // Each request has its row, and so has an attempt that began but was not sent when the process died.
  expect(Number(row?.["attempts"])).toBeGreaterThanOrEqual(requests.length)
  expect(Number(row?.["attempts"])).toBeLessThanOrEqual(requests.length + 8 * KILLS)
  await until("the end of the queue", async () => (await app.sql("SELECT 1 FROM webhook_queues")).length === 0)
  // Waiting workflows have ended, and the next event is sent as usual.
  await until("commands", async () => (await app.sql("SELECT 1 FROM commands")).length === 0)
  await feedTransactions(app, [0])
  await until("the next event", async () => (await counted(id))["DELIVERED"] === EVENTS + 1)
}, 900_000)
