/** Histories of drains, of endpoints that are down and webhooks that are paused, and of recoveries, for recordHistories.ts. C-4, C-5. */
import type { Client } from "@temporalio/client"
import { type Answer, App } from "../test/support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../test/support/deliveryFixtures.ts"
import { Receiver, receiverEnv, until } from "../test/support/receiver.ts"

type Record = (name: string, workflowId: string) => Promise<void>

/** Every scenario has its own webhook at its own path. An endpoint is down after ten failures, and is probed every second. */
export const recordQueues = async (client: Client, record: Record) => {
  const receiver = new Receiver()
  const app = new App()
  await receiver.open()
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    WEBHOOK_ALLOW_PORTS: `${receiver.port},1`,
    WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s,1s,1s,1s,1h",
    WEBHOOK_HOLD_AFTER: "1s",
    WEBHOOK_PROBE_SCHEDULE: "1s",
    WEBHOOK_DISABLE_AFTER: "10m",
    TEMPORAL_TASK_QUEUE: "recorded-queues"
  })
  const key = await feedOrganization(app, 20)
  let entities = 0
  const get = async (id: string) => (await app.get(`/v1/webhooks/${id}`, key)).json
  const patch = (id: string, body: unknown) => app.request("PATCH", `/v1/webhooks/${id}`, { key, body })
  const feed = async (entity: number, count: number) => {
    for (let event = 0; event < count; event++) await feedTransactions(app, [entity])
  }
  const when = (what: string, id: string, wanted: (health: Answer["json"]) => boolean) =>
    until(what, async () => wanted((await get(id)).health), 90)
  const probed = (id: string, count: number) =>
    until(
      "the probes",
      async () => (await app.sql("SELECT 1 FROM webhook_queues WHERE webhook_id = $1 AND probes >= $2", [id, count])).length > 0,
      60
    )
  const over = (id: string) =>
    until("the end of the queue", async () => (await app.sql("SELECT 1 FROM webhook_queues WHERE webhook_id = $1", [id])).length === 0)
  /** A webhook whose endpoint answers with `answer`, on hold with this many deliveries. */
  const down = async (answer: (sequence: number) => Response | Promise<Response>, count = 3, url?: string) => {
    const entity = entities++
    receiver.on(`/${entity}`, ({ headers }) => answer(Number(headers["webhook-sequence"])))
    const { id } = await webhookOf(app, key, entity, url ?? receiver.url(`/${entity}`))
    await feed(entity, count - 1)
    await when("a failure of each", id, ({ consecutiveFailures }) => consecutiveFailures >= Math.min(8, count - 1))
    // As if there had been more failures; the next one decides.
    await app.sql(
      "UPDATE webhook_health SET down_failures = 20, down_several = true, down_since = down_since - interval '2 seconds' WHERE webhook_id = $1",
      [id]
    )
    await feed(entity, 1)
    await when("the hold", id, ({ heldDeliveries, state }) => state === "HOLDING" && heldDeliveries === count)
    return { id: String(id), entity }
  }
  const status = (code: number, headers = {}) => new Response("", { status: code, headers })

  const outage = async (name: string, probes: number, failure: () => Response | Promise<Response>, count = 3) => {
    let up = false
    const { id } = await down(() => (up ? status(200) : failure()), count)
    await probed(id, probes)
    up = true
    await over(id)
    await record(name, `drain/${id}`)
  }
  await outage("drain-of-minutes", 1, () => status(503))
  await outage("drain-of-hours", 12, () => status(500))
  await outage("drain-retry-after", 1, () => status(429, { "retry-after": "2" }))
  await outage(
    "drain-slow",
    1,
    async () => {
      await Bun.sleep(12_000)
      return status(200)
    },
    12
  )

  // Down again during the drain, and a new event meanwhile.
  let left = 0
  const flapping = await down(() => (left-- > 0 ? status(200) : status(503)), 12)
  left = 2
  await until("some", async () => (await deliveriesOf(app, key, flapping.id)).some(({ status }) => status === "DELIVERED"))
  await feed(flapping.entity, 1)
  left = 1_000
  await over(flapping.id)
  await record("drain-flapping", `drain/${flapping.id}`)

  // One that is always rejected: others pass it, and it continues with its own schedule.
  let away = true
  const poisoned = await down((sequence) => status(away || sequence === 1 ? 503 : 200))
  away = false
  await over(poisoned.id)
  await record("drain-poisoned", `drain/${poisoned.id}`)

  // Nothing listens, until the URL is changed.
  const nowhere = await down(() => status(200), 3, "https://localhost:1/")
  await patch(nowhere.id, { url: receiver.url(`/${nowhere.entity}`) })
  await over(nowhere.id)
  await record("drain-of-a-refused-connection", `drain/${nowhere.id}`)

  // Paused while it is down, then resumed.
  let works = false
  const paused = await down(() => status(works ? 200 : 503))
  await patch(paused.id, { status: "PAUSED" })
  await Bun.sleep(2_000)
  works = true
  await patch(paused.id, { status: "ACTIVE" })
  await over(paused.id)
  await record("drain-paused-while-down", `drain/${paused.id}`)

  // Never back: the webhook is disabled, and its held deliveries are canceled.
  const dead = await down(() => status(503))
  const held = await deliveriesOf(app, key, dead.id)
  await app.sql("UPDATE webhook_health SET failing_since = failing_since - interval '1 hour' WHERE webhook_id = $1", [dead.id])
  await until("the disable", async () => (await get(dead.id)).status === "DISABLED", 90)
  await record("drain-ended-by-a-disable", `drain/${dead.id}`)
  // The newest one, whose first attempt began the hold, and one that waited for a retry.
  await record("held-by-a-hold", String(held[0]?.id))
  await record("held-while-it-waits", String(held.at(-1)?.id))

  // All waiting deliveries are retried at once.
  let retried = false
  const entity = entities++
  receiver.on(`/${entity}`, () => status(retried ? 200 : 404))
  const { id } = await webhookOf(app, key, entity, receiver.url(`/${entity}`))
  await feed(entity, 1)
  await until("the wait of an hour", async () => (await deliveriesOf(app, key, id))[0]?.attempts.length === 6)
  const [waiting] = await deliveriesOf(app, key, id)
  retried = true
  await app.sql("INSERT INTO webhook_queues (webhook_id, due, live, gathered) VALUES ($1, clock_timestamp(), true, false)", [id])
  await app.sql("INSERT INTO commands (key) VALUES ($1)", [`drain/${id}`])
  await over(id)
  await record("drain-of-a-retry-of-all", `drain/${id}`)
  await record("delivered-by-a-retry-of-all", String(waiting?.id))

  // Recoveries: one that waits while the webhook is paused, one that is paused and resumed, one that an operator cancels.
  const target = entities++
  await feed(target, 12)
  receiver.on("/recovered", () => status(200))
  const recovered = await webhookOf(app, key, target, receiver.url("/recovered"))
  const recover = async (body: object) => {
    await app.sql("DELETE FROM deliveries WHERE webhook_id = $1", [recovered.id])
    const since = new Date(Date.now() - 3_600_000).toISOString()
    const answer = await app.request("POST", `/v1/webhooks/${recovered.id}/recoveries`, { key, body: { since, ...body } })
    if (answer.status !== 202) throw new Error(answer.text)
    return String(answer.json.id)
  }
  const progressed = (recoveryId: string) =>
    until("progress", async () => (await app.get(`/v1/webhook-recoveries/${recoveryId}`, key)).json.progress.created > 0)
  await patch(recovered.id, { status: "PAUSED" })
  const waits = await recover({})
  await progressed(waits)
  await Bun.sleep(1_000)
  await patch(recovered.id, { status: "ACTIVE" })
  await record("recovery-of-a-paused-webhook", waits)
  const pausing = await recover({ ratePerSecond: 3 })
  await progressed(pausing)
  await app.request("POST", `/v1/webhook-recoveries/${pausing}/pause`, { key })
  await Bun.sleep(2_000)
  await app.request("POST", `/v1/webhook-recoveries/${pausing}/resume`, { key })
  await record("recovery-paused-and-resumed", pausing)
  const stopped = await recover({ ratePerSecond: 1 })
  await progressed(stopped)
  await client.workflow.getHandle(stopped).cancel()
  await record("recovery-canceled", stopped)
  await app.close()
  await receiver.close()
}
