/**
 * `bun run bench lists`: the event log, a webhook's deliveries and its health at 10 thousand and at 1 million events
 * and deliveries, with and without filters, first and late pages, for a key that sees everything and for one that
 * sees one in 400. Each is compared with itself: the cost must not depend on the number of rows. First pages, one event and
 * one webhook are also compared with a bare floor, in turn.
 */

import * as fs from "node:fs"
import * as path from "node:path"
import * as Partitions from "../src/runtime/database/Partitions.ts"
import * as Id from "../src/values/Id.ts"
import { announced, custody, database, embedded, end, environment, folder, load, median, start } from "./support/servers.ts"

const ROUNDS = 3,
  SECONDS = 2,
  CONNECTIONS = 16
const sizes = [10_000, 1_000_000]
/** Days over which the rows are spread, and the number of rows before a late page. */
const DAYS = 30,
  LATE = 5_000
const VAULTS = 20
const DAY = 86_400_000

const vaultIds = Array.from({ length: VAULTS }, (_, index) => `vault_${index}`)
const user = (id: string, organizationRole: string, vaults: ReadonlyArray<string>) => ({
  type: "user",
  id,
  organizationId: "org_bench",
  email: `${id}@example.com`,
  name: id,
  status: "active",
  organizationRole,
  vaultRoles: vaults.map((vaultId) => ({ vaultId, role: "developer" }))
})
const records = [
  { type: "network", name: "ethereum", kind: "mainnet" },
  { type: "asset", id: "ethereum/native", symbol: "ETH", name: "Ether", decimals: 18, network: "ethereum" },
  { type: "organization", id: "org_bench", name: "Bench", networks: ["ethereum"] },
  { type: "entity", id: "entity_bench", organizationId: "org_bench", name: "Bench" },
  ...[...vaultIds, "vault_rare"].map((id) => ({
    type: "vault",
    id,
    entityId: "entity_bench",
    label: id,
    networks: ["ethereum"],
    createdAt: "2020-01-01T00:00:00Z"
  })),
  user("user_owner", "owner", [...vaultIds, "vault_rare"]),
  user("user_rare", "member", ["vault_rare"])
]

/** The id of a prefix at a time, by the number `n`: ten characters of time, the rest of the row's number. */
const idFunction = `
  CREATE FUNCTION bench_id(prefix text, at timestamptz, n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT prefix || '_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + ((ms >> (5 * (9 - place))) & 31)::int, 1), '' ORDER BY place)
      || 'e' || lpad(to_hex(n), 15, '0')
    FROM (SELECT floor(extract(epoch FROM at) * 1000)::bigint AS ms) t, generate_series(0, 9) AS place GROUP BY ms $$`

type Client = Awaited<ReturnType<typeof database>>

const makePartitions = async (client: Client) => {
  const today = Partitions.dayOf(Date.now())
  for (let day = today - DAYS - 1; day < today - 1; day++) {
    for (const [table, prefix] of Partitions.tables) {
      await client.query(
        `CREATE TABLE ${Partitions.nameOf(table, day)} PARTITION OF ${table} FOR VALUES FROM ('${Id.floor(prefix, day * DAY)}') TO ('${Id.floor(prefix, (day + 1) * DAY)}')`
      )
    }
  }
}

