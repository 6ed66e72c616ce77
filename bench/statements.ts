/**
 * `bun run bench statements [--quick]`: past balances of a vault with a long history against its present ones; and
 * sealing, by the schedule, of a day with very many transactions and of very many vaults, with the effect on a client that
 * reads meanwhile. Floors: the present balances; the sums of the day in a bare query; for each vault a bare transaction that
 * inserts a signed row; the same reads alone. C-6.
 */
import { createHash, generateKeyPairSync, sign } from "node:crypto"
import { Client, Connection } from "@temporalio/client"
import pg from "pg"
import { percentile } from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { reader } from "./support/reader.ts"
import { announced, database, embedded, end, environment, load, median, start } from "./support/servers.ts"
import { loadVault, seedTransactions, VAULT } from "./support/vaultRows.ts"

const ASSETS = 200,
  HISTORY = options.quick ? 100_000 : 1_000_000,
  TRANSACTIONS = 100_000,
  VAULTS = options.quick ? 1_000 : 10_000
const ROUNDS = options.quick ? 1 : 3,
  SECONDS = 3,
  CONNECTIONS = 8
const DAY = 86_400_000
/** Vaults that a sealer handles at a time; the floor the same. */
const CONCURRENCY = 4

const yesterday = new Date(Math.floor(Date.now() / DAY) * DAY - DAY).toISOString()
const rounded = (value: number) => Math.round(value * 100) / 100

/** Balance records of all assets, an hour apart, ending now. */
const seedHistory = async (client: pg.Client) => {
  const each = HISTORY / ASSETS
  await client.query(
    `INSERT INTO balances (vault_id, organization_id, asset_id, network, symbol, amount, as_of, recorded_at)
     SELECT '${VAULT}', 'org_bench', id, network, symbol, 1, date_trunc('milliseconds', now()), now() FROM assets WHERE id <> 'ethereum/native' LIMIT ${ASSETS}`
  )
  await client.query(
    `INSERT INTO balance_history (vault_id, asset_id, amount, as_of, recorded_at)
     SELECT b.vault_id, b.asset_id, n::numeric / 1000, b.as_of - (${each} - n) * interval '1 hour', now()
     FROM balances b CROSS JOIN generate_series(1, ${each}) n WHERE b.vault_id = '${VAULT}'`
  )
  await client.query("VACUUM ANALYZE balances, balance_history")
}

/** Vaults, each with a balance of yesterday and a transaction. */
const seedVaults = async (client: pg.Client) => {
  await client.query(
    `INSERT INTO vaults (id, entity_id, organization_id, label, networks, created_at)
     SELECT 'vault_many_' || n, entity_id, organization_id, label, networks, created_at FROM vaults, generate_series(1, ${VAULTS}) n WHERE id = '${VAULT}'`
  )
  await client.query(
    `INSERT INTO balances (vault_id, organization_id, asset_id, network, symbol, amount, as_of, recorded_at)
     SELECT v.id, v.organization_id, a.id, a.network, a.symbol, 1.5, '${yesterday}', now() FROM vaults v, assets a WHERE v.id LIKE 'vault_many_%' AND a.id = 'ethereum/native'`
  )
  await client.query(
    `INSERT INTO balance_history (vault_id, asset_id, amount, as_of, recorded_at)
     SELECT vault_id, asset_id, amount, as_of, recorded_at FROM balances WHERE vault_id LIKE 'vault_many_%'`
  )
  await client.query(
    `INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
     SELECT md5(id)::uuid, id, organization_id, 'ethereum', id, 0, 'inbound', 'confirmed', 'ethereum/native', 1.5, 'a', 'b', '${yesterday}', '{}' FROM vaults WHERE id LIKE 'vault_many_%'`
  )
  await client.query("VACUUM ANALYZE vaults, balances, balance_history, transactions")
}

/** For each vault of a list, a bare transaction: the sums of its day, and one signed row. Returns the seconds that it took. */
const bareSealing = async (databaseUrl: string, ids: ReadonlyArray<string>): Promise<number> => {
  const { privateKey } = generateKeyPairSync("ed25519")
  const clients = await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      const client = new pg.Client({ connectionString: databaseUrl })
      await client.connect()
      return client
    })
  )
  await clients[0]?.query("CREATE UNLOGGED TABLE bench_sealed (vault_id text PRIMARY KEY, assets text, hash text, signature text)")
  await clients[0]?.query("ALTER TABLE bench_sealed SET LOGGED")
  const startedAt = performance.now()
  let next = 0
  await Promise.all(
    clients.map(async (client) => {
      for (let id = ids[next++]; id !== undefined; id = ids[next++]) {
        await client.query("BEGIN")
        const { rows } = await client.query({
          name: "sums",
          text: `SELECT asset_id, direction, sum(amount)::text, count(*) FROM transactions WHERE vault_id = $1 AND status = 'confirmed'
            AND timestamp >= $2 AND timestamp < $2::timestamptz + interval '1 day' GROUP BY 1, 2`,
          values: [id, yesterday]
        })
        const assets = JSON.stringify(rows)
        const hash = createHash("sha256").update(assets).digest()
        await client.query({
          name: "insert",
          text: "INSERT INTO bench_sealed VALUES ($1, $2, $3, $4)",
          values: [id, assets, hash.toString("hex"), sign(null, hash, privateKey).toString("base64url")]
        })
        await client.query("COMMIT")
      }
    })
  )
  const seconds = (performance.now() - startedAt) / 1_000
  await Promise.all(clients.map((client) => client.end()))
  return seconds
}

