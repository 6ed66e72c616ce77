/**
 * Temporal loses all its state while thousands of deliveries wait in the queues of their webhooks and for their next attempts: all
 * are delivered within two minutes after they are due. Reliability F10.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { long, report } from "../faults/Rig.ts"
import { App } from "../support/app.ts"
import { feedOrganization, webhookOf } from "../support/deliveryFixtures.ts"
import { Receiver, receiverEnv, until } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { TemporalServer } from "../support/temporal.ts"

/** Deliveries that wait in each way. */
const EACH = long ? 5_000 : 1_000
/** Webhooks that share those of one way. */
const WEBHOOKS = 5
/** When the second attempt is due after the first, in seconds; and when all are delivered at the latest after they are due. */
const RETRY = long ? 240 : 20,
  HEALED = 120

const temporal = new TemporalServer()
const receiver = new Receiver()
const app = new App()

beforeAll(async () => {
  await receiver.open()
  await temporal.start()
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    TEMPORAL_ADDRESS: temporal.address,
    WEBHOOK_RETRY_SCHEDULE: `0s,${RETRY}s,${RETRY}s,${RETRY}s`
  })
})
afterAll(async () => {
  await app.close()
  await temporal.close()
  await receiver.close()
})

/** The webhooks of each way to wait, by what their paths are called, and how many deliveries wait in it. */
const ways = [
  { name: "paused", share: EACH / 2 },
  { name: "drains", share: EACH / 2 },
  { name: "waits", share: EACH }
] as const
type Way = (typeof ways)[number]["name"]

test(`${EACH} queued and ${EACH} waiting deliveries survive the loss of Temporal's state`, async () => {
  const key = await feedOrganization(app, ways.length * WEBHOOKS)
  let refuse = true
  receiver.on("/waits", () => new Response("", { status: refuse ? 400 : 200 }))
  const wayOf = new Map<string, Way>()
  for (const [way, { name }] of ways.entries())
    for (let number = 0; number < WEBHOOKS; number++) {
      const status = name === "waits" ? "ACTIVE" : "PAUSED"
      wayOf.set((await webhookOf(app, key, way * WEBHOOKS + number, receiver.url(`/${name}`), { status })).id, name)
    }
  const feed = (way: number) =>
    app.feed(
      Array.from({ length: ways[way]?.share ?? 0 }, (_, number) =>
        transaction(`vault_${way * WEBHOOKS + (number % WEBHOOKS)}`, way * 100_000 + number)
      )
    )
  /** How many deliveries of each way have a status. */
  const count = async (status: string) => {
    const counts = { paused: 0, drains: 0, waits: 0 }
    const rows = await app.sql("SELECT webhook_id, count(*)::int AS count FROM deliveries WHERE status = $1 GROUP BY webhook_id", [status])
    for (const row of rows) counts[wayOf.get(String(row["webhook_id"])) ?? "waits"] += Number(row["count"])
    return counts
  }
  const activate = (name: Way) =>
    Promise.all(
      [...wayOf].flatMap(([id, way]) =>
        way === name ? [app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "ACTIVE" } })] : []
      )
    )

  await feed(0)
  await feed(1)
  await until("queued deliveries", async () => {
    const { drains, paused } = await count("HELD")
    return drains + paused === EACH
  })
  await feed(2)
  await until("waiting deliveries", async () => (await count("RETRYING")).waits === EACH, 200)
  // Of one half the queues are being sent when the state is lost; the others are paused until afterwards.
  const lost = Promise.withResolvers<void>()
  receiver.on("/drains", async () => {
    await Promise.race([lost.promise, Bun.sleep(3_000)])
    return new Response("")
  })
  await activate("drains")
  await until("a drain", () => receiver.to("/drains").length > 0)
  await temporal.kill("lost")
  refuse = false
  lost.resolve()
  const lostAt = Date.now()
  await temporal.start()
  await activate("paused")
  const [row] = await app.sql("SELECT max(next_attempt_at) AS due FROM deliveries WHERE status = 'RETRYING'")
  const due = Math.max(lostAt, row?.["due"] instanceof Date ? row["due"].getTime() : 0)

  /** In how many seconds after the loss, or after they were due, the deliveries of each way were all delivered. */
  const healed = new Map<Way, number>()
  await until(
    "all deliveries",
    async () => {
      const delivered = await count("DELIVERED")
      for (const { name, share } of ways)
        if (delivered[name] === share && !healed.has(name)) healed.set(name, (Date.now() - (name === "waits" ? due : lostAt)) / 1_000)
      return healed.size === ways.length
    },
    (due - lostAt) / 1_000 + HEALED
  ).catch(() => undefined)
  report("F10 Temporal lost its state", { healedInSeconds: Object.fromEntries(healed), dueInSeconds: (due - lostAt) / 1_000 })
  // What is left says why.
  expect(
    await app.sql(`SELECT d.id, d.status, d.next_attempt_at, (SELECT json_agg(t ORDER BY t.number) FROM delivery_attempts t WHERE t.delivery_id = d.id) AS attempts
      FROM deliveries d WHERE d.status <> 'DELIVERED' LIMIT 5`)
  ).toEqual([])
  expect<object>(await count("DELIVERED")).toEqual(Object.fromEntries(ways.map(({ name, share }) => [name, share])))
  expect(Math.max(...healed.values())).toBeLessThan(HEALED)
}, 900_000)
