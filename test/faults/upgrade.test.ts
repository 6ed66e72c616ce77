/**
 * An upgrade from a version whose events had no positions and no chains: the migration, and then two processes that number
 * and chain the old events while the platform feeds and a reader reads. One of them is killed on the way. A million
 * events, with the time and the write-ahead log that it takes. In the long run only: proof/checkpoints.test.ts numbers and chains
 * some in every run. C-1, C-3.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Redacted } from "effect"
import { createClient, verifyEvents } from "../../src/client/index.ts"
import * as Database from "../../src/database/Database.ts"
import * as Partitions from "../../src/database/Partitions.ts"
import * as Id from "../../src/values/Id.ts"
import { App, cli } from "../support/app.ts"
import { migrateTo } from "../support/earlierSchema.ts"
import { codeOf } from "../support/problem.ts"
import { until } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { long, report } from "./Rig.ts"

const EVENTS = 1_000_000,
  ORGANIZATIONS = 3,
  DAYS = 20
const DAY = 86_400_000
/** The last migration before events had positions. */
const BEFORE = 9

const app = new App()
const names = Array.from({ length: ORGANIZATIONS }, (_, index) => String(index))

/** The database as that version left it: what the catalog needs, and events over many days. */
const old = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* migrateTo(BEFORE)
  yield* sql.unsafe(`
    INSERT INTO networks (name, kind) VALUES ('ethereum', 'mainnet');
    INSERT INTO assets (id, network, symbol, name, decimals) VALUES ('ethereum/native', 'ethereum', 'ETH', 'Ether', 18);
    ${names
      .map(
        (n) => `
    INSERT INTO organizations (id, name, networks) VALUES ('org_${n}', '${n}', '{ethereum}');
    INSERT INTO entities (id, organization_id, name) VALUES ('entity_${n}', 'org_${n}', '${n}');
    INSERT INTO vaults (id, entity_id, organization_id, label, networks, created_at) VALUES ('vault_${n}', 'entity_${n}', 'org_${n}', '${n}', '{ethereum}', now());
    INSERT INTO users (id, organization_id, email, name, status, organization_role) VALUES ('user_${n}', 'org_${n}', '${n}@example.com', '${n}', 'active', 'owner');
    INSERT INTO vault_roles (user_id, vault_id, organization_id, role) VALUES ('user_${n}', 'vault_${n}', 'org_${n}', 'developer');`
      )
      .join("")}`)
  const today = Partitions.dayOf(Date.now())
  for (let day = today - DAYS; day <= today; day++) {
    for (const [table, prefix] of [
      ["events", "evt"],
      ["deliveries", "del"],
      ["delivery_attempts", "del"]
    ] as const) {
      yield* sql.unsafe(
        `CREATE TABLE IF NOT EXISTS ${Partitions.nameOf(table, day)} PARTITION OF ${table} FOR VALUES FROM ('${Id.floor(prefix, day * DAY)}') TO ('${Id.floor(prefix, (day + 1) * DAY)}')`
      )
    }
    const count = Math.floor(EVENTS / DAYS)
    // Ids of an organization ascend with time; those of all of them are mixed.
    if (day < today)
      yield* sql.unsafe(`
        INSERT INTO events (id, organization_id, entity_id, vault_id, kind, schema_version, payload, occurred_at, created_at, dispatched_at)
        SELECT id, 'org_' || n % ${ORGANIZATIONS}, 'entity_' || n % ${ORGANIZATIONS}, 'vault_' || n % ${ORGANIZATIONS}, 'transaction.confirmed', 1,
          format('{"id":"%s","kind":"transaction.confirmed","schemaVersion":1,"entityId":"entity_%s","data":{"filler":"%s"}}', id, n % ${ORGANIZATIONS}, repeat(md5(id), 12)), at, at, at
        FROM (SELECT n, '${Id.floor("evt", day * DAY).slice(0, 14)}' || lpad(n::text, 16, '0') AS id, to_timestamp(${(day * DAY) / 1_000}) + n * interval '1 millisecond' AS at
          FROM generate_series(1, ${count}) AS n) made`)
  }
})

const key = async (name: string) => (await app.key(`user_${name}`)).secret

