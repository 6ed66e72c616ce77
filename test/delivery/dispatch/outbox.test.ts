/** The cost of a claim of the dispatcher, and that it finds what other processes left. */
import { beforeAll, expect, test } from "bun:test"
import pg from "pg"
import { useApp } from "../../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { until } from "../../support/receiver.ts"

const app = useApp(["api", "dispatcher"])
/** Events that were dispatched while the snapshot is held, and events that are dispatched afterwards. */
const MANY = 20_000,
  FEW = 4
let key = "",
  webhookId = ""

beforeAll(async () => {
  key = await feedOrganization(app, 1)
  webhookId = (await webhookOf(app, key, 0, "https://hooks.example.com/")).id
})

/** Index entries of the outbox that were read so far, by sessions that have reported. */
const entriesRead = async () => {
  const [row] = await app.sql("SELECT sum(idx_tup_read)::int AS read FROM pg_stat_user_indexes WHERE relname = 'event_outbox'")
  return Number(row?.["read"])
}
const dispatched = (count: number) =>
  until(`${count} events are dispatched`, async () => (await deliveriesOf(app, key, webhookId)).length === count)

test("a claim costs the same after thousands of events while a backup holds a snapshot", async () => {
  const backup = new pg.Client({ connectionString: app.databaseUrl })
  await backup.connect()
  try {
    await backup.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await backup.query("SELECT count(*) FROM events")
    await app.sql(
      `BEGIN;
       INSERT INTO event_outbox (organization_id, position, event_id, entity_id, kind)
       SELECT 'org_a', n - 1000000, 'evt_' || n, 'entity_0', 'vault.created' FROM generate_series(1, ${MANY}) n;
       DELETE FROM event_outbox; COMMIT`
    )
    // As autovacuum does at any time: the planner then takes the outbox for empty, though it is full of dead entries.
    await app.sql("VACUUM ANALYZE event_outbox")
    // Sessions report once a second.
    await Bun.sleep(1_500)
    const before = await entriesRead()
    for (let count = 1; count <= FEW; count++) {
      await feedTransactions(app, [0])
      await dispatched(count)
    }
    // A session reports everything when it ends.
    await app.main?.end()
    await until(
      "the end of its sessions",
      async () =>
        (await app.sql("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'custody-%'"))
          .length === 0
    )
    // Once a minute a look may read all of them.
    expect((await entriesRead()) - before).toBeLessThan(3 * MANY)
  } finally {
    await backup.query("ROLLBACK")
    await backup.end()
  }
})
