/**
 * Retention: 31 days of the log, dropped day by day by a Temporal schedule, and the removal of other expired data.
 * Spec: Limits, event log retention; Emission and log. Decisions D-13, D-25, D-31.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Client } from "@temporalio/client"
import pg from "pg"
import * as Partitions from "../../../src/runtime/database/Partitions.ts"
import * as Id from "../../../src/values/Id.ts"
import { useApp } from "../../support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { describeSchedule, operator } from "../../support/temporal.ts"

const DAY = 86_400_000
const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => receiverEnv(receiver))
let key = "",
  webhookId = "",
  client: Client,
  close: () => Promise<void>
const NOW = Date.now()
const today = Partitions.dayOf(NOW)

/**
 * Days of the log, on either side of a midnight that may come while the tests run: visible; older, in a partition that may
 * contain visible rows; and in partitions without visible rows.
 */
const kept = [29, 30],
  hidden = [31],
  past = [33, 60]

/** The names of a day's event and delivery. */
const of = (daysAgo: number) => {
  const at = NOW - daysAgo * DAY
  return {
    at: new Date(at).toISOString(),
    day: Partitions.dayOf(at),
    event: Id.derived("evt", at, `e${daysAgo}`),
    delivery: Id.derived("del", at, `d${daysAgo}`)
  }
}

/** An event with its delivery and attempt from this many days ago, in partitions of that day. */
const remember = async (daysAgo: number) => {
  const { at, day, delivery, event } = of(daysAgo)
  for (const [table, prefix] of Partitions.tables) {
    const name = Partitions.nameOf(table, day)
    const [there] = await app.sql("SELECT 1 FROM pg_class WHERE relname = $1", [name])
    if (there !== undefined) continue
    await app.sql(
      `CREATE TABLE ${name} PARTITION OF ${table} FOR VALUES FROM ('${Id.floor(prefix, day * DAY)}') TO ('${Id.floor(prefix, (day + 1) * DAY)}')`
    )
  }
  await app.sql(
    `INSERT INTO events (id, organization_id, position, entity_id, vault_id, kind, schema_version, payload, occurred_at, created_at)
     VALUES ($1, 'org_a', 1, 'entity_0', 'vault_0', 'transaction.confirmed', 1, '{}', $2, $2)`,
    [event, at]
  )
  await app.sql(
    `INSERT INTO deliveries (id, event_id, webhook_id, organization_id, sequence, kind, status, delivered_at, created_at)
     VALUES ($1, $2, $3, 'org_a', 1, 'transaction.confirmed', 'DELIVERED', $4, $4)`,
    [delivery, event, webhookId, at]
  )
  await app.sql(
    "INSERT INTO delivery_attempts (delivery_id, number, at, result, organization_id, webhook_id, process_id) VALUES ($1, 1, $2, '2xx', 'org_a', '', '')",
    [delivery, at]
  )
}

const count = async (text: string, values: ReadonlyArray<unknown> = []) =>
  Number((await app.sql(`SELECT count(*) AS count FROM ${text}`, values))[0]?.["count"])
const ids = async (target: string) => (await app.walk(target, key, 500)).map(({ id }) => id)

beforeAll(async () => {
  ;({ client, close } = await operator())
  key = await feedOrganization(app, 1)
  const webhook = await webhookOf(app, key, 0, receiver.url("/hook"))
  webhookId = webhook.id
  await feedTransactions(app, [0])
  await deliveryWhen(app, key, webhookId, ({ status }) => status === "DELIVERED")
  // The schedule is paused, so that it runs only when the test triggers it, and not at its own time.
  await until("the schedule", () =>
    retention()
      .pause()
      .then(
        () => true,
        () => false
      )
  )
  for (const daysAgo of [...kept, ...hidden, ...past]) await remember(daysAgo)
})
afterAll(() => close())

const scheduleId = () => `custody-retention-${app.env.TEMPORAL_TASK_QUEUE}`
const retention = () => client.schedule.getHandle(scheduleId())
const described = () => describeSchedule(client, scheduleId())

/** Runs the job through the schedule. */
const retain = async () => {
  const before = (await described()).info.recentActions.length
  await retention().trigger()
  const action = await until("the run", async () => {
    const actions = (await described()).info.recentActions
    return actions.length > before && actions.at(-1)
  })
  if (action.action.type !== "startWorkflow") throw new Error("the schedule starts no workflow")
  const { firstExecutionRunId, workflowId } = action.action.workflow
  return (await client.workflow.getHandle(workflowId, firstExecutionRunId).result()) as { partitionsDropped: number; rowsRemoved: number }
}

