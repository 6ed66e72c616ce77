/**
 * From one machine to servers of their own: the database is moved by promoting a replica, Temporal begins empty, and the
 * platform goes on posting. docs/operations.md, From one machine to many, step 2.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { cli } from "../support/app.ts"
import { PostgresServer } from "../support/postgres.ts"
import { until } from "../support/receiver.ts"
import { query, Replica } from "../support/replica.ts"
import { TemporalServer } from "../support/temporal.ts"
import { Rig, report, sound } from "./Rig.ts"

const primary = new PostgresServer()
const replica = new Replica(primary)
const [before, after] = [new TemporalServer(), new TemporalServer()]
const rig = new Rig()
/** From now on the rig's processes, commands and queries use this database. */
const use = (databaseUrl: string, temporalAddress: string) => {
  rig.app.databaseUrl = databaseUrl
  rig.app.env = { ...rig.app.env, DATABASE_URL: databaseUrl, TEMPORAL_ADDRESS: temporalAddress }
}

beforeAll(async () => {
  await Promise.all([primary.start(), before.start(), after.start()])
  await rig.open({}, undefined, async () => {
    use(primary.url, before.address)
    return primary.url
  })
})
afterAll(async () => {
  await rig.close()
  await replica.stop()
  await Promise.all([primary.close(), before.close(), after.close()])
})

test("a service moves to a promoted replica and an empty Temporal without losing events", async () => {
  let open = false
  for (const path of rig.paths) rig.answer(path, () => (open ? 200 : 503))
  await replica.start()
  await rig.feed(20)
  await until(
    "a refused attempt of each",
    async () => (await rig.app.sql("SELECT 1 FROM deliveries WHERE status = 'RETRYING'")).length === 30
  )

  await rig.app.main?.end()
  const posting = rig.feed(10)
  const [end] = await query(primary.url, "SELECT pg_current_wal_lsn()::text AS lsn")
  await until("the replica to have everything", async () => {
    const [row] = await query(replica.url, `SELECT pg_last_wal_replay_lsn() >= '${end?.["lsn"]}'::pg_lsn AS reached`)
    return row?.["reached"] === true
  })
  await primary.stop()
  await query(replica.url, "SELECT pg_promote()")
  use(replica.url, after.address)
  const doctor = await cli(["doctor"], rig.app.env)
  expect([doctor.code, doctor.code === 0 ? "" : doctor.stdout + doctor.stderr]).toEqual([0, ""])

  open = true
  await rig.restart({ DATABASE_URL: replica.url })
  await posting
  await rig.settle()
  const history = await rig.history()
  report("a move to servers of their own", history)
  expect(history).toMatchObject({ ...sound, events: 30, deliveries: 45, repeated: 0 })
  await until("readiness", async () => {
    const ready = (await (await fetch(`${rig.app.main?.platformUrl}/health/ready`)).json()) as Readonly<Record<string, unknown>>
    return ready["ready"] === true && ready["oldestUndispatchedSeconds"] === 0
  })
})
