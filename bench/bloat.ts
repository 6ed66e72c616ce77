/**
 * `bun run bench bloat [--quick]`: a million events, each with a delivery that succeeds at once, pass through one day's
 * partitions with the statements of the dispatcher and of attempts: the size of tables and indexes at the end and after a
 * rebuild, WAL, and the cost of frequent statements at the beginning and at the end. Floor: partitions as Postgres creates
 * them, with its default settings and with indexes in the column order of their tables' indexes.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Layer, Redacted } from "effect"
import type pg from "pg"
import { OutboxRepo } from "../src/delivery/dispatch/OutboxRepo.ts"
import { AttemptsRepo } from "../src/delivery/sending/AttemptsRepo.ts"
import { WorkerProcess } from "../src/delivery/sending/WorkerProcess.ts"
import * as Database from "../src/runtime/database/Database.ts"
import * as Partitions from "../src/runtime/database/Partitions.ts"
import * as Id from "../src/values/Id.ts"
import { settingsOf } from "../test/support/servers.ts"
import { now, percentile, service, transactions } from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { database, embedded, end, environment, folder, load, stop } from "./support/servers.ts"

const EVENTS = options.quick ? 50_000 : 1_000_000
/** Events recorded at once, and how many of these batches are timed at the beginning and at the end. */
const BATCH = 1_000,
  BATCHES = EVENTS / BATCH,
  ENDS = Math.max(5, BATCHES / 50)
/** Time for autovacuum at the end. It begins once a minute. */
const REST_MS = options.quick ? 5_000 : 90_000
/** How long pages are requested, in seconds. */
const PAGES = options.quick ? 2 : 5
const DAY = 86_400_000

const partitionOf = (table: string) => Partitions.nameOf(table, Partitions.dayOf(Date.now()))
const TABLES = ["events", "deliveries", "delivery_attempts"].map(partitionOf)

/** Sizes in MB, dead rows, and the share of updates that wrote no index entries. */
const sizes = async (client: pg.Client) => {
  const { rows } = await client.query<Record<string, number>>(
    `SELECT relname AS name, round(pg_relation_size(relid) / 1e6)::int AS heap, round(pg_indexes_size(relid) / 1e6)::int AS indexes,
       n_dead_tup::int AS dead, autovacuum_count::int AS vacuums, round(100.0 * n_tup_hot_upd / nullif(n_tup_upd, 0))::int AS "hotPercent"
     FROM pg_stat_user_tables WHERE relname = ANY($1) ORDER BY relname`,
    [TABLES]
  )
  return rows
}

