/**
 * An upgrade from a version whose transactions were one table: `custody migrate` moves them into partitions while lists, exports
 * and single reads are answered and the platform feeds. It is killed before some of its statements in turn. Four thousand rows
 * among the tests, a million in the long run, with what readers and the feed notice, against the same load before. Decision
 * D-60.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { spawn } from "node:child_process"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Redacted } from "effect"
import * as Database from "../../src/database/Database.ts"
import { App, baseEnv, cli } from "../support/app.ts"
import { migrateTo } from "../support/earlierSchema.ts"
import { program } from "../support/program.ts"
import { transaction } from "../support/records.ts"
import { long, report } from "./Rig.ts"

const ROWS = long ? 1_000_000 : 4_000,
  VAULTS = 60
/** The last migration before the partitions. */
const BEFORE = 33
/** Transactions of a vault that nothing is fed to, and of one whose transactions are deleted meanwhile. */
const QUIET = 500,
  GONE = 1_000

/** The statements before which a move is killed: those of a part, later ones, and the last ones once every row is copied. */
const PART = long ? [1, 2, 3, 4, 5, 6, 7, 8, 100, 1_000, 5_000] : [1, 4, 8, 60],
  END = [3, 8, 11, 12, 13, 15, 17, 18, 19, 20, 21]

const app = new App()
let key = ""

/** The database as that version left it. Of the vaults' transactions every third is pending. */
const old = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* migrateTo(BEFORE)
  yield* sql.unsafe(`
    INSERT INTO networks (name, kind) VALUES ('ethereum', 'mainnet');
    INSERT INTO assets (id, network, symbol, name, decimals) VALUES ('ethereum/native', 'ethereum', 'ETH', 'Ether', 18);
    INSERT INTO organizations (id, name, networks) VALUES ('org_a', 'A', '{ethereum}');
    INSERT INTO event_streams (organization_id) VALUES ('org_a');
    INSERT INTO entities (id, organization_id, name) VALUES ('entity_a', 'org_a', 'A');
    INSERT INTO users (id, organization_id, email, name, status, organization_role) VALUES ('user_a', 'org_a', 'a@example.com', 'A', 'active', 'owner');
    INSERT INTO vaults (id, entity_id, organization_id, label, networks, created_at)
      SELECT id, 'entity_a', 'org_a', id, '{ethereum}', now() FROM (
        SELECT 'vault_' || n AS id FROM generate_series(0, ${VAULTS - 1}) n UNION ALL VALUES ('vault_quiet'), ('vault_gone')) v;
    INSERT INTO vault_roles (user_id, vault_id, organization_id, role, vault_created_at)
      SELECT 'user_a', id, 'org_a', 'developer', created_at FROM vaults;
    INSERT INTO transactions (vault_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
      SELECT vault, 'ethereum', '0x' || lpad(to_hex(n), 64, '0'), 0, 'inbound', status, 'ethereum/native', 1,
        '0x000000000000000000000000000000000000000a', '0x000000000000000000000000000000000000000b', timestamptz '2024-01-01' + n * interval '1 second',
        format('{"hash":"0x%s","network":"ethereum","status":"%s","filler":"%s"}', lpad(to_hex(n), 64, '0'), status, repeat('x', 200))
      FROM (SELECT n, CASE WHEN n <= ${GONE} THEN 'vault_gone' WHEN n <= ${GONE + QUIET} THEN 'vault_quiet' ELSE 'vault_' || n % ${VAULTS} END AS vault,
        CASE WHEN n % 3 = 0 THEN 'pending' ELSE 'confirmed' END AS status FROM generate_series(1, ${ROWS}) n) made`)
})

beforeAll(async () => {
  await app.open([], {})
  await app.sql("DROP SCHEMA public CASCADE")
  await app.sql("CREATE SCHEMA public")
  await Effect.runPromise(old.pipe(Effect.provide(Database.layer(Redacted.make(app.databaseUrl), Database.pools.command)), Effect.scoped))
}, 600_000)
afterAll(() => app.close())

