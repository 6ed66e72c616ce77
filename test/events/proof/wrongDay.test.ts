/** Checkpoints and partitions while a clock shows a wrong day. C-3. Decision D-31. */
import { beforeAll, expect, setSystemTime, test } from "bun:test"
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Redacted } from "effect"
import { EventChains } from "../../../src/events/log/EventChains.ts"
import * as Database from "../../../src/runtime/database/Database.ts"
import * as Partitions from "../../../src/runtime/database/Partitions.ts"
import { useApi } from "../../support/api.ts"
import { smallest } from "../../support/records.ts"
import { settingsOf } from "../../support/servers.ts"

const DAY = 86_400_000
const app = useApi()

beforeAll(() => app.feed(smallest(), { "x-record-events": "none" }))

/** On this test's database, as in a process of its own. */
const run = <A, E>(effect: Effect.Effect<A, E, SqlClient>): Promise<A> =>
  Effect.runPromise(
    effect.pipe(
      Effect.provide(Database.layer(Redacted.make(app.databaseUrl), Database.pools.command)),
      Effect.provide(settingsOf(app.env["DATA_DIR"] ?? "", Object.entries(app.env)))
    )
  )
const seal = () =>
  run(
    Effect.provide(
      Effect.flatMap(EventChains, (chains) => chains.seal),
      EventChains.layer
    )
  )
/** Whether the last midnight, by Postgres' clock, is sealed; it was not before. */
const sealsToday = async () => {
  await app.sql("UPDATE event_streams SET sealed_until = date_trunc('day', now(), 'UTC') - interval '2 days'")
  await seal()
  const [row] = await app.sql("SELECT sealed_until = date_trunc('day', now(), 'UTC') AS sealed FROM event_streams")
  return row?.["sealed"]
}
const daysWithPartition = async () =>
  (await app.sql("SELECT relname AS name FROM pg_class WHERE relname ~ '^events_[0-9]{8}$' ORDER BY relname")).map(({ name }) =>
    String(name)
  )

test("no day is sealed that only one clock has ended, or that has no partition", async () => {
  setSystemTime(Date.now() - DAY)
  try {
    expect(await sealsToday()).toBe(false)
  } finally {
    setSystemTime()
  }
  const today = Partitions.nameOf("events", Partitions.dayOf(Date.now()))
  await app.sql(`ALTER TABLE ${today} RENAME TO other`)
  expect(await sealsToday()).toBe(false)
  await app.sql(`ALTER TABLE other RENAME TO ${today}`)
  expect(await sealsToday()).toBe(true)
})

test("there are partitions for the days of Postgres and of the process", async () => {
  const all = await daysWithPartition()
  const last = String(all.at(-1))
  await app.sql(`ALTER TABLE events DETACH PARTITION ${last}`)
  await app.sql(`DROP TABLE ${last}`)
  setSystemTime(Date.now() - 6 * DAY)
  try {
    await run(Partitions.ensure)
  } finally {
    setSystemTime()
  }
  const earlier = Array.from({ length: 6 }, (_, index) => Partitions.nameOf("events", Partitions.dayOf(Date.now()) - 7 + index))
  expect(await daysWithPartition()).toEqual([...earlier, ...all])
})
