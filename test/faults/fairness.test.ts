/**
 * One organization does not delay another: a backlog that drains through two dispatchers, and pings of endpoints that
 * hang. Decisions D-26, D-34; reliability F26.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { type Answer, type App, useApp } from "../support/app.ts"
import { feedOrganization, feedOtherOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { startPlainTemporal } from "../support/plainTemporal.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { operator } from "../support/temporal.ts"
import { long, report } from "./Rig.ts"

const receiver = useReceiver()
const ROLES = ["api", "worker", "dispatcher"]
const app = useApp(ROLES, () => receiverEnv(receiver))
/** One organization's waiting events, and how many of its deliveries may be created between another's event and its delivery. */
const BACKLOG = long ? 40_000 : 3_000,
  BETWEEN = 1_000
/** Events of the other organization: beside the backlog, and beside the pings. */
const EVENTS = long ? 60 : 5
/** Webhooks that hang, and pings of each one after the other for as long as the others' events take. */
const HANGING = long ? 60 : 20
/** How long dispatching and canceling the rest of the backlog may take, in seconds. */
const CANCELED = 200 + BACKLOG / 50
/** Events of one request of the feed. */
const BATCH = 1_000

let temporal: Awaited<ReturnType<typeof operator>>,
  key = "",
  theirKey = "",
  hashes = 1_000_000

beforeAll(async () => {
  temporal = await operator()
  const keys = await organizations(app)
  key = keys.key
  theirKey = keys.theirKey
})
afterAll(() => temporal.close())

/** Both organizations: the key of the first, and that of the other, which has a webhook. */
const organizations = async (app: App) => {
  const key = await feedOrganization(app, 5)
  const theirKey = await feedOtherOrganization(app)
  await webhookOf(app, theirKey, 0, receiver.url("/theirs"), { entityIds: ["entity_b"] })
  // Warm, and with a worker.
  await theirs(app, 2, 0)
  return { key, theirKey }
}

/** Events of the other organization, one after the other: how long they took to arrive, in ms. */
const theirs = async (app: App, events: number, paceMs: number) => {
  const times: Array<number> = []
  for (let count = 0; count < events; count++) {
    const [before, startedAt] = [receiver.to("/theirs").length, performance.now()]
    await app.feed([transaction("vault_b", ++hashes)])
    await until("their event", () => receiver.to("/theirs").length > before, 120)
    times.push(performance.now() - startedAt)
    await Bun.sleep(Math.max(0, paceMs - (performance.now() - startedAt)))
  }
  times.sort((a, b) => a - b)
  return { p50: Math.round(times[Math.floor(times.length / 2)] ?? 0), p99: Math.round(times[Math.floor(times.length * 0.99)] ?? 0) }
}

/** For each delivery of the other organization since then, how many of the backlog were created since its event. */
const between = async (app: App, since: string) => {
  const rows = await app.sql(
    `SELECT (SELECT count(*)::int FROM deliveries a WHERE a.organization_id = 'org_a' AND a.created_at > e.created_at AND a.created_at < d.created_at) AS count
     FROM events e JOIN deliveries d ON d.event_id = e.id WHERE e.organization_id = 'org_b' AND e.created_at > $1`,
    [since]
  )
  return rows.map(({ count }) => Number(count)).sort((a, b) => a - b)
}

/** A backlog of one organization on this service, and the events of the other beside it. */
const backlog = async (app: App, key: string, path: string) => {
  const second = await app.start(["worker", "dispatcher"])
  const { id } = await webhookOf(app, key, 0, receiver.url(path))
  // However fast the machine, 3,000 with 8 in flight take over three seconds.
  receiver.on(path, async () => {
    await Bun.sleep(10)
    return new Response("")
  })
  const alone = await theirs(app, EVENTS, 200)
  for (let fed = 0; fed < BACKLOG; fed += BATCH)
    await app.feed(Array.from({ length: Math.min(BATCH, BACKLOG - fed) }, () => transaction("vault_0", ++hashes)))
  // While a thousand records become events, theirs may be in the same transaction: dated, but not yet visible to dispatchers.
  const recorded = () => app.sql("SELECT 1 FROM event_streams WHERE organization_id = 'org_a' AND position >= $1", [BACKLOG])
  await until("the record of the backlog", async () => (await recorded()).length === 1, 120)
  const begun = new Date().toISOString()
  const beside = await theirs(app, EVENTS, 250)
  const passed = await between(app, begun)
  const drained = receiver.to(path).length
  report(`F26 one organization's backlog, ${path}`, { backlog: BACKLOG, drained, alone, beside, passedBy: passed.at(-1) })
  // Part of it waited all the time, or the test proves nothing.
  expect(drained).toBeLessThan(BACKLOG)
  expect(passed).toHaveLength(EVENTS)
  expect(passed.at(-1)).toBeLessThan(BETWEEN)
  // The goals, 250 ms and 1.5 s, are those of `bun run bench fairness`, which has the machine to itself.
  if (long) expect([beside.p50 < 1_000, beside.p99 < 5_000]).toEqual([true, true])
  await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "DISABLED" } })
  await second.end()
}

