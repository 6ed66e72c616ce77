/** Webhooks whose owner changes their status while a failure is recorded, or while deliveries are canceled. C-5. Decisions D-22, D-23. */
import { beforeAll, expect, test } from "bun:test"
import pg from "pg"
import { type Answer, useApp } from "../../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({
  ...receiverEnv(receiver),
  WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1h",
  WEBHOOK_HOLD_AFTER: "1s",
  WEBHOOK_PROBE_SCHEDULE: "5m"
}))
let key = ""

beforeAll(async () => {
  key = await feedOrganization(app, 3)
})

const get = async (id: string) => (await app.get(`/v1/webhooks/${id}`, key)).json
const statuses = async (id: string) => (await deliveriesOf(app, key, id)).map(({ status }) => status)
const actions = async (id: string): Promise<ReadonlyArray<string>> =>
  (await app.get("/v1/audit-log?limit=500", key)).json.data.flatMap(({ action, target }: Answer["json"]) =>
    target.id === id ? [action] : []
  )

/** Runs while another transaction is open, which is committed or rolled back in the end. */
const beside = async (statement: string, id: string, end: "COMMIT" | "ROLLBACK", work: () => Promise<void>) => {
  const other = new pg.Client({ connectionString: app.databaseUrl })
  await other.connect()
  try {
    await other.query("BEGIN")
    await other.query(statement, [id])
    await work()
    await other.query(end)
  } finally {
    await other.end()
  }
}

test("a webhook that is paused while a failure would disable it keeps its delivery", async () => {
  receiver.on("/gone", () => new Response("", { status: 410 }))
  const { id } = await webhookOf(app, key, 0, receiver.url("/gone"))
  await feedTransactions(app, [0])
  await until("the first 410", async () => (await get(id)).health.consecutiveFailures > 0)
  await beside("UPDATE webhooks SET status = 'PAUSED' WHERE id = $1", id, "COMMIT", async () => {
    await app.sql("UPDATE webhook_health SET gone_at = gone_at - interval '10 minutes' WHERE webhook_id = $1", [id])
    await until("a failure that disables", async () => {
      const waiting = await app.sql(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%disabled_reason%'"
      )
      return waiting.length > 0
    })
  })
  await until("the recorded failure", async () => {
    const [row] = await app.sql("SELECT gone_at < now() - interval '5 minutes' AS gone FROM webhook_health WHERE webhook_id = $1", [id])
    const open = await app.sql("SELECT 1 FROM delivery_attempts WHERE webhook_id = $1 AND result IS NULL", [id])
    return row?.["gone"] === true && open.length === 0
  })
  expect((await get(id)).status).toBe("PAUSED")
  for (const status of await statuses(id)) expect(["RETRYING", "HELD"]).toContain(status)
  expect(await actions(id)).not.toContain("webhook.disabled")
})

test("canceling what was held, after a disabling, is no recovery of the endpoint", async () => {
  let status = 503
  receiver.on("/down", () => new Response("", { status }))
  const { id } = await webhookOf(app, key, 1, receiver.url("/down"))
  await feedTransactions(app, [1, 1])
  await until("the hold", async () => {
    const { heldDeliveries, state } = (await get(id)).health
    return state === "HOLDING" && heldDeliveries === 2
  })
  // The cancellation leaves what is locked for later, and the webhook is enabled again before it ends.
  await beside("SELECT 1 FROM deliveries WHERE webhook_id = $1 FOR UPDATE", id, "ROLLBACK", async () => {
    for (const next of ["DISABLED", "ACTIVE"])
      expect((await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: next } })).status).toBe(200)
  })
  status = 200
  await feedTransactions(app, [1])
  await until("a delivery", async () => (await statuses(id)).includes("DELIVERED"))
  await until("the end of the queue", async () => (await app.sql("SELECT 1 FROM webhook_queues WHERE webhook_id = $1", [id])).length === 0)
  expect((await statuses(id)).toSorted()).toEqual(["CANCELED", "CANCELED", "DELIVERED"])
  const subjects = (await app.sql("SELECT subject FROM notices WHERE webhook_id = $1", [id])).map(({ subject }) => String(subject))
  expect(subjects).toEqual([expect.stringContaining("is on hold")])
  expect(await actions(id)).not.toContain("webhook.released")
})

test("disabling cancels what waits, even after Postgres' clock was set back", async () => {
  const { id } = await webhookOf(app, key, 2, receiver.url("/set-back"), { status: "PAUSED" })
  await feedTransactions(app, [2])
  await until("a held delivery", async () => (await statuses(id)).includes("HELD"))
  await app.sql("UPDATE deliveries SET created_at = created_at + interval '1 hour' WHERE webhook_id = $1", [id])
  for (const status of ["DISABLED", "ACTIVE"])
    expect((await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status } })).status).toBe(200)
  await feedTransactions(app, [2])
  await until(
    "the end of both",
    async () => (await statuses(id)).filter((status) => status !== "HELD" && status !== "PENDING").length === 2
  )
  expect((await statuses(id)).toSorted()).toEqual(["CANCELED", "DELIVERED"])
  expect(receiver.to("/set-back")).toHaveLength(1)
})
