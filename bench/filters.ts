/**
 * `bun run bench filters`: pages of a vault's transactions by filters of which each matches half of the rows and both
 * together none, at 10 thousand and 400 thousand rows; and another organization's pages beside 16 connections that ask for
 * them. Floor: the same at 10 thousand, and the other organization alone.
 */
import { organizationWithKey } from "./support/deliveries.ts"
import { announced, database, end, environment, load, median, start } from "./support/servers.ts"

const ROUNDS = 3,
  SECONDS = 3
const SIZES = [10_000, 400_000]
/** Connections that ask for the filters, and those of the other organization. */
const CONNECTIONS = 16,
  OTHERS = 4
/** Rows of the other organization. */
const FEW = 1_000

const filters = [
  "direction=outbound",
  "status=confirmed&direction=outbound",
  "status=confirmed&network=solana",
  "direction=inbound&asset=solana/native",
  "status=dropped"
]

/** Rows as the ledger writes them: one half is confirmed, inbound and on one network, the other the opposite of it. */
const seed = (client: Awaited<ReturnType<typeof database>>, vaultId: string, from: number, to: number) =>
  client.query(
    `INSERT INTO transactions (vault_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
     SELECT $1, net, 'hash' || n, 0, CASE WHEN half = 0 THEN 'inbound' ELSE 'outbound' END, CASE WHEN half = 0 THEN 'confirmed' ELSE 'pending' END,
       net || '/native', 1, 'a', 'b', timestamptz '2024-01-01T00:00:00Z' + n * interval '1 second', format('{"n":%s}', n)
     FROM generate_series($2::int, $3::int) n, LATERAL (SELECT n % 2 AS half, CASE WHEN n % 2 = 0 THEN 'ethereum' ELSE 'solana' END AS net) x`,
    [vaultId, from + 1, to]
  )

try {
  const env = environment()
  const { port } = await start("src/main.ts", ["start", "--roles", "api"], env, announced)
  const [key, other] = [await organizationWithKey(env, "bench"), await organizationWithKey(env, "other")]
  const client = await database()
  await client.query("INSERT INTO networks (name, kind) VALUES ('solana', 'mainnet') ON CONFLICT DO NOTHING")
  await client.query(
    "INSERT INTO assets (id, network, symbol, name, decimals) VALUES ('solana/native', 'solana', 'SOL', 'Solana', 9) ON CONFLICT DO NOTHING"
  )
  await seed(client, "vault_other", 0, FEW)

  const pages = async (path: string, secret: string, connections: number) => {
    const rounds = []
    for (let round = 0; round < ROUNDS; round++)
      rounds.push(await load({ paths: [path], key: secret, port, connections, seconds: SECONDS }))
    return { perSecond: median(rounds.map((_) => _.perSecond)), p50Ms: median(rounds.map((_) => _.p50Ms)) }
  }
  const target = (filter: string) => `/v1/vaults/vault_bench/transactions?limit=20&${filter}`

  const costs: Record<string, Record<string, number>> = Object.fromEntries(filters.map((filter) => [filter, {}]))
  let seeded = 0
  for (const size of SIZES) {
    await seed(client, "vault_bench", seeded, size)
    seeded = size
    await client.query("VACUUM (ANALYZE, PARALLEL 0) transactions")
    for (const filter of filters)
      Object.assign(costs[filter] ?? {}, { [`perSecondAt${size}`]: (await pages(target(filter), key, 4)).perSecond })
  }
  await client.end()

  const theirs = "/v1/vaults/vault_other/transactions?limit=20"
  const alone = await pages(theirs, other, OTHERS)
  const worst = filters[1] ?? ""
  // For longer than the others' rounds take; those past the bound on reads are 503.
  const beside = load({ paths: [target(worst)], key, port, connections: CONNECTIONS, seconds: ROUNDS * SECONDS + 4, mayFail: true })
  await Bun.sleep(1_000)
  const besides = await pages(theirs, other, OTHERS)
  await beside
  const others = { alone, [`beside ${CONNECTIONS} connections of another`]: besides }
  console.log(JSON.stringify({ bench: "filters", sizes: SIZES, rounds: ROUNDS, secondsEach: SECONDS, costs, others }, null, 2))
  console.table(costs)
  console.table(others)
} finally {
  await end()
}