/** Rows as the ledger, the dispatcher and the worker write them: each event delivered once, one in 400 rare in every way, so that a page of them is full at every size. */
const seed = async (client: Client, webhookId: string, from: number, to: number) => {
  const span = DAYS * DAY - 3_600_000
  for (let first = from; first < to; first += 100_000) {
    const range = [first, Math.min(to, first + 100_000) - 1]
    await client.query(
      `WITH rows AS MATERIALIZED (
         SELECT n, date_trunc('milliseconds', now() - make_interval(secs => (hashint8(n)::bigint + 2147483648) % ${span} / 1000.0)) AS at, n % 400 = 7 AS rare
         FROM generate_series($1::bigint, $2::bigint) AS n
       ), made AS (
         SELECT n, bench_id('evt', at, n) AS event_id, bench_id('del', at, n) AS id, at, rare,
           CASE WHEN rare THEN 'vault_rare' ELSE 'vault_' || n % ${VAULTS} END AS vault_id,
           CASE WHEN rare THEN 'vault.updated' WHEN n % 3 = 0 THEN 'balance.updated' ELSE 'transaction.confirmed' END AS kind FROM rows
       ), logged AS (
         INSERT INTO events (id, organization_id, position, entity_id, vault_id, kind, schema_version, payload, occurred_at, created_at, dispatched_at)
         SELECT event_id, 'org_bench', n + 1, 'entity_bench', vault_id, kind, 1, format('{"id":"%s","kind":"%s","data":{"vaultId":"%s","filler":"%s"}}',
           event_id, kind, vault_id, repeat(md5(event_id), 12)), at, at, at FROM made
       ), sent AS (
         INSERT INTO deliveries (id, event_id, webhook_id, organization_id, vault_id, sequence, kind, status, failure_reason, created_at, delivered_at)
         SELECT id, event_id, '${webhookId}', 'org_bench', vault_id, n + 1, kind, CASE WHEN rare THEN 'FAILED' ELSE 'DELIVERED' END,
           CASE WHEN rare THEN 'EXHAUSTED' END, at, CASE WHEN rare THEN NULL ELSE at END FROM made
       )
       INSERT INTO delivery_attempts (delivery_id, number, at, result, http_status, latency_ms, body_snippet, organization_id, webhook_id, process_id)
       SELECT id, 1, at, CASE WHEN rare THEN '5xx' ELSE '2xx' END, CASE WHEN rare THEN 500 ELSE 200 END, 12, 'ok', 'org_bench', '', '' FROM made`,
      range
    )
  }
  await client.query("VACUUM (ANALYZE, PARALLEL 0) events, deliveries, delivery_attempts")
}

/** Waiting work and the counters of a day: the same at every size, because neither is history. */
const seedHealth = (client: Client, webhookId: string) =>
  client.query(
    `WITH waiting AS (
       INSERT INTO deliveries (id, event_id, webhook_id, organization_id, sequence, vault_id, kind, status, next_attempt_at)
       SELECT bench_id('del', now(), n), bench_id('evt', now(), n), $1, 'org_bench', n, 'vault_0', 'transaction.confirmed', 'RETRYING', now() + interval '1 day' FROM generate_series(1, 100) AS n)
     INSERT INTO webhook_counters (webhook_id, slot, shard, delivered, failed, last_success_at)
     SELECT $1, date_bin('10 minutes', now(), 'epoch') - slot * interval '10 minutes', shard, 10, 1, now()
     FROM generate_series(0, 143) AS slot, generate_series(0, 3) AS shard`,
    [webhookId]
  )