try {
  const env = environment({ STATEMENT_DELAY: "0s", STATEMENT_HISTORY: "1d" })
  const ours = await start("src/main.ts", ["start", "--roles", "api,worker"], env, announced)
  const client = await database()
  await client.query("SET timezone = 'UTC'")
  const { databaseUrl, temporalAddress } = embedded()
  const connection = await Connection.connect({ address: temporalAddress })
  const schedule = new Client({ connection }).schedule.getHandle("custody-seal-statements-webhook-deliveries")
  for (let tries = 0; ; tries++) {
    try {
      // Sealing begins when it is triggered, and at no other time.
      await schedule.pause()
      break
    } catch (error) {
      if (tries > 100) throw error
      await Bun.sleep(200)
    }
  }
  const key = await loadVault(env, ASSETS)
  await seedHistory(client)

  const balances = `/v1/vaults/${VAULT}/balances?limit=${ASSETS}`
  const times = Array.from({ length: 50 }, (_, index) =>
    encodeURIComponent(new Date(Date.now() - ((index + 1) / 52) * (HISTORY / ASSETS) * 3_600_000).toISOString())
  )
  const ask = { key, port: ours.port, connections: CONNECTIONS, seconds: SECONDS }
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      now: await load({ ...ask, paths: [balances] }),
      past: await load({ ...ask, paths: times.map((at) => `${balances}&at=${at}`) })
    })
  }
  const past = {
    assets: ASSETS,
    historyRows: HISTORY,
    presentPerSecond: median(rounds.map((round) => round.now.perSecond)),
    pastPerSecond: median(rounds.map((round) => round.past.perSecond)),
    costAgainstPresent: rounded(median(rounds.map((round) => round.now.perSecond / round.past.perSecond))),
    presentP99Ms: median(rounds.map((round) => round.now.p99Ms)),
    pastP99Ms: median(rounds.map((round) => round.past.p99Ms))
  }

  const reading = () => reader(ours.port, key, `/v1/vaults/${VAULT}/balances?limit=20`)
  const alone = async () => {
    const reads = reading()
    await Bun.sleep(10_000)
    return percentile(await reads(), 0.99)
  }
  const sealedRows = async () => Number((await client.query("SELECT count(*) AS count FROM statements")).rows[0]?.count)
  /** Triggers the schedule and waits until `more` more statements are sealed: the seconds from the trigger, and the reads beside. */
  const seal = async (more: number) => {
    const before = await sealedRows()
    const reads = reading()
    const startedAt = performance.now()
    await schedule.trigger()
    while ((await sealedRows()) < before + more) await Bun.sleep(20)
    return { seconds: rounded((performance.now() - startedAt) / 1_000), p99Ms: percentile(await reads(), 0.99) }
  }

  // Seals what exists so far, which has no transactions, so that the next run has one vault with a day of its own.
  await seal(2)
  await client.query("UPDATE statement_chains SET next_date = next_date - 1 WHERE vault_id = $1", [VAULT])
  await client.query("DELETE FROM statements WHERE vault_id = $1", [VAULT])
  await seedTransactions(client, 0, TRANSACTIONS, { secondsApart: 17, since: yesterday })
  await alone()
  const aloneP99Ms = await alone()
  const sumsAt = performance.now()
  await client.query(
    `SELECT asset_id, direction, sum(amount), count(*) FROM transactions WHERE vault_id = $1 AND status = 'confirmed'
     AND timestamp >= $2 AND timestamp < $2::timestamptz + interval '1 day' GROUP BY 1, 2`,
    [VAULT, yesterday]
  )
  const floorSeconds = rounded((performance.now() - sumsAt) / 1_000)
  const one = await seal(1)
  const { rows } = await client.query("SELECT assets FROM statements WHERE vault_id = $1", [VAULT])
  const counted = JSON.parse(rows[0]?.assets ?? "[]").reduce(
    (sum: number, line: { transactionCount: number }) => sum + line.transactionCount,
    0
  )
  const busyDay = { transactions: counted, floorSeconds, seconds: one.seconds, readP99AloneMs: aloneP99Ms, readP99Ms: one.p99Ms }

  await seedVaults(client)
  const ids = Array.from({ length: VAULTS }, (_, index) => `vault_many_${index + 1}`)
  const bare = await bareSealing(databaseUrl, ids)
  const secondAloneP99Ms = await alone()
  const all = await seal(VAULTS)
  const many = {
    vaults: VAULTS,
    floorMsPerVault: rounded((bare * 1_000) / VAULTS),
    msPerVault: rounded((all.seconds * 1_000) / VAULTS),
    ratio: rounded(bare / all.seconds),
    seconds: all.seconds,
    readP99AloneMs: secondAloneP99Ms,
    readP99Ms: all.p99Ms,
    readP99Ratio: rounded(all.p99Ms / secondAloneP99Ms)
  }
  await connection.close()
  await client.end()
  const results = { past, busyDay: { ...busyDay, readP99Ratio: rounded(one.p99Ms / aloneP99Ms) }, many }
  console.log(JSON.stringify({ bench: "statements", rounds: ROUNDS, secondsEach: SECONDS, connections: CONNECTIONS, results }, null, 2))
  for (const part of Object.values(results)) console.table(part)
} finally {
  await end()
}