describe.skipIf(!long)("an upgrade", () => {
  beforeAll(async () => {
    await app.open([], {})
    await app.sql("DROP SCHEMA public CASCADE")
    await app.sql("CREATE SCHEMA public")
    await Effect.runPromise(old.pipe(Effect.provide(Database.layer(Redacted.make(app.databaseUrl), Database.pools.command)), Effect.scoped))
  }, 600_000)
  afterAll(() => app.close())

  test("C-1, C-3: an upgrade numbers and chains the events from before it while the service runs, and until then the feed begins at the upgrade", async () => {
    const wal = async () => Number((await app.sql("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes"))[0]?.["bytes"])
    const [walBefore, migratedAt] = [await wal(), performance.now()]
    const migrated = await cli(["migrate"], app.env)
    expect([migrated.code, migrated.stderr]).toEqual([0, ""])
    const [walMigrated, startedAt] = [await wal(), performance.now()]

    app.main = await app.start(["api"])
    const second = await app.start(["api"])
    const keys = await Promise.all(names.map(key))
    const filled = async () => (await app.sql("SELECT bool_and(filled) AS filled FROM event_streams"))[0]?.["filled"] === true
    const starts = await Promise.all(keys.map(async (one) => (await app.get("/v1/event-feed?from=now&limit=1", one)).json.resumeCursor))
    const early = await app.get("/v1/event-feed?limit=500", keys[0])
    const latest = await app.get("/v1/event-checkpoints/latest?entityId=entity_0", keys[0])
    if (!(await filled())) {
      expect(early.json.data).toEqual([])
      expect(codeOf(latest)).toBe("service_unavailable")
    }

    // The platform feeds all the while; each batch has an event of every organization.
    const latencies: Array<number> = []
    let fed = 0,
      feeding = true
    const feed = async () => {
      while (feeding) {
        const begun = performance.now()
        await app.feed(names.map((name) => transaction(`vault_${name}`, ++fed)))
        latencies.push(performance.now() - begun)
        await Bun.sleep(50)
      }
    }
    const feeder = feed()
    const numbered = async () => Number((await app.sql("SELECT count(*) AS count FROM events WHERE position <= 0"))[0]?.["count"])
    await until("the first numbers", async () => (await numbered()) > 0, 120)
    await second.end("SIGKILL")
    await until("the end of the numbering", filled, 1_500)
    const seconds = (performance.now() - startedAt) / 1_000
    const walFilled = await wal()
    await Bun.sleep(200)
    feeding = false
    await feeder

    // Old events are numbered in the order of their ids without gaps, and nothing else than the new ones comes after them.
    const [gaps] = await app.sql(`
      SELECT count(*) FILTER (WHERE position IS NULL)::int AS missing, count(*) FILTER (WHERE step <> 1)::int AS gaps,
        count(*) FILTER (WHERE position <= 0)::int AS old, count(*) FILTER (WHERE position > 0)::int AS fresh
      FROM (SELECT position, position - lag(position) OVER (PARTITION BY organization_id, position > 0 ORDER BY id) AS step FROM events) e`)
    const olds = Math.floor(EVENTS / DAYS) * DAYS
    expect(gaps).toEqual({ missing: 0, gaps: 0, old: olds, fresh: fed })
    for (const [index, name] of names.entries()) {
      const baseUrl = app.main.baseUrl
      const client = createClient({ baseUrl, apiKey: keys[index] ?? "" })
      const [row] = await app.sql("SELECT count(*)::int AS count FROM events WHERE organization_id = $1", [`org_${name}`])
      // Reads the feed from its beginning, which is the oldest event again, to its end.
      expect([name, await verifyEvents(client, `entity_${name}`)]).toEqual([
        name,
        expect.objectContaining({ complete: true, events: row?.["count"] })
      ])
      // A cursor from before holds.
      let after = starts[index]
      let seen = 0
      for (let more = true; more; ) {
        const page = (await app.get(`/v1/event-feed?limit=500&after=${after}`, keys[index])).json
        seen += page.data.length
        after = page.resumeCursor
        more = page.pagination.nextCursor !== null
      }
      expect([name, seen]).toEqual([name, fed / ORGANIZATIONS])
    }
    const sorted = latencies.sort((one, other) => one - other)
    const at = (share: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)
    const mb = (bytes: number) => Math.round(bytes / 1_048_576)
    report("upgrade", {
      events: olds,
      migrateSeconds: Math.round(startedAt - migratedAt) / 1_000,
      migrateWalMb: mb(walMigrated - walBefore),
      fillSeconds: Math.round(seconds),
      fillWalMb: mb(walFilled - walMigrated),
      batches: latencies.length,
      batchP50Ms: at(0.5),
      batchP99Ms: at(0.99),
      batchMaxMs: at(1)
    })
  }, 3_000_000)
})
