/**
 * `bun run bench filters [--large]`: pages of a vault's transactions, with all rows and with filters of which each matches half
 * of the rows and both together none; and another organization's pages beside 16 connections that request the worst of them.
 * Two services run side by side, one with 10 thousand rows and one with 1 million (10 million with --large), measured in turn.
 * Floor: the service with 10 thousand rows, and the other organization alone.
 */
import * as path from "node:path"
import { organizationWithKey } from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { announced, database, end, environment, folder, load, median, start } from "./support/servers.ts"

const ROUNDS = 5,
  SECONDS = 2
const SMALL = 10_000,
  LARGE = options.large ? 10_000_000 : 1_000_000,
  /** Rows of a statement that writes them. */
  PART = 100_000
/** Connections that request the filtered pages, and those of the other organization. */
const CONNECTIONS = 16,
  OTHERS = 4
/** Rows of the other organization. */
const FEW = 1_000

const filters = [
  "",
  "direction=outbound",
  "status=confirmed&direction=outbound",
  "status=confirmed&network=solana",
  "direction=inbound&asset=solana/native",
  "status=dropped"
]

/** Rows as the ledger writes them: one half is confirmed, inbound and on one network, the other the opposite of it. */
const seed = (client: Awaited<ReturnType<typeof database>>, vaultId: string, from: number, to: number) =>
  client.query(
    `INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
     SELECT md5($1::text || n)::uuid, $1, (SELECT organization_id FROM vaults WHERE id = $1), net, 'hash' || n, 0, CASE WHEN half = 0 THEN 'inbound' ELSE 'outbound' END, CASE WHEN half = 0 THEN 'confirmed' ELSE 'pending' END,
       net || '/native', 1, 'a', 'b', timestamptz '2024-01-01T00:00:00Z' + n * interval '1 second', format('{"n":%s}', n)
     FROM generate_series($2::int, $3::int) n, LATERAL (SELECT n % 2 AS half, CASE WHEN n % 2 = 0 THEN 'ethereum' ELSE 'solana' END AS net) x`,
    [vaultId, from + 1, to]
  )

/** A service with `rows` rows in one vault, and few in a vault of another organization. */
const serviceWith = async (directory: string, rows: number) => {
  const env = environment({ DATA_DIR: path.join(folder, directory) })
  const { port } = await start("src/main.ts", ["start", "--roles", "api"], env, announced)
  const [key, other] = [await organizationWithKey(env, "bench"), await organizationWithKey(env, "other")]
  const client = await database(directory)
  await client.query("INSERT INTO networks (name, kind) VALUES ('solana', 'mainnet') ON CONFLICT DO NOTHING")
  await client.query(
    "INSERT INTO assets (id, network, symbol, name, decimals) VALUES ('solana/native', 'solana', 'SOL', 'Solana', 9) ON CONFLICT DO NOTHING"
  )
  await seed(client, "vault_other", 0, FEW)
  for (let from = 0; from < rows; from += PART) await seed(client, "vault_bench", from, Math.min(rows, from + PART))
  // Completes the writes and cleanups that the rows cause, so that they are not measured.
  await client.query("VACUUM (ANALYZE, PARALLEL 0) transactions")
  await client.query("CHECKPOINT")
  await client.end()
  return { port, key, other }
}

const path20 = (vaultId: string, filter: string) => `/v1/vaults/${vaultId}/transactions?limit=20${filter === "" ? "" : `&${filter}`}`

try {
  const small = await serviceWith("small", SMALL)
  const large = await serviceWith("large", LARGE)
  const pages = (service: typeof small, filter: string) =>
    load({ paths: [path20("vault_bench", filter)], key: service.key, port: service.port, connections: OTHERS, seconds: SECONDS })
  // Programs that have run for a while are measured.
  for (const service of [small, large]) for (const filter of filters) await pages(service, filter)

  const costs = []
  for (const filter of filters) {
    const rounds = []
    for (let round = 0; round < ROUNDS; round++)
      rounds.push({ small: (await pages(small, filter)).perSecond, large: (await pages(large, filter)).perSecond })
    costs.push({
      filter: filter === "" ? "none" : filter,
      small: median(rounds.map((round) => round.small)),
      large: median(rounds.map((round) => round.large)),
      costAgainstSmall: Math.round(median(rounds.map((round) => round.small / round.large)) * 100) / 100
    })
  }

  const theirs = async () => {
    const ask = { paths: [path20("vault_other", "")], key: large.other, port: large.port, connections: OTHERS, seconds: SECONDS }
    const rounds = []
    for (let round = 0; round < ROUNDS; round++) rounds.push(await load(ask))
    return { perSecond: median(rounds.map((_) => _.perSecond)), p50Ms: median(rounds.map((_) => _.p50Ms)) }
  }
  const alone = await theirs()
  const worst = path20("vault_bench", "status=confirmed&direction=outbound")
  // Runs for longer than the others' rounds take; requests past the limit of reads get 503.
  const asked = { paths: [worst], key: large.key, port: large.port, connections: CONNECTIONS, seconds: ROUNDS * SECONDS + 6, mayFail: true }
  const beside = load(asked)
  await Bun.sleep(1_000)
  const others = { alone, [`beside ${CONNECTIONS} connections of another`]: await theirs() }
  await beside
  console.log(JSON.stringify({ bench: "filters", sizes: [SMALL, LARGE], rounds: ROUNDS, secondsEach: SECONDS, costs, others }, null, 2))
  console.table(costs)
  console.table(others)
} finally {
  await end()
}
