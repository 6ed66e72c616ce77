/**
 * `bun run histories [deliveries|holds|statements]…`: records histories of every kind into test/workflows/histories, where
 * replay.test.ts replays them; all of them if none is named. Run it if a change of the workflows is meant to be
 * incompatible with running workflows; keep the old histories as long as workflows of that time may run.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { historyToJSON } from "@temporalio/common/lib/proto-utils"
import { type Answer, App } from "../test/support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../test/support/deliveryFixtures.ts"
import { Receiver, receiverEnv, until } from "../test/support/receiver.ts"
import { smallest, vault } from "../test/support/records.ts"
import { closeAll } from "../test/support/servers.ts"
import { operator } from "../test/support/temporal.ts"
import { recordHolds } from "./holdHistories.ts"

const folder = path.join(import.meta.dir, "../test/workflows/histories")
const QUEUE = "webhook-deliveries-recorded"

const { client, close } = await operator()

/** Removes names of machines, processes and directories. */
const anonymous = (text: string): string =>
  text.replaceAll(/"identity": "[^"]*"/g, '"identity": "worker"').replaceAll(`${path.resolve(import.meta.dir, "..")}/`, "")

const record = async (name: string, workflowId: string) => {
  const handle = client.workflow.getHandle(workflowId)
  await handle.result().catch(() => {})
  fs.writeFileSync(
    path.join(folder, `${name}.json`),
    `${anonymous(JSON.stringify(JSON.parse(historyToJSON(await handle.fetchHistory())), null, 1))}\n`
  )
  console.log(name)
}