/** Pages that a statement reads, by its plan under the worker's settings. */
const pagesRead = async (client: pg.Client, statement: string): Promise<number> => {
  await client.query("BEGIN")
  for (const setting of Database.pools.worker.planner) await client.query(`SET LOCAL ${setting}`)
  const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement}`)
  await client.query("ROLLBACK")
  const plan: Record<string, number> = rows[0]["QUERY PLAN"][0].Plan
  return (plan["Shared Hit Blocks"] ?? 0) + (plan["Shared Read Blocks"] ?? 0)
}

const walOf = async (client: pg.Client): Promise<number> =>
  Number((await client.query("SELECT pg_current_wal_lsn() - '0/0' AS bytes")).rows[0]?.bytes)

/** Copies of the first event, in the log and in the outbox, as the ledger writes them; positions begin after `after`. */
const record = async (client: pg.Client, after: number) => {
  const ids = Array.from({ length: BATCH }, () => Id.make("evt")).sort()
  await client.query(
    `WITH one AS MATERIALIZED (SELECT e FROM events e ORDER BY e.position LIMIT 1),
     made AS MATERIALIZED (SELECT id, $2::bigint + n AS position FROM unnest($1::text[]) WITH ORDINALITY AS m (id, n)),
     logged AS (
       INSERT INTO events SELECT copy.* FROM one AS base (base), made, jsonb_populate_record(base,
         jsonb_build_object('id', made.id, 'position', made.position, 'created_at', clock_timestamp())) AS copy)
     INSERT INTO event_outbox (organization_id, position, event_id, entity_id, vault_id, kind)
     SELECT (e).organization_id, position, id, (e).entity_id, (e).vault_id, (e).kind FROM one, made`,
    [ids, after]
  )
}

const answer = {
  result: "2xx",
  httpStatus: 200,
  latencyMs: 12,
  bodySnippet: "",
  detail: null,
  retryAfterSeconds: undefined,
  stale: false
} as const

/** Claims waiting events and records a successful attempt of each delivery. Returns how long each claim and its attempts took, in ms. */
const drain = (webhookId: string) =>
  Effect.gen(function* () {
    const outbox = yield* OutboxRepo
    const attempts = yield* AttemptsRepo
    const sql = yield* SqlClient.SqlClient
    const attempt = (id: string) =>
      Effect.flatMap(attempts.begin({ id, after: 0, via: "first", claimKey: null }), (begun) =>
        begun === null || begun.number === null
          ? Effect.die(new Error(`no attempt of ${id} began`))
          : attempts.succeed({ deliveryId: id, webhookId, number: begun.number, via: "first", wakes: false, answer })
      )
    const claims: Array<number> = [],
      sent: Array<number> = []
    while (yield* outbox.waits) {
      const begunAt = now()
      const { any, claims: parts } = yield* outbox.claim
      if (!any) break
      const claimedAt = now()
      const deliveries = parts.flatMap((part) => part.deliveries)
      yield* Effect.forEach(deliveries, ({ id }) => attempt(id), { concurrency: "unbounded" })
      yield* sql`DELETE FROM commands WHERE key = ANY(${parts.map(({ key }) => key)}::text[])`
      claims.push(claimedAt - begunAt)
      sent.push(now() - claimedAt)
    }
    return { claims, sent }
  })

/** A service in a new data directory; `prepare` changes its empty partitions. */
const variant = async (prepare: (client: pg.Client) => Promise<void>) => {
  const ours = await service(environment(), "api", "https://hooks.example.com/")
  const client = await database()
  client.on("error", () => {})
  await prepare(client)
  await ours.feed(transactions(1).map(({ line }) => line))
  const webhookId = String((await client.query("SELECT id FROM webhooks")).rows[0]?.id)
  const services = Layer.provideMerge(
    Layer.mergeAll(OutboxRepo.layer, Layer.provide(AttemptsRepo.layer, WorkerProcess.layer)),
    Layer.merge(Database.layer(Redacted.make(embedded().databaseUrl), Database.pools.worker), settingsOf(path.join(folder, "settings")))
  )
  const costs: Array<Record<string, number | string>> = []
  /** Adds the current cost of the frequent statements. */
  const measure = async (when: string, timed: { readonly claims: ReadonlyArray<number>; readonly sent: ReadonlyArray<number> }) => {
    const perSecond = async (target: string) =>
      Math.round((await load({ port: ours.port, key: ours.key, paths: [target], connections: 8, seconds: PAGES })).perSecond)
    costs.push({
      when,
      claimMs: `${percentile(timed.claims, 0.5)}, ${percentile(timed.claims, 0.99)}`,
      attemptsMs: `${percentile(timed.sent, 0.5)}, ${percentile(timed.sent, 0.99)}`,
      pagesOfOverdue: await pagesRead(
        client,
        `SELECT d.id FROM deliveries d WHERE d.status IN ('PENDING', 'RETRYING') AND d.next_attempt_at < now() - interval '60 seconds'
         AND d.id >= '${Id.floor("del", Date.now() - 40 * DAY)}' ORDER BY d.next_attempt_at, d.id LIMIT 500`
      ),
      pagesOfWaiting: await pagesRead(
        client,
        `SELECT 1 FROM deliveries d WHERE d.webhook_id = '${webhookId}' AND d.status IN ('PENDING', 'RETRYING') ORDER BY d.next_attempt_at LIMIT 1`
      ),
      deliveriesPerSecond: await perSecond(`/v1/webhooks/${webhookId}/deliveries?limit=20`),
      eventsPerSecond: await perSecond("/v1/webhook-events?limit=20")
    })
  }
  const run = Effect.gen(function* () {
    let timed: { readonly claims: Array<number>; readonly sent: Array<number> } = { claims: [], sent: [] }
    for (let batch = 0; batch < BATCHES; batch++) {
      if (batch === BATCHES - ENDS) timed = { claims: [], sent: [] }
      yield* Effect.promise(() => record(client, 10 + batch * BATCH))
      const { claims, sent } = yield* drain(webhookId)
      timed.claims.push(...claims)
      timed.sent.push(...sent)
      if (batch === ENDS - 1) yield* Effect.promise(() => measure("first", timed))
    }
    return timed
  })
  const walBefore = await walOf(client)
  const last = await Effect.runPromise(Effect.provide(run, services))
  const walKb = Math.round((((await walOf(client)) - walBefore) / EVENTS / 1_024) * 100) / 100
  await measure("last", last)
  await Bun.sleep(REST_MS)
  await measure("after a rest", last)
  const before = await sizes(client)
  for (const table of TABLES) await client.query(`VACUUM FULL ${table}`)
  const rebuilt = await sizes(client)
  await client.end()
  await stop(ours.process)
  fs.rmSync(path.join(folder, "data"), { recursive: true })
  const tables = before.map((row, index) => ({
    ...row,
    rebuiltHeap: rebuilt[index]?.["heap"],
    rebuiltIndexes: rebuilt[index]?.["indexes"]
  }))
  return { walKb, costs, tables }
}

/** Creates today's partitions as Postgres does by default. */
const plain = async (client: pg.Client) => {
  const today = Partitions.dayOf(Date.now())
  for (const [table, prefix] of Partitions.tables) {
    const [from, to] = [today, today + 1].map((day) => `'${Id.floor(prefix, day * DAY)}'`)
    await client.query(`DROP TABLE ${partitionOf(table)}`)
    await client.query(`CREATE TABLE ${partitionOf(table)} PARTITION OF ${table} FOR VALUES FROM (${from}) TO (${to})`)
  }
}

try {
  const results = { plain: await variant(plain), ours: await variant(async () => {}) }
  console.log(JSON.stringify({ bench: "bloat", events: EVENTS, results }, null, 2))
  for (const { costs, tables } of Object.values(results)) {
    console.table(tables)
    console.table(costs)
  }
} finally {
  await end()
}
