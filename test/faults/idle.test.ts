/**
 * What waits costs nothing: thousands of paused webhooks with a held delivery each, and thousands of deliveries that wait for a
 * retry hours ahead, cause no more statements than an empty service does. Architecture, What must hold.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { App } from "../support/app.ts"
import { feedEach, manyWebhooks, statusesOf } from "../support/manyWebhooks.ts"
import { Receiver, receiverEnv, until } from "../support/receiver.ts"
import { long, report } from "./Rig.ts"

const PAUSED = long ? 5_000 : 2_000,
  WAITING = long ? 3_000 : 1_000
/** Longer than the period of anything that the service looks for, in seconds. */
const MEASURED = long ? 120 : 35,
  PERIODS = 4
/** More statements than those of an empty service: as a share of them, and in addition, a second. */
const SHARE = 0.05,
  MORE = 3
const receiver = new Receiver()
/** Three services at once, so that they are measured in the same seconds. */
const services = { empty: new App(), paused: new App(), waiting: new App() }
const all = Object.values(services)

beforeAll(async () => {
  await receiver.open()
  await Promise.all(
    all.map((app) =>
      app.open(["api", "worker", "dispatcher"], {
        ...receiverEnv(receiver),
        WEBHOOK_RETRY_SCHEDULE: "0s,10h,10h",
        // The statements of new vaults, of which the services have different numbers, are not sealed meanwhile.
        STATEMENT_DELAY: "300d"
      })
    )
  )
})
afterAll(async () => {
  await Promise.all(all.map((app) => app.close()))
  await receiver.close()
})

/** Transactions of each service's database so far; a statement by itself is one. */
const transactions = async () => {
  const rows = await services.empty.sql("SELECT datname AS name, xact_commit + xact_rollback AS count FROM pg_stat_database")
  const counts = new Map(rows.map(({ count, name }) => [name, Number(count)]))
  return all.map((app) => counts.get(new URL(app.databaseUrl).pathname.slice(1)) ?? 0)
}

describe("idle and held webhooks cost nothing", () => {
  let perSecond: ReadonlyArray<number> = []
  const allowed = () => (perSecond[0] ?? 0) * (1 + SHARE) + MORE
  beforeAll(async () => {
    const holds = async () => {
      const webhooks = await manyWebhooks(services.paused, "idle", PAUSED, () => receiver.url("/paused"), { status: "PAUSED" })
      await feedEach(services.paused, webhooks)
      await until("a held delivery of each", async () => (await statusesOf(services.paused))["HELD"] === PAUSED)
    }
    const waits = async () => {
      receiver.on("/refuses", () => new Response("", { status: 400 }))
      const webhooks = await manyWebhooks(services.waiting, "idle", WAITING / 10, () => receiver.url("/refuses"))
      await feedEach(services.waiting, webhooks, 10)
      await until("deliveries that wait", async () => (await statusesOf(services.waiting))["RETRYING"] === WAITING, 300)
    }
    const startedAt = performance.now()
    await Promise.all([holds(), waits()])
    const preparedAt = performance.now()
    // Postgres vacuums for a while what the fixture wrote, which counts as well. What is at rest then costs nothing, once; what
    // costs something all the time does so in each period.
    for (let period = 0; period < PERIODS; period++) {
      const before = await transactions()
      await Bun.sleep(MEASURED * 1_000)
      const after = await transactions()
      perSecond = after.map((count, index) => (count - (before[index] ?? 0)) / MEASURED)
      const [empty, paused, waiting] = perSecond
      report("statements a second", { period, empty, paused, waiting, preparedIn: (preparedAt - startedAt) / 1_000 })
      if (perSecond.every((count) => count < allowed())) break
    }
  }, 900_000)

  test(`${PAUSED} paused webhooks with a held delivery each cause no statements`, () => {
    expect(perSecond[1]).toBeLessThan(allowed())
  })

  test(`${WAITING} deliveries that wait hours for a retry cause no statements`, () => {
    expect(perSecond[2]).toBeLessThan(allowed())
  })
})