describe("retention of the event log", () => {
  test("lists show 31 days and nothing older, even before anything is dropped", async () => {
    const events = await ids("/v1/webhook-events?kind=transaction.confirmed")
    const deliveries = await ids(`/v1/webhooks/${webhookId}/deliveries`)
    for (const daysAgo of kept)
      expect([daysAgo, events.includes(of(daysAgo).event), deliveries.includes(of(daysAgo).delivery)]).toEqual([daysAgo, true, true])
    for (const daysAgo of [...hidden, ...past]) {
      const { delivery, event } = of(daysAgo)
      expect([daysAgo, events.includes(event), deliveries.includes(delivery)]).toEqual([daysAgo, false, false])
      expect((await app.get(`/v1/webhook-events/${event}`, key)).status).toBe(404)
      expect((await app.get(`/v1/webhook-events/${event}/deliveries`, key)).status).toBe(404)
      expect((await app.request("POST", `/v1/webhook-deliveries/${delivery}/redeliver`, { key })).status).toBe(404)
    }
  })

  test("an event 30 days old can be redelivered", async () => {
    const answer = await app.request("POST", `/v1/webhook-deliveries/${of(30).delivery}/redeliver`, { key })
    expect(answer.status).toBe(202)
    const request = await until("the redelivery", () => receiver.to("/hook").find(({ headers }) => headers["webhook-id"] === of(30).event))
    expect(request.body).toBe("{}")
  })

  test("the schedule drops older days whole and keeps every other", async () => {
    const { partitionsDropped } = await retain()
    expect(partitionsDropped).toBe(8)
    for (const [table] of Partitions.tables) {
      const rows = await app.sql(
        "SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = $1::regclass",
        [table]
      )
      const names = rows.map(({ name }) => String(name))
      for (const daysAgo of past) expect(names).not.toContain(Partitions.nameOf(table, of(daysAgo).day))
      for (const daysAgo of [...kept, ...hidden]) expect(names).toContain(Partitions.nameOf(table, of(daysAgo).day))
      // Partitions for the coming days exist as well.
      for (const ahead of [0, 1, 7]) expect(names).toContain(Partitions.nameOf(table, today + ahead))
      expect(await count("pg_class WHERE relname = $1", [Partitions.nameOf(table, of(60).day)])).toBe(0)
    }
    expect((await retain()).partitionsDropped).toBe(0)
    await feedTransactions(app, [0])
    await deliveryWhen(
      app,
      key,
      webhookId,
      ({ replayedFromDeliveryId, status }) => status === "DELIVERED" && replayedFromDeliveryId === null
    )
  })

  test("a detach that a crash interrupted is completed", async () => {
    await remember(70)
    const name = Partitions.nameOf("events", of(70).day)
    await app.sql("UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = $1::regclass", [name])
    expect((await retain()).partitionsDropped).toBe(4)
    expect(await count("pg_class WHERE relname = $1", [name])).toBe(0)
  })

  test("a day that was detached but not dropped before a crash is dropped", async () => {
    await remember(80)
    const name = Partitions.nameOf("deliveries", of(80).day)
    await app.sql(`ALTER TABLE deliveries DETACH PARTITION ${name}`)
    expect((await retain()).partitionsDropped).toBe(4)
    expect(await count("pg_class WHERE relname = $1", [name])).toBe(0)
  })
})

describe("dropping a day of the log", () => {
  test("while a long read delays the drop, events are recorded and lists are answered", async () => {
    await remember(90)
    const name = Partitions.nameOf("events", of(90).day)
    const reader = new pg.Client({ connectionString: app.databaseUrl })
    await reader.connect()
    await reader.query("BEGIN")
    await reader.query("SELECT count(*) FROM events")
    const dropping = retain()
    const recorded = () => count("events WHERE created_at > now() - interval '1 day'")
    const before = await recorded()
    try {
      for (let round = 0; round < 15; round++) {
        // Either would fail or wait for the reader if the drop held a lock that they need.
        await feedTransactions(app, [0])
        expect((await app.get("/v1/webhook-events?limit=5", key)).status).toBe(200)
        await Bun.sleep(100)
      }
      expect(await recorded()).toBe(before + 15)
      // All this time the drop was waiting.
      expect(await count("pg_class WHERE relname = $1", [name])).toBe(1)
    } finally {
      await reader.query("COMMIT")
      await reader.end()
      await Promise.allSettled([dropping])
    }
    await dropping
    expect(await count("pg_class WHERE relname = $1", [name])).toBe(0)
  })
})

