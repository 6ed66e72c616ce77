/**
 * `bun run bench reads [--large]`: pages of a vault's transactions against the bare floor, in one run, at 10
 * thousand and 1 million rows (10 million with --large), and the first page against the 1,000th.
 */

import * as fs from "node:fs"
import * as path from "node:path"
import { options } from "./support/options.ts"
import { announced, custody, database, embedded, end, environment, folder, load, median, start } from "./support/servers.ts"

const ROUNDS = 5,
  SECONDS = 4,
  CONNECTIONS = 32
const VAULT = "vault_bench"
const sizes = [10_000, 1_000_000, ...(options.large ? [10_000_000] : [])]

const records = [
  { type: "network", name: "ethereum", kind: "mainnet" },
  { type: "asset", id: "ethereum/native", symbol: "ETH", name: "Ether", decimals: 18, network: "ethereum" },
  { type: "organization", id: "org_bench", name: "Bench", networks: ["ethereum"] },
  { type: "entity", id: "entity_bench", organizationId: "org_bench", name: "Bench" },
  ...[VAULT, "vault_other"].map((id) => ({
    type: "vault",
    id,
    entityId: "entity_bench",
    label: "Bench",
    networks: ["ethereum"],
    createdAt: "2020-01-01T00:00:00Z"
  })),
  {
    type: "user",
    id: "user_bench",
    organizationId: "org_bench",
    email: "bench@example.com",
    name: "Bench",
    status: "active",
    organizationRole: "owner",
    vaultRoles: [{ vaultId: VAULT, role: "developer" }]
  }
]

/** Rows as the ledger would write them; SQL makes millions of them in minutes. */
const seed = async (client: Awaited<ReturnType<typeof database>>, from: number, to: number) => {
  for (let start = from; start < to; start += 500_000) {
    await client.query(
      `
      INSERT INTO transactions (vault_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
      SELECT '${VAULT}', 'ethereum', hash, 0, 'inbound', 'confirmed', 'ethereum/native', amount, source, target, at, format(
        '{"hash":"%s","network":"ethereum","status":"confirmed","direction":"inbound","asset":"ethereum/native","amount":"%s","from":"%s","to":"%s","timestamp":"%s"}',
        hash, amount, source, target, to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
      FROM (
        SELECT '0x' || md5(n::text) || md5('b' || n) AS hash, (n % 1000 + 1)::numeric / 1000 AS amount,
          '0x' || substr(md5('f' || n % 5000) || md5('g' || n % 5000), 1, 40) AS source,
          '0x' || substr(md5('t' || n % 300) || md5('u' || n % 300), 1, 40) AS target,
          timestamptz '2020-01-01T00:00:00Z' + (n / 20) * interval '12 seconds' AS at
        FROM generate_series($1::bigint, $2::bigint) AS n) rows`,
      [start, Math.min(to, start + 500_000) - 1]
    )
  }
  await client.query("VACUUM ANALYZE transactions")
}

const table: Array<Record<string, unknown>> = []

try {
  const env = environment()
  fs.writeFileSync(path.join(folder, "records.ndjson"), records.map((record) => JSON.stringify(record)).join("\n"))
  const ours = await start("src/main.ts", ["start", "--roles", "api"], env, announced)
  await custody(["load", path.join(folder, "records.ndjson"), "--no-events"], env)
  const { secret: key } = JSON.parse(
    await custody(["keys", "create", "--user", "user_bench", "--scopes", "vault:read", "--all-vaults"], env)
  )
  const client = await database()
  await client.query("SET timezone = 'UTC'")
  const { databaseUrl } = embedded()
  const floor = await start(
    "bench/support/readsFloor.ts",
    [],
    { ...env, DATABASE_URL: databaseUrl },
    (line): { port: number } | undefined => (line.startsWith("{") ? JSON.parse(line) : undefined)
  )

  /** The cursor after `rows` rows. */
  const cursorAfter = async (rows: number): Promise<string> => {
    let cursor: string | null = null
    for (let left = rows; left > 0; left -= 500) {
      const response = await fetch(
        `http://127.0.0.1:${ours.port}/v1/vaults/${VAULT}/transactions?limit=${Math.min(500, left)}${cursor === null ? "" : `&cursor=${cursor}`}`,
        { headers: { authorization: `Bearer ${key}` } }
      )
      const page: { pagination: { nextCursor: string | null } } = (await response.json()) as never
      cursor = page.pagination.nextCursor
    }
    return cursor ?? ""
  }

  let seeded = 0
  const firstPages: Record<string, number> = {}
  for (const size of sizes) {
    await seed(client, seeded, size)
    seeded = size
    for (const limit of [20, 100]) {
      const ask = { paths: [`/v1/vaults/${VAULT}/transactions?limit=${limit}`], key, connections: CONNECTIONS, seconds: SECONDS }
      const pairs = []
      for (let round = 0; round < ROUNDS; round++)
        pairs.push({ floor: await load({ ...ask, port: floor.port }), ours: await load({ ...ask, port: ours.port }) })
      table.push({
        rows: size,
        limit,
        floorPerSecond: median(pairs.map((_) => _.floor.perSecond)),
        oursPerSecond: median(pairs.map((_) => _.ours.perSecond)),
        ratio: Math.round(median(pairs.map((_) => _.ours.perSecond / _.floor.perSecond)) * 100) / 100,
        floorP99Ms: median(pairs.map((_) => _.floor.p99Ms)),
        oursP99Ms: median(pairs.map((_) => _.ours.p99Ms))
      })
    }
    const deep = await cursorAfter(9_990)
    const first = { paths: [`/v1/vaults/${VAULT}/transactions?limit=10`], key, connections: CONNECTIONS, seconds: SECONDS, port: ours.port }
    const times = []
    for (let round = 0; round < ROUNDS; round++) {
      times.push({
        first: (await load(first)).perSecond,
        thousandth: (await load({ ...first, paths: [`${first.paths[0]}&cursor=${deep}`] })).perSecond
      })
    }
    firstPages[`${size}`] = median(times.map((_) => _.first))
    table.push({
      rows: size,
      limit: 10,
      firstPagePerSecond: median(times.map((_) => _.first)),
      thousandthPagePerSecond: median(times.map((_) => _.thousandth)),
      costAgainst10k: Math.round(((firstPages["10000"] ?? 0) / median(times.map((_) => _.thousandth))) * 100) / 100
    })
  }
  await client.end()
  console.log(JSON.stringify({ bench: "reads", rounds: ROUNDS, secondsEach: SECONDS, connections: CONNECTIONS, results: table }, null, 2))
  console.table(table.filter((row) => "ratio" in row))
  console.table(table.filter((row) => !("ratio" in row)))
} finally {
  await end()
}
