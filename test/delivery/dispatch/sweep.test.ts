/** The sweep: it writes commands for what is overdue, and for nothing else. */
import { beforeAll, beforeEach, expect, test } from "bun:test"
import { Effect, Layer, Redacted } from "effect"
import { Sweep } from "../../../src/delivery/dispatch/Sweep.ts"
import * as Database from "../../../src/runtime/database/Database.ts"
import * as Id from "../../../src/values/Id.ts"
import { useApp } from "../../support/app.ts"
import { feedOrganization, webhookOf } from "../../support/deliveryFixtures.ts"
import { until } from "../../support/receiver.ts"
import { operator } from "../../support/temporal.ts"

/** More than the sweep reads with one statement. */
const OVERDUE = 1_300

const app = useApp(["api"], { WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8", WEBHOOK_ALLOW_PORTS: "9" })
let webhookId = ""

beforeAll(async () => {
  const key = await feedOrganization(app, 1)
  webhookId = (await webhookOf(app, key, 0, "https://localhost:9/")).id
})
beforeEach(() => app.sql("DELETE FROM deliveries; DELETE FROM commands; DELETE FROM webhook_queues"))

const sweep = () =>
  Effect.runPromise(
    Effect.flatMap(Sweep, ({ run }) => run).pipe(
      Effect.provide(Layer.provide(Sweep.layer, Database.layer(Redacted.make(app.databaseUrl), Database.pools.command)))
    )
  )
const keys = async () => (await app.sql("SELECT key FROM commands ORDER BY key")).map(({ key }) => String(key))

/** Deliveries in this state, due this many seconds ago. */
const deliveries = async (count: number, status: string, overdueSeconds: number) => {
  const rows = await app.sql(
    `INSERT INTO deliveries (id, event_id, webhook_id, kind, status, next_attempt_at, organization_id, sequence)
     SELECT left($1, 18) || lpad(n::text, 12, '0'), 'evt_gone', $2, 'transaction.confirmed', $3,
       CASE WHEN $3 <> 'HELD' THEN now() - make_interval(secs => $5) - n * interval '1 millisecond' END, 'org_a', n
     FROM generate_series(1, $4::int) n RETURNING id`,
    [Id.make("del"), webhookId, status, count, overdueSeconds]
  )
  return rows.map(({ id }) => String(id)).sort()
}

test("every delivery that is overdue for half a minute gets a command", async () => {
  const ids = await deliveries(OVERDUE, "RETRYING", 31)
  await sweep()
  expect(await keys()).toEqual(ids)
})

test("deliveries that are not overdue, or held, get none", async () => {
  await deliveries(1, "RETRYING", 15)
  await deliveries(1, "RETRYING", -3_600)
  await deliveries(1, "HELD", 0)
  await sweep()
  expect(await keys()).toEqual([])
})

test("a delivery whose first attempt a claim is about to make gets none", async () => {
  const [id = ""] = await deliveries(1, "PENDING", 61)
  await app.sql("INSERT INTO commands (key, members) VALUES ('claim/' || $1, ARRAY[$1])", [id])
  await sweep()
  expect(await keys()).toEqual([`claim/${id}`])
})

test("a command due far in the future is due now, except that of a claim", async () => {
  const [id = ""] = await deliveries(1, "PENDING", -3_600)
  await app.sql(
    `INSERT INTO commands (key, members, due) VALUES ('drain/' || $1, NULL, now() + interval '10 minutes'), ('rec_a', NULL, now() + interval '1 minute'),
      ('claim/' || $2, ARRAY[$2], now() + interval '1 hour')`,
    [webhookId, id]
  )
  await sweep()
  const due = await app.sql("SELECT key FROM commands WHERE due <= clock_timestamp()")
  expect(due.map(({ key }) => String(key))).toEqual([`drain/${webhookId}`])
})

test("a queue with an overdue drain, or an active one without, gets a command", async () => {
  await app.sql("INSERT INTO webhook_queues (webhook_id, live, due) VALUES ($1, true, now() - interval '61 seconds')", [webhookId])
  await sweep()
  expect(await keys()).toEqual([`drain/${webhookId}`])
  await app.sql("DELETE FROM commands; UPDATE webhook_queues SET due = NULL; UPDATE webhooks SET status = 'PAUSED'")
  await sweep()
  expect(await keys()).toEqual([])
  // Only deliveries of a paused recovery are queued.
  await app.sql("UPDATE webhooks SET status = 'ACTIVE'; UPDATE webhook_queues SET live = false")
  await sweep()
  expect(await keys()).toEqual([])
  await app.sql("UPDATE webhook_queues SET live = true")
  // A delivery joined it while the webhook was resumed.
  await app.sql("UPDATE webhooks SET status = 'ACTIVE'")
  await sweep()
  expect(await keys()).toEqual([`drain/${webhookId}`])
})

test("a dispatcher sweeps soon after the one that swept was killed", async () => {
  const first = await app.start(["dispatcher"])
  const second = await app.start(["dispatcher"])
  const { client, close } = await operator()
  try {
    await first.end("SIGKILL")
    const [id = ""] = await deliveries(1, "RETRYING", 31)
    const started = () =>
      client.workflow
        .getHandle(id)
        .describe()
        .then(
          () => true,
          () => false
        )
    await until("its workflow", started, 30)
  } finally {
    await close()
    await second.end()
  }
}, 60_000)