/** Runs `custody migrate`, killed before the n-th statement of the move; returns its exit code, null if it was killed. */
const migrateUntil = (n: number) =>
  new Promise<number | null>((resolve) => {
    const child = spawn(process.execPath, [...program(), "migrate"], {
      env: { ...baseEnv(), ...app.env, FAIL_AT: `transactions-move:${n}` },
      stdio: ["ignore", "ignore", "ignore"]
    })
    child.once("exit", (code) => resolve(code))
  })

const count = async (where: string) => Number((await app.sql(`SELECT count(*) AS count FROM transactions WHERE ${where}`))[0]?.["count"])
const isOver = async () => (await app.sql("SELECT to_regclass('transactions_move') IS NULL AS over"))[0]?.["over"] === true
const isCopied = async () =>
  (await isOver()) || (await app.sql("SELECT last_id >= end_id AS copied FROM transactions_move"))[0]?.["copied"] === true
const shareOf = (all: Array<number>, share: number) =>
  Math.round(all.sort((one, other) => one - other)[Math.min(all.length - 1, Math.floor(all.length * share))] ?? 0)

/** Response times in ms. */
const newWaits = () => ({ page: [] as number[], one: [] as number[], export: [] as number[], batch: [] as number[] })
const summary = (waits: ReturnType<typeof newWaits>) =>
  Object.fromEntries(
    Object.entries(waits).map(([what, all]) => [
      what,
      { count: all.length, p50: shareOf(all, 0.5), p99: shareOf(all, 0.99), max: shareOf(all, 1) }
    ])
  )