try {
  const env = environment()
  fs.writeFileSync(path.join(folder, "records.ndjson"), records.map((record) => JSON.stringify(record)).join("\n"))
  // Without a worker: nothing must be sent.
  const ours = await start("src/main.ts", ["start", "--roles", "api"], env, announced)
  await custody(["load", path.join(folder, "records.ndjson"), "--no-events"], env)
  const keyOf = async (id: string): Promise<string> =>
    JSON.parse(await custody(["keys", "create", "--user", id, "--scopes", "webhook:read,webhook:manage", "--all-vaults"], env)).secret
  const [owner, rare] = [await keyOf("user_owner"), await keyOf("user_rare")]
  const base = `http://127.0.0.1:${ours.port}`
  const ask = async (target: string, key: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
    const response = await fetch(`${base}${target}`, { ...init, headers })
    if (!response.ok) throw new Error(`${target} answered ${response.status}: ${await response.text()}`)
    // Responses of our own service, whose shape is checked by its tests.
    const answer: { id: string; data: ReadonlyArray<{ id: string }>; pagination: { nextCursor: string | null } } =
      (await response.json()) as never
    return answer
  }
  const webhook = {
    url: "https://hooks.example.com/",
    entityIds: ["entity_bench"],
    eventKinds: ["transaction.confirmed"],
    notificationEmail: "bench@example.com"
  }
  const { id: webhookId } = await ask("/v1/webhooks", owner, { method: "POST", body: JSON.stringify(webhook) })

  const client = await database()
  await client.query("SET timezone = 'UTC'")
  await client.query(idFunction)
  await makePartitions(client)
  await seedHealth(client, webhookId)
  const floor = await start(
    "bench/support/listsFloor.ts",
    [webhookId],
    { ...env, DATABASE_URL: embedded().databaseUrl },
    (line): { readonly port: number } | undefined => (line.startsWith("{") ? JSON.parse(line) : undefined)
  )

  /** The target of the page after this many rows. */
  const late = async (target: string, rows: number): Promise<string> => {
    let cursor = ""
    for (let left = rows; left > 0; left -= 500) {
      const { pagination } = await ask(`${target}?limit=500${cursor}`, owner)
      cursor = `&cursor=${pagination.nextCursor}`
    }
    return `${target}?limit=20${cursor}`
  }

  const measured: Record<string, Array<{ readonly perSecond: number; readonly p99Ms: number; readonly floor: number | null }>> = {}
  let seeded = 0
  for (const size of sizes) {
    await seed(client, webhookId, seeded, size)
    seeded = size
    const events = "/v1/webhook-events",
      deliveries = `/v1/webhooks/${webhookId}/deliveries`
    const [event] = (await ask(`${events}?limit=1`, owner)).data
    const middle = encodeURIComponent(new Date(Date.now() - (DAYS / 2) * DAY).toISOString())
    const cases: ReadonlyArray<readonly [name: string, target: string, key: string, floor?: string]> = [
      ["events, first page", `${events}?limit=20`, owner, "/events"],
      ["events, late page", await late(events, LATE), owner],
      ["events, a rare kind", `${events}?limit=20&kind=vault.updated`, owner],
      ["events, a kind that never was", `${events}?limit=20&kind=transaction.reorged`, owner],
      ["events, a rare vault", `${events}?limit=20&vaultId=vault_rare`, owner],
      ["events, before a time", `${events}?limit=20&occurredBefore=${middle}`, owner],
      ["events, a key that sees one in 400", `${events}?limit=20`, rare],
      ["one event", `${events}/${event?.id}`, owner, `/event?id=${event?.id}`],
      ["an event's deliveries", `${events}/${event?.id}/deliveries`, owner],
      ["deliveries, first page", `${deliveries}?limit=20`, owner, "/deliveries"],
      ["deliveries, late page", await late(deliveries, LATE), owner],
      ["deliveries, a rare status", `${deliveries}?limit=20&status=FAILED`, owner],
      ["deliveries, a rare kind", `${deliveries}?limit=20&kind=vault.updated`, owner],
      ["deliveries, a status and kind that never were", `${deliveries}?limit=20&status=CANCELED&kind=vault.created`, owner],
      ["a webhook with its health", `/v1/webhooks/${webhookId}`, owner, "/webhook"],
      ["webhooks", "/v1/webhooks?limit=20", owner]
    ]
    for (const [name, target, key, bare] of cases) {
      const rounds = [],
        floors = []
      for (let round = 0; round < ROUNDS; round++) {
        rounds.push(await load({ paths: [target], key, port: ours.port, connections: CONNECTIONS, seconds: SECONDS }))
        if (bare !== undefined)
          floors.push(await load({ paths: [bare], key, port: floor.port, connections: CONNECTIONS, seconds: SECONDS }))
      }
      const result = {
        perSecond: median(rounds.map((_) => _.perSecond)),
        p99Ms: median(rounds.map((_) => _.p99Ms)),
        floor: bare === undefined ? null : median(floors.map((_) => _.perSecond))
      }
      measured[name] = [...(measured[name] ?? []), result]
    }
  }
  await client.end()
  const results = Object.entries(measured).map(([list, [small, large]]) => ({
    list,
    perSecondAt10k: small?.perSecond,
    perSecondAt1M: large?.perSecond,
    p99MsAt10k: small?.p99Ms,
    p99MsAt1M: large?.p99Ms,
    floorAt1M: large?.floor,
    oursOverFloor: large?.floor == null ? null : Math.round((large.perSecond / large.floor) * 100) / 100,
    costAgainst10k: Math.round(((small?.perSecond ?? 0) / (large?.perSecond ?? 1)) * 100) / 100
  }))
  console.log(
    JSON.stringify({ bench: "lists", rounds: ROUNDS, secondsEach: SECONDS, connections: CONNECTIONS, days: DAYS, results }, null, 2)
  )
  console.table(results)
} finally {
  await end()
}
