/**
 * A failover of Postgres: the primary's machine is lost in the middle of commits and deliveries, its synchronous standby is
 * promoted, and the same address leads to it. Reliability F6; docs/operations.md, Failover of Postgres.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { PostgresServer } from "../support/postgres.ts"
import { Proxy } from "../support/proxy.ts"
import { until } from "../support/receiver.ts"
import { query, Replica } from "../support/replica.ts"
import { long, Rig, report, sound } from "./Rig.ts"

const primary = new PostgresServer()
const standby = new Replica(primary)
const rig = new Rig()
/** The address that the service knows. */
let address: Proxy

beforeAll(async () => {
  await primary.start()
  await rig.open({}, undefined, async () => {
    address = new Proxy(primary.url)
    await address.open()
    rig.app.databaseUrl = address.url
    rig.app.env = { ...rig.app.env, DATABASE_URL: address.url }
    return address.url
  })
  await standby.start()
  await query(primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
  await until("a synchronous standby", async () => {
    const [row] = await query(primary.url, "SELECT count(*)::int AS synchronous FROM pg_stat_replication WHERE sync_state = 'sync'")
    return row?.["synchronous"] === 1
  })
})
afterAll(async () => {
  await rig.close()
  await address.cut()
  await standby.stop()
  await primary.close()
})

test("loses nothing that was acknowledged when the standby takes over", async () => {
  let requests = 0
  for (const path of rig.paths) rig.answer(path, () => (++requests % 3 === 0 ? 503 : 200))
  const feeding = rig.feed(long ? 1_000 : 100, 20)
  await until("deliveries under way", () => requests > 20)
  await address.fail(async () => {
    await primary.kill()
    await query(standby.url, "SELECT pg_promote()")
    return standby.url
  })
  await feeding
  await rig.settle()
  const history = await rig.history()
  report("a failover", history)
  expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size })
  await until("readiness", async () => {
    const ready = (await (await fetch(`${rig.app.main?.platformUrl}/health/ready`)).json()) as Readonly<Record<string, unknown>>
    return ready["ready"] === true && ready["oldestUndispatchedSeconds"] === 0
  })
})
