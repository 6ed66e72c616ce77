/** Batches that wait for one organization share a transaction, each with its own response. Source: custody records, rules 1 to 3. */
import { describe, expect, test } from "bun:test"
import pg from "pg"
import { useApi } from "../../support/api.ts"
import { until } from "../../support/receiver.ts"
import { balance, entity, organization, smallest, transaction, user, vault } from "../../support/records.ts"

const app = useApi()

const world = [
  ...smallest(),
  organization("org_b", ["ethereum"]),
  entity("entity_b", "org_b"),
  vault("vault_b", "entity_b"),
  user("user_b", "org_b", ["vault_b"], { organizationRole: "owner" })
]

/** Runs work while another connection locks the row of an organization or a vault: by default the organization's event stream. */
const holding = async <A>(
  id: string,
  work: (release: () => Promise<void>) => Promise<A>,
  row = "event_streams WHERE organization_id"
): Promise<A> => {
  const client = new pg.Client({ connectionString: app.databaseUrl })
  await client.connect()
  await client.query("BEGIN")
  await client.query(`SELECT 1 FROM ${row} = $1 FOR UPDATE`, [id])
  try {
    return await work(async () => {
      await client.query("COMMIT")
    })
  } finally {
    await client.end()
  }
}
const waiting = () =>
  app.sql(
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'custody-ledger' AND wait_event_type = 'Lock'"
  )
const eventsOf = (organizationId: string) =>
  app.sql("SELECT position::int AS position, id, payload FROM events WHERE organization_id = $1 ORDER BY position", [organizationId])

