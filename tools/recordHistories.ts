/**
 * `bun run histories [deliveries|queues|statements|keys]…`: records histories of every kind into test/workflows/histories, where
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
import { recordQueues } from "./queueHistories.ts"

const folder = path.join(import.meta.dir, "../test/workflows/histories")
const QUEUE = "webhook-deliveries-recorded"

const { client, close } = await operator()

/** Removes names of machines, processes and directories. */
const anonymous = (text: string): string =>
  text.replaceAll(/"identity": "[^"]*"/g, '"identity": "worker"').replaceAll(`${path.resolve(import.meta.dir, "..")}/`, "")

const record = async (name: string, workflowId: string) => {
  const handle = client.workflow.getHandle(workflowId)
  await until(workflowId, () => handle.describe().catch(() => undefined))
  await handle.result().catch(() => {})
  fs.writeFileSync(
    path.join(folder, `${name}.json`),
    `${anonymous(JSON.stringify(JSON.parse(historyToJSON(await handle.fetchHistory())), null, 1))}\n`
  )
  console.log(name)
}

/** Deliveries alone and in groups, a recovery, notices, pings and retention. */
const recordDeliveries = async () => {
  const receiver = new Receiver()
  const app = new App()
  await receiver.open()
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    WEBHOOK_RETRY_SCHEDULE: "0s,1s,20s",
    TEMPORAL_TASK_QUEUE: QUEUE
  })
  const key = await feedOrganization(app, 12)

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

  /** A webhook of an entity, this many events for it at once, and its deliveries by number once none waits. */
  const together = async (entity: number, count: number) => {
    const webhook = await webhookOf(app, key, entity, receiver.url(`/${entity}`))
    await feedTransactions(app, Array(count).fill(entity))
    await until("every delivery", async () => {
      const [row] = await app.sql("SELECT count(*)::int AS count FROM deliveries WHERE webhook_id = $1 AND status = 'DELIVERED'", [
        webhook.id
      ])
      return row?.["count"] === count
    })
    const rows = await app.sql("SELECT id FROM deliveries WHERE webhook_id = $1 ORDER BY sequence", [webhook.id])
    return { webhook, ids: rows.map(({ id }) => String(id)) }
  }
  /** The group that made the first attempts of these deliveries. */
  const groupOf = async (ids: ReadonlyArray<string>) => {
    for (const id of ids)
      if (
        await client.workflow
          .getHandle(`group/${id}`)
          .describe()
          .catch(() => undefined)
      )
        return `group/${id}`
    throw new Error("no group made the first attempts")
  }

  // A first attempt that outlives its task.
  receiver.on("/6", async () => {
    await Bun.sleep(2_500)
    return new Response("")
  })
  await record("delivered-in-flight", String((await together(6, 1)).ids[0]))

  // A group, of which one delivery is rejected and has a workflow of its own from then on.
  receiver.on("/9", statusesOf(500, 200))
  const group = await together(9, 5)
  await record("group", await groupOf(group.ids))
  const [retried] = await app.sql("SELECT delivery_id AS id FROM delivery_attempts WHERE webhook_id = $1 AND number = 2", [
    group.webhook.id
  ])
  await record("delivered-after-a-group", String(retried?.["id"]))

  // A group of more than an endpoint takes in a second: some are in flight when it ends, others wait in the queue.
  receiver.on("/10", async () => {
    await Bun.sleep(2_500)
    return new Response("")
  })
  const burst = await together(10, 14)
  await record("group-in-part-queued", await groupOf(burst.ids))
  await record("drain-of-a-burst", `drain/${burst.webhook.id}`)

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

  // A webhook that is paused while a delivery waits: the delivery joins the queue, which the resume sends.
  const paused = await deliver(11, [500, 500, 200], attempts(2))
  await app.request("PATCH", `/v1/webhooks/${paused.webhook.id}`, { key, body: { status: "PAUSED" } })
  await record("held", paused.id)
  await app.request("PATCH", `/v1/webhooks/${paused.webhook.id}`, { key, body: { status: "ACTIVE" } })
  await record("drain-of-a-resume", `drain/${paused.webhook.id}`)

  // A recovery that is completed.
  const recovered = await webhookOf(app, key, 9, receiver.url("/recovered"))
  const since = new Date(Date.now() - 3_600_000).toISOString()
  const recovery = await app.request("POST", `/v1/webhooks/${recovered.id}/recoveries`, { key, body: { since } })
  if (recovery.status !== 202) throw new Error(recovery.text)
  await record("recovery-completed", recovery.json.id)
  const { eventId } = (await app.request("POST", `/v1/webhooks/${killed.id}/ping`, { key })).json
  await record("ping", `ping/${eventId}`)
  await (await client.workflow.start("retain", { workflowId: `retain-${eventId}`, taskQueue: QUEUE, args: [] })).result()
  await record("retention", `retain-${eventId}`)
  await app.close()
  await receiver.close()
}

/** Sealing: the due statements of a few vaults, and so slowly that it takes more than one part. */
const recordStatements = async () => {
  for (const [name, vaults, days, slowedSeconds] of [
    ["statements", 3, 7, 0],
    ["statements-in-parts", 8, 60, 0.3]
  ] as const) {
    const app = new App()
    const queue = `recorded-${name}`
    await app.open(["api", "worker"], { TEMPORAL_TASK_QUEUE: queue, STATEMENT_HISTORY: `${days}d` })
    await app.feed([...smallest(), ...Array.from({ length: vaults }, (_, index) => vault(`vault_recorded${index}`, "entity_a"))])
    const schedule = client.schedule.getHandle(`custody-seal-statements-${queue}`)
    await until("the schedule", () => schedule.describe().catch(() => undefined))
    await schedule.pause()
    const workflowId = `record-${name}`
    await app.sql(
      `CREATE FUNCTION slowed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(${slowedSeconds}); RETURN NULL; END $$;
       CREATE TRIGGER slowed AFTER INSERT ON statements FOR EACH STATEMENT EXECUTE FUNCTION slowed()`
    )
    await client.workflow.start("sealStatements", { workflowId, taskQueue: queue, args: [{ after: "" }] })
    await record(name, workflowId)
    await app.close()
  }
}

/** A look for keys that expire soon, which finds one. */
const recordKeys = async () => {
  const app = new App()
  const queue = "recorded-expiring-keys"
  await app.open(["api", "worker"], { TEMPORAL_TASK_QUEUE: queue })
  await app.feed(smallest())
  const { key } = await app.key("user_a", { expiresAt: new Date(Date.now() + 31 * 86_400_000).toISOString() })
  await app.sql("UPDATE api_keys SET expires_at = expires_at - interval '2 days' WHERE id = $1", [key.id])
  const workflowId = "record-expiring-keys"
  await client.workflow.start("announceExpiringKeys", { workflowId, taskQueue: queue, args: [] })
  await record("expiring-keys", workflowId)
  await app.close()
}

const recorders = {
  deliveries: recordDeliveries,
  queues: () => recordQueues(client, record),
  statements: recordStatements,
  keys: recordKeys
}

fs.mkdirSync(folder, { recursive: true })
const named = process.argv.slice(2)
for (const [name, run] of Object.entries(recorders)) if (named.length === 0 || named.includes(name)) await run()

await close()
await closeAll()
process.exit(0)
