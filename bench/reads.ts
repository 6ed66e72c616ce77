/**
 * `bun run bench reads [--large] [--profile]`: pages of a vault's transactions against the bare floor, in one run, at 10
 * thousand and 1 million rows (10 million with --large), and the first page against the 1,000th. `--profile`: pages of 20
 * under Bun's CPU profiler, and nothing else.
 */
import * as path from "node:path"
import { options } from "./support/options.ts"
import { largest } from "./support/profile.ts"
import { announced, database, embedded, end, environment, folder, load, median, start, stop } from "./support/servers.ts"
import { loadVault, seedTransactions, VAULT } from "./support/vaultRows.ts"

const ROUNDS = 5,
  SECONDS = 4,
  CONNECTIONS = 32
const sizes = [10_000, 1_000_000, ...(options.large ? [10_000_000] : [])]

const table: Array<Record<string, unknown>> = []

const profiled = async () => {
  const env = environment()
  const profile = ["--cpu-prof", `--cpu-prof-dir=${folder}`, "--cpu-prof-name=service.cpuprofile"]
  const ours = await start("src/main.ts", ["start", "--roles", "api"], env, announced, profile)
  const key = await loadVault(env)
  const client = await database()
  await seedTransactions(client, 0, sizes[0] ?? 0)
  await client.end()
  const ask = { paths: [`/v1/vaults/${VAULT}/transactions?limit=20`], key, connections: CONNECTIONS, port: ours.port }
  await load({ ...ask, seconds: SECONDS })
  const from = Date.now()
  const { perSecond } = await load({ ...ask, seconds: 5 * SECONDS })
  const to = Date.now()
  await stop(ours.process)
  const costs = largest(path.join(folder, "service.cpuprofile"), from, to, 20)
  console.log(JSON.stringify({ bench: "reads", profile: true, perSecond, ...costs }, null, 2))
  console.table(costs.functions)
  console.table(costs.packages)
}

const measured = async () => {
  const env = environment()
  const ours = await start("src/main.ts", ["start", "--roles", "api"], env, announced)
  const key = await loadVault(env)
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
    await seedTransactions(client, seeded, size)
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
}

try {
  await (options.profile ? profiled : measured)()
} finally {
  await end()
}