describe("records posted concurrently", () => {
  test("share a transaction, and an invalid one is refused alone", async () => {
    await app.feed(world, { "x-record-events": "none" })
    const answers = await holding("org_a", async (release) => {
      const first = app.records([transaction("vault_a", 1)])
      await until("the first batch to wait", async () => (await waiting()).length > 0)
      // These arrive while the first waits, so they are applied together.
      const others = [
        app.records([transaction("vault_a", 2)]),
        app.records([transaction("vault_a", 3), transaction("vault_a", 4, { amount: "1.0000000000000000001" })]),
        app.records([transaction("vault_a", 2)], { "idempotency-key": "same" }),
        app.records([transaction("vault_a", 2)], { "idempotency-key": "same" }),
        app.records([balance("vault_a", "ethereum/native", "7")])
      ]
      await Bun.sleep(200)
      await release()
      return Promise.all([first, ...others])
    })
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 400, 200, 200, 200])
    expect(answers[0]?.json).toEqual({ received: 1, changed: 1, unchanged: 0, stale: 0, staleLines: [], events: 1 })
    expect(answers[2]?.json.errors).toEqual([expect.objectContaining({ line: 2, field: "amount" })])
    expect(answers[4]?.text).toBe(answers[3]?.text ?? "")
    const [row] = await app.sql(
      "SELECT count(*)::int AS rows, count(DISTINCT xmin::text)::int AS transactions FROM transactions WHERE vault_id = 'vault_a'"
    )
    expect(row).toEqual({ rows: 2, transactions: 2 })
    const events = await eventsOf("org_a")
    expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => index + 1))
    const ids = events.map(({ id }) => String(id))
    expect(ids).toEqual(ids.toSorted())
  })

  test("do not wait for another organization's", async () => {
    await holding("org_a", async (release) => {
      const held = app.records([transaction("vault_a", 10)])
      await until("the batch of the other organization to wait", async () => (await waiting()).length > 0)
      expect((await app.records([transaction("vault_b", 11)])).json).toMatchObject({ changed: 1, events: 1 })
      await release()
      expect((await held).json).toMatchObject({ changed: 1, events: 1 })
    })
    expect((await eventsOf("org_b")).map(({ position }) => position)).toEqual([1])
  })

  test("make a catalog batch wait until theirs are committed", async () => {
    await holding("org_a", async (release) => {
      const catalog = app.records([vault("vault_c", "entity_b")])
      await until("the catalog's batch to wait", async () => (await waiting()).length > 0)
      const other = app.records([transaction("vault_c", 12)])
      await release()
      expect((await catalog).json.changed).toBe(1)
      // Applied, or refused if its vault was looked up before the catalog's batch was committed.
      expect([200, 400]).toContain((await other).status)
    })
    expect((await app.records([transaction("vault_c", 12)])).status).toBe(200)
  })

  test("wait 10 seconds at most while the feed is overloaded, then get 503", async () => {
    const waitedSeconds = async () =>
      Number(/^custody_feed_wait_seconds_sum(?:\{.*\})? (\S+)$/m.exec(await (await app.send("platform", `/metrics`)).text())?.[1] ?? 0)
    const before = await waitedSeconds()
    const release = async (endStream: () => Promise<void>, endBalance: () => Promise<void>) => {
      // It has its turn, and waits for one lock after the other.
      const first = app.records([balance("vault_a", "ethereum/native", "8")])
      await until("the first batch to wait", async () => (await waiting()).length > 0)
      const second = app.records([transaction("vault_a", 21)])
      await Bun.sleep(6_000)
      const third = app.records([transaction("vault_a", 22)])
      await endStream()
      await Bun.sleep(5_000)
      await endBalance()
      return Promise.all([first, second, third])
    }
    const [first, second, third] = await holding("org_a", (endStream) =>
      holding("vault_a", (endBalance) => release(endStream, endBalance), "balances WHERE vault_id")
    )
    expect([first.json, third.json]).toMatchObject([
      { changed: 1, events: 1 },
      { changed: 1, events: 1 }
    ])
    expect([second.status, second.json.code, second.headers.get("retry-after")]).toEqual([503, "service_unavailable", "1"])
    expect(second.json.detail).toContain("waited for 10 seconds")
    expect((await waitedSeconds()) - before).toBeGreaterThan(14)
    expect((await app.records([transaction("vault_a", 21)])).json).toMatchObject({ changed: 1, events: 1 })
  })

  test("get ascending dates for each change of an object, even when the clock goes back", async () => {
    await app.feed(Array.from({ length: 300 }, (_, index) => balance("vault_b", "ethereum/native", String(index + 1))))
    await app.feed([balance("vault_b", "ethereum/native", "1000")])
    const dates = (await eventsOf("org_b"))
      .map(({ payload }) => JSON.parse(String(payload)))
      .filter(({ kind }) => kind === "balance.updated")
      .map(({ date }) => Date.parse(date))
    expect(dates).toHaveLength(301)
    expect(dates.every((date, index) => index === 0 || date > (dates[index - 1] ?? 0))).toBe(true)
    // The newest event has a time in the future, as after a clock was set back.
    await app.sql("UPDATE event_streams SET clock = now() + interval '1 hour' WHERE organization_id = 'org_b'")
    await app.feed([balance("vault_b", "ethereum/native", "1001")])
    const last = (await eventsOf("org_b")).map(({ id }) => String(id))
    expect(last).toEqual(last.toSorted())
  })

  test("date a change after those of a batch that was committed while they waited", async () => {
    await app.feed(world, { "x-record-events": "none" })
    const amounts = Array.from({ length: 900 }, (_, index) => balance("vault_a", "ethereum/native", String(index + 1)))
    await holding("org_a", async (release) => {
      const first = app.records(amounts)
      await until("the first batch to wait", async () => (await waiting()).length === 1)
      // A batch of two organizations does not share the first one's transaction.
      const second = app.records([balance("vault_b", "ethereum/native", "1"), balance("vault_a", "ethereum/native", "901")])
      await until("the second batch to wait", async () => (await waiting()).length === 2)
      await release()
      expect([(await first).status, (await second).status]).toEqual([200, 200])
    })
    const [last] = await app.sql(`
      SELECT payload::json->'data'->'balance'->>'amount' AS amount FROM events WHERE organization_id = 'org_a' AND kind = 'balance.updated'
      ORDER BY occurred_at DESC, id DESC LIMIT 1`)
    expect(last).toEqual({ amount: "901" })
  })

  test("keep the dates of another organization's changes", async () => {
    await app.feed([...world, balance("vault_a", "ethereum/native", "0")], { "x-record-events": "none" })
    let last = 0
    const changes = (count: number) => app.feed(Array.from({ length: count }, () => balance("vault_b", "ethereum/native", String(++last))))
    await changes(900)
    const held = async (release: () => Promise<void>) => {
      const batch = app.records([balance("vault_a", "ethereum/native", "1")])
      await until("the batch to wait", async () => (await waiting()).length === 1)
      await changes(900)
      await changes(900)
      await release()
      expect((await batch).status).toBe(200)
    }
    await holding("vault_a", held, "balances WHERE vault_id")
    await changes(1)
    const [newest] = await app.sql(`
      SELECT payload::json->'data'->'balance'->>'amount' AS amount FROM events WHERE organization_id = 'org_b' AND kind = 'balance.updated'
      ORDER BY occurred_at DESC, id DESC LIMIT 1`)
    expect(newest).toEqual({ amount: String(last) })
  })

  test("of one balance are dated in their order, also if the platform's clock is ahead", async () => {
    await app.feed([...world, vault("vault_ahead", "entity_a")], { "x-record-events": "none" })
    const ahead = Date.now() + 100
    const at = (amount: number, time: number) => ({
      ...balance("vault_ahead", "ethereum/native", String(amount + 1)),
      occurredAt: new Date(time).toISOString()
    })
    await app.feed(Array.from({ length: 900 }, (_, amount) => at(amount, ahead)))
    await until("the platform's time to pass", async () => Date.now() > ahead + 100)
    await app.feed([at(901, ahead + 1)])
    await app.feed([at(902, ahead + 2)])
    const dates = (
      await app.sql(`
        SELECT payload::json->>'date' AS date FROM events WHERE vault_id = 'vault_ahead' AND kind = 'balance.updated' ORDER BY position`)
    ).map(({ date }) => String(date))
    expect(dates).toHaveLength(902)
    expect(dates).toEqual([...new Set(dates)].sort())
  })
})