test(
  "D-60: transactions are moved into partitions while the service reads and writes them, and a move that is killed between any two statements loses and repeats nothing",
  async () => {
    const wal = async () => Number((await app.sql("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes"))[0]?.["bytes"])
    // The schema changes; not one row is moved yet.
    expect(await migrateUntil(1)).toBe(null)
    expect(await isCopied()).toBe(false)
    app.main = await app.start(["api"])
    key = (await app.key("user_a")).secret
    const whole = await app.walk("/v1/vaults/vault_quiet/transactions", key, 500)
    const file = (await app.get("/v1/vaults/vault_quiet/transactions/export?format=ndjson", key)).text
    expect([whole.length, file.split("\n").length]).toEqual([QUIET, QUIET + 1])

    let over = false
    let waits = newWaits()
    const timed = async <A>(what: keyof typeof waits, act: () => Promise<A>): Promise<A> => {
      const begun = performance.now()
      const result = await act()
      waits[what].push(performance.now() - begun)
      return result
    }
    const repeatedly = async (act: (turn: number) => Promise<void>) => {
      for (let turn = 1; !over; turn++) {
        await act(turn)
        await Bun.sleep(50)
      }
    }
    let fed = 0,
      settled = 0,
      deleted = 0
    const traffic = Promise.all([
      repeatedly(async () => {
        const rows = []
        for (let cursor = ""; ; ) {
          const page = await timed("page", () => app.get(`/v1/vaults/vault_quiet/transactions?limit=100${cursor}`, key))
          expect(page.status).toBe(200)
          rows.push(...page.json.data)
          if (page.json.pagination.nextCursor === null) break
          cursor = `&cursor=${page.json.pagination.nextCursor}`
        }
        expect(rows).toEqual([...whole])
      }),
      repeatedly(async (turn) => {
        const row = whole[turn % whole.length]
        const found = await timed("one", () => app.get(`/v1/vaults/vault_quiet/transactions?hash=${row.hash}`, key))
        expect(found.json.data).toEqual([row])
      }),
      repeatedly(async () => {
        const again = await timed("export", () => app.get("/v1/vaults/vault_quiet/transactions/export?format=ndjson", key))
        expect([again.status, again.text === file]).toEqual([200, true])
      }),
      // New transactions, and old ones that settle: rows that were moved, and that were not.
      repeatedly(async () => {
        const fresh = Array.from({ length: 20 }, () => transaction(`vault_${fed % VAULTS}`, 2_000_000 + fed++))
        const changed = Array.from({ length: 5 }, () => {
          const n = GONE + QUIET + 1 + ((settled++ * 7919) % (ROWS - GONE - QUIET))
          return transaction(`vault_${n % VAULTS}`, 0, {
            hash: `0x${n.toString(16).padStart(64, "0")}`,
            status: "confirmed",
            from: "0x000000000000000000000000000000000000000a",
            to: "0x000000000000000000000000000000000000000b"
          })
        })
        await timed("batch", () => app.feed([...fresh, ...changed]))
      }),
      repeatedly(async () => {
        const rows = await app.sql(
          "DELETE FROM transactions WHERE id = ANY (ARRAY(SELECT id FROM transactions WHERE vault_id = 'vault_gone' ORDER BY random() LIMIT 20)) RETURNING id"
        )
        deleted += rows.length
      })
    ])

    // The same load while nobody moves rows; the triggers write to both tables already.
    await Bun.sleep(long ? 60_000 : 1_000)
    const control = waits
    waits = newWaits()
    const [walBefore, startedAt] = [await wal(), performance.now()]
    let kills = 0
    // The statements of a part, of the comparison and of the exchange.
    for (const n of PART) {
      if (await isCopied()) break
      await migrateUntil(n)
      kills++
    }
    if (!long) {
      while (!(await isCopied())) await migrateUntil(100)
      for (const n of END) {
        if (await isOver()) break
        await migrateUntil(n)
        kills++
      }
    }
    const { code, stdout, stderr } = await cli(["migrate"], app.env)
    expect([code, JSON.parse(stdout).applied]).toEqual([0, []])
    if (long) expect(stderr.split("\n").length).toBeGreaterThan(10)
    const [seconds, walAfter] = [(performance.now() - startedAt) / 1_000, await wal()]
    await Bun.sleep(200)
    over = true
    await traffic
    const during = summary(waits)
    const before = summary(control)

    expect(
      await app.sql(
        "SELECT relkind, (SELECT count(*)::int FROM pg_inherits WHERE inhparent = c.oid) AS partitions FROM pg_class c WHERE relname = 'transactions'"
      )
    ).toEqual([{ relkind: "p", partitions: 32 }])
    expect(await app.sql("SELECT relname FROM pg_class WHERE relname LIKE 'transactions%by_vault%'")).toEqual([])
    expect(await count("true")).toBe(ROWS + fed - deleted)
    expect(await count("vault_id = 'vault_gone'")).toBe(GONE - deleted)
    expect(await app.sql("SELECT count(*)::int AS rows, count(DISTINCT id)::int AS ids FROM transactions")).toEqual([
      { rows: ROWS + fed - deleted, ids: ROWS + fed - deleted }
    ])
    // The API shows each row once, in the state that was fed last.
    const mine = Array.from({ length: settled }, (_, turn) => GONE + QUIET + 1 + ((turn * 7919) % (ROWS - GONE - QUIET))).filter(
      (n) => n % VAULTS === 7
    )
    const listed = await app.walk("/v1/vaults/vault_7/transactions", key, 500)
    const statuses = new Map(listed.map((row) => [row.hash, row.status]))
    expect(listed.length).toBe(statuses.size)
    expect(listed.length).toBe(await count("vault_id = 'vault_7'"))
    for (const n of mine) expect([n, statuses.get(`0x${n.toString(16).padStart(64, "0")}`)]).toEqual([n, "confirmed"])
    await app.feed([transaction("vault_7", 1_999_999)])
    expect((await app.walk("/v1/vaults/vault_7/transactions", key, 500)).length).toBe(listed.length + 1)
    // Nothing is left to do, and it is not said again.
    const again = await cli(["migrate"], app.env)
    expect([again.code, again.stdout.trim(), again.stderr]).toEqual([0, '{"applied":[]}', ""])
    report("transactions moved", {
      rows: ROWS,
      seconds: Math.round(seconds * 10) / 10,
      kills,
      walMb: Math.round((walAfter - walBefore) / 1_048_576),
      fed: fed + settled,
      msBefore: before,
      msDuring: during
    })
  },
  long ? 3_000_000 : 300_000
)