describe("deleted webhooks", () => {
  test("one is removed when its last delivery leaves the log", async () => {
    const made = await Promise.all(
      [100, 10].map(async (daysAgo) => ({ ...(await webhookOf(app, key, 0, receiver.url("/gone"))), daysAgo }))
    )
    for (const { daysAgo, id } of made) {
      await remember(daysAgo)
      await app.sql("UPDATE deliveries SET webhook_id = $1 WHERE id = $2", [id, of(daysAgo).delivery])
      expect((await app.request("DELETE", `/v1/webhooks/${id}`, { key })).status).toBe(204)
    }
    const left = () => Promise.all(made.map(({ id }) => count("webhooks WHERE id = $1", [id])))
    expect(await left()).toEqual([1, 1])
    // Those of the last hour stay: a dispatcher may still know them as active.
    await retain()
    expect(await left()).toEqual([1, 1])
    await app.sql("UPDATE webhooks SET deleted_at = now() - interval '2 hours' WHERE deleted_at IS NOT NULL")
    expect((await retain()).rowsRemoved).toBe(1)
    expect(await left()).toEqual([0, 1])
    const { json } = await app.get(`/v1/webhook-events/${of(10).event}/deliveries`, key)
    expect(json.data.map(({ id }: { id: string }) => id)).toEqual([of(10).delivery])
  })
})

describe("other expired data", () => {
  test("expired secrets, idempotency keys, pings and old notices are deleted, and live data stays", async () => {
    await app.request("POST", `/v1/webhooks/${webhookId}/rotate-secret`, { key, headers: { "idempotency-key": "fresh" } })
    await app.request("POST", `/v1/webhooks/${webhookId}/ping`, { key })
    const secrets = () => count("webhook_secrets WHERE webhook_id = $1", [webhookId])
    expect(await secrets()).toBe(2)
    await retain()
    expect([await secrets(), await count("idempotency_keys"), await count("pings")]).toEqual([2, 1, 1])
    await app.sql("UPDATE webhook_secrets SET expires_at = now() - interval '1 second' WHERE expires_at IS NOT NULL")
    await app.sql("UPDATE idempotency_keys SET created_at = now() - interval '25 hours'")
    await app.sql("UPDATE pings SET at = now() - interval '25 hours'")
    await app.sql(`INSERT INTO notices (id, webhook_id, organization_id, cause, recipient, subject, body, sent_at, channel)
      SELECT 'ntc_' || days, '${webhookId}', 'org_a', 'cause' || days, 'a@example.com', 's', 'b', now() - make_interval(days => days), 'log' FROM unnest('{1,40}'::int[]) days`)
    await app.sql(`INSERT INTO webhook_counters (webhook_id, slot, shard, delivered, last_success_at)
      SELECT '${webhookId}', now() - make_interval(days => days), 7, 5, now() - make_interval(days => days) FROM unnest('{2,40}'::int[]) days`)
    await app.sql(`INSERT INTO notices (id, webhook_id, organization_id, cause, recipient, subject, body, created_at)
      SELECT 'ntc_unsent' || days, '${webhookId}', 'org_a', 'unsent' || days, 'a@example.com', 's', 'b', now() - make_interval(days => days) FROM unnest('{5,40}'::int[]) days`)
    const { rowsRemoved } = await retain()
    expect(rowsRemoved).toBe(6)
    expect([await secrets(), await count("idempotency_keys"), await count("pings"), await count("notices")]).toEqual([1, 0, 0, 2])
    expect((await app.get(`/v1/webhooks/${webhookId}`, key)).json.previousSecretExpiresAt).toBeNull()
  })

  test("a delivery held for 31 days is CANCELED as EXPIRED", async () => {
    const { id } = await webhookOf(app, key, 0, receiver.url("/held"), { status: "PAUSED" })
    await feedTransactions(app, [0, 0, 0])
    const held = () => app.sql("SELECT sequence::int, status, failure_reason FROM deliveries WHERE webhook_id = $1 ORDER BY sequence", [id])
    await until("what is held", async () => (await held()).length === 3)
    await app.sql("UPDATE deliveries SET created_at = created_at - interval '31 days 1 hour' WHERE webhook_id = $1 AND sequence <= 2", [id])
    await retain()
    expect(await held()).toEqual([
      { sequence: 1, status: "CANCELED", failure_reason: "EXPIRED" },
      { sequence: 2, status: "CANCELED", failure_reason: "EXPIRED" },
      { sequence: 3, status: "HELD", failure_reason: null }
    ])
  })
})