describe("fairness between organizations", () => {
  test(
    `while a backlog of ${BACKLOG} drains, another organization's events are sent in between`,
    () => backlog(app, key, "/backlog"),
    600_000
  )

  test("while one organization's pings hang, another's events are sent and its pings answered", async () => {
    // Dispatching the rest of the backlog and canceling it, a hundred a second, would take the worker's time from the pings.
    const left = () =>
      app.sql("SELECT 1 FROM event_outbox UNION SELECT 1 FROM deliveries WHERE status IN ('PENDING', 'RETRYING', 'HELD') LIMIT 1")
    await until("the rest of the backlog", async () => (await left()).length === 0, CANCELED)
    const running = `TaskQueue = "${app.env["TEMPORAL_TASK_QUEUE"]}" AND ExecutionStatus = "Running"`
    await until("the end of its workflows", async () => (await temporal.client.workflow.count(running)).count === 0, 240)
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    receiver.on("/hangs", async () => {
      await Promise.race([Bun.sleep(30_000), released])
      return new Response("")
    })
    const hanging: Array<string> = []
    for (let count = 0; count < HANGING; count++)
      hanging.push((await webhookOf(app, key, count % 5, receiver.url("/hangs"), { status: "DISABLED" })).id)
    const own = (await app.get("/v1/webhooks", theirKey)).json.data[0].id
    const ping = (id: string, by: string): Promise<Answer> => app.request("POST", `/v1/webhooks/${id}/ping`, { key: by })
    const alone = await theirs(app, EVENTS, 200)
    const tally = new Map<number, number>()
    let over = false
    // Pings that are answered with 503 are counted.
    app.patient = false
    const pinging = hanging.map(async (id) => {
      while (!over) {
        const { status } = await ping(id, key)
        tally.set(status, (tally.get(status) ?? 0) + 1)
        await Bun.sleep(500)
      }
    })
    const measured = async () => {
      await until("pings in flight", () => receiver.to("/hangs").length >= 20)
      const beside = await theirs(app, EVENTS, 500)
      // A busy machine may begin a ping too late, and 503 asks to try again. If pings waited for those that hang, every try would fail.
      const answered = await until("the other organization's ping", async () => {
        const answer = await ping(own, theirKey)
        return answer.status === 503 ? undefined : answer.json
      })
      // Its own events are sent, too.
      await webhookOf(app, key, 0, receiver.url("/own"))
      await feedTransactions(app, [0])
      await until("its own event", () => receiver.to("/own").length === 1)
      return { answered, beside }
    }
    const { answered, beside } = await measured().finally(() => {
      over = true
      app.patient = true
      release()
      return Promise.allSettled(pinging)
    })
    await Promise.all(pinging)
    report("pings that hang", { webhooks: HANGING, answers: Object.fromEntries(tally), alone, beside })
    expect(answered).toMatchObject({ success: true })
    // Of a few events the slowest says more about the machine.
    if (long) expect(beside.p99).toBeLessThan(3 * alone.p99 + 2_000)
    else expect(beside.p50).toBeLessThan(3 * alone.p50 + 2_000)
    // Above the limit it is 429 at once. Accepted pings have their response; 503 is that of a
    // worker without time, which a machine that runs other tests has, too.
    expect([...tally.keys()].filter((status) => status !== 200 && status !== 429 && status !== 503)).toEqual([])
    if (long) expect(tally.get(503) ?? 0).toBeLessThan(10)
  }, 2_000_000)
})

describe.skipIf(!long)("a Temporal server without fairness keys", () => {
  let plain: Awaited<ReturnType<typeof startPlainTemporal>>
  beforeAll(async () => {
    plain = await startPlainTemporal()
  })
  afterAll(() => plain.stop())
  const unaided = useApp(ROLES, () => ({ ...receiverEnv(receiver), TEMPORAL_ADDRESS: plain.address }))

  test("makes no difference: while a backlog drains, another organization's events are sent in between", async () => {
    const keys = await organizations(unaided)
    await backlog(unaided, keys.key, "/unaided")
  }, 600_000)
})