/** Deliveries, a hold, a recovery, notices, pings and retention. */
const recordDeliveries = async () => {
  const receiver = new Receiver()
  const app = new App()
  await receiver.open()
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    WEBHOOK_RETRY_SCHEDULE: "0s,1s,20s",
    TEMPORAL_TASK_QUEUE: QUEUE
  })
  const key = await feedOrganization(app, 10)

  const statusesOf =
    (...statuses: ReadonlyArray<number>) =>
    (_: unknown, count: number) =>
      new Response("", { status: statuses[Math.min(count, statuses.length) - 1] ?? 200 })

  /** A new webhook whose endpoint answers as given, and its delivery once it is in the wanted state. */
  const deliver = async (entity: number, statuses: ReadonlyArray<number>, wanted: (delivery: Answer["json"]) => boolean) => {
    receiver.on(`/${entity}`, statusesOf(...statuses))
    const webhook = await webhookOf(app, key, entity, receiver.url(`/${entity}`))
    await feedTransactions(app, [entity])
    const delivery = await deliveryWhen(app, key, webhook.id, wanted)
    return { webhook, id: String(delivery.id) }
  }
  const attempts = (count: number) => (delivery: Answer["json"]) => delivery.attempts.length === count

  await record("delivered", (await deliver(0, [200], attempts(1))).id)
  await record("delivered-after-a-retry", (await deliver(1, [500, 200], attempts(2))).id)

  const exhausted = await deliver(2, [500], attempts(2))
  await client.workflow.getHandle(exhausted.id).signal("retryNow")
  await record("failed-after-retry-now", exhausted.id)
  const [notice] = await app.sql("SELECT id FROM notices LIMIT 1")
  await record("notice", String(notice?.["id"]))

  const disabled = await deliver(3, [500], attempts(2))
  await app.request("PATCH", `/v1/webhooks/${disabled.webhook.id}`, { key, body: { status: "DISABLED" } })
  await record("canceled-by-a-disable", disabled.id)

  const signaled = await deliver(4, [500], attempts(2))
  await client.workflow.getHandle(signaled.id).signal("cancel")
  await record("canceled-by-a-signal", signaled.id)

  const requested = await deliver(5, [500], attempts(2))
  await client.workflow.getHandle(requested.id).cancel()
  await record("canceled-by-request", requested.id)

  // A wake-up before the due time returns to the wait.
  const woken = await deliver(8, [500], attempts(2))
  await client.workflow.getHandle(woken.id).signal("wake")
  await record("failed-after-a-wake", woken.id)

  // An endpoint that hangs: first attempts on the slow queue, and waits for admission.
  receiver.on("/slow", async () => {
    await Bun.sleep(2_500)
    return new Response("")
  })
  const slow = await webhookOf(app, key, 6, receiver.url("/slow"))
  for (let event = 0; event < 14; event++) await feedTransactions(app, [6])
  await until("every slow delivery", async () => (await app.get(`/v1/webhooks/${slow.id}`, key)).json.health.pendingDeliveries === 0)
  const slowOnes = await app.sql("SELECT id FROM deliveries WHERE webhook_id = $1 ORDER BY delivered_at", [slow.id])
  await record("delivered-elsewhere", String(slowOnes[1]?.["id"]))
  await record("delivered-after-waiting-for-room", String(slowOnes.at(-1)?.["id"]))

  // A process that is killed during an attempt.
  receiver.on("/killed", async (_, count) => {
    if (count === 1) await Bun.sleep(5_000)
    return new Response("")
  })
  const killed = await webhookOf(app, key, 7, receiver.url("/killed"))
  await feedTransactions(app, [7])
  await until("the request", () => receiver.to("/killed")[0])
  await app.main?.end("SIGKILL")
  app.main = await app.start(["api", "worker", "dispatcher"])
  await record("delivered-after-a-kill", String((await deliveryWhen(app, key, killed.id, attempts(2))).id))

  // A webhook that is paused while a delivery waits, and resumed: the delivery waits without a timer and is woken.
  let answers = 500
  receiver.on("/held", () => new Response("", { status: answers }))
  const held = await webhookOf(app, key, 9, receiver.url("/held"))
  await feedTransactions(app, [9])
  const heldOne = await deliveryWhen(app, key, held.id, attempts(2))
  await app.request("PATCH", `/v1/webhooks/${held.id}`, { key, body: { status: "PAUSED" } })
  await client.workflow.getHandle(String(heldOne.id)).signal("wake")
  await deliveryWhen(app, key, held.id, ({ status }) => status === "HELD")
  answers = 200
  await app.request("PATCH", `/v1/webhooks/${held.id}`, { key, body: { status: "ACTIVE" } })
  await record("delivered-after-a-hold", String(heldOne.id))
  await record("hold-resumed", `hold/${held.id}`)

  // An endpoint that is down: a failed probe, a successful one, and then the held deliveries.
  answers = 503
  await feedTransactions(app, [9])
  await feedTransactions(app, [9])
  await until("failures", async () => (await app.get(`/v1/webhooks/${held.id}`, key)).json.health.consecutiveFailures >= 3)
  await app.sql("UPDATE webhook_health SET down_since = down_since - interval '61 seconds', down_failures = 20 WHERE webhook_id = $1", [
    held.id
  ])
  await feedTransactions(app, [9])
  await until("the hold", async () => (await app.get(`/v1/webhooks/${held.id}`, key)).json.health.state === "HOLDING")
  const probe = () =>
    app.sql("UPDATE webhook_holds SET probe_at = clock_timestamp(), wake = wake + 1 WHERE webhook_id = $1 AND down", [held.id])
  await probe()
  await until(
    "a probe",
    async () => (await app.sql("SELECT 1 FROM webhook_holds WHERE webhook_id = $1 AND probes = 1", [held.id])).length === 1,
    30
  )
  answers = 200
  await probe()
  await record("hold-probed", `hold/${held.id}`)

  // A recovery that is completed.
  const recovered = await webhookOf(app, key, 9, receiver.url("/recovered"))
  const recover = async (body: object) => {
    await app.sql("DELETE FROM deliveries WHERE webhook_id = $1", [recovered.id])
    const since = new Date(Date.now() - 3_600_000).toISOString()
    const answer = await app.request("POST", `/v1/webhooks/${recovered.id}/recoveries`, { key, body: { since, ...body } })
    if (answer.status !== 202) throw new Error(answer.text)
    return answer.json
  }
  await record("recovery-completed", (await recover({})).id)
  const { eventId } = (await app.request("POST", `/v1/webhooks/${killed.id}/ping`, { key })).json
  await record("ping-on-its-queue", `ping/${eventId}`)
  await (await client.workflow.start("retain", { workflowId: `retain-${eventId}`, taskQueue: QUEUE, args: [] })).result()
  await record("retention", `retain-${eventId}`)
  await app.close()
  await receiver.close()
}

/** Sealing: the due statements of a few vaults, and so many that it takes more than one part. */
const recordStatements = async () => {
  for (const [name, vaults, days] of [
    ["statements", 3, 7],
    ["statements-in-parts", 8, 2_000]
  ] as const) {
    const app = new App()
    const queue = `recorded-${name}`
    await app.open(["api", "worker"], { TEMPORAL_TASK_QUEUE: queue, STATEMENT_HISTORY: `${days}d` })
    await app.feed([...smallest(), ...Array.from({ length: vaults }, (_, index) => vault(`vault_recorded${index}`, "entity_a"))])
    const schedule = client.schedule.getHandle(`custody-seal-statements-${queue}`)
    await until("the schedule", () => schedule.describe().catch(() => undefined))
    await schedule.pause()
    const workflowId = `record-${name}`
    await client.workflow.start("sealStatements", { workflowId, taskQueue: queue, args: [{ after: "" }] })
    await record(name, workflowId)
    await app.close()
  }
}

const recorders = { deliveries: recordDeliveries, holds: () => recordHolds(client, record), statements: recordStatements }

fs.mkdirSync(folder, { recursive: true })
const named = process.argv.slice(2)
for (const [name, run] of Object.entries(recorders)) if (named.length === 0 || named.includes(name)) await run()

await close()
await closeAll()
process.exit(0)
