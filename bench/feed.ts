/**
 * `bun run bench feed`: records with events over HTTP against a plain multi-row INSERT of the same rows into a table
 * with the same columns and indexes, in one run.
 */
import { service, transactions } from "./support/deliveries.ts"
import { database, end, environment, median } from "./support/servers.ts"

const ROUNDS = 5,
  REQUESTS = 10,
  RECORDS = 1_000

try {
  const ours = await service(environment(), "api")
  const client = await database()
  client.on("error", () => {})
  await client.query("CREATE TABLE floor (LIKE transactions INCLUDING ALL)")
  const columns = "vault_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json"
  const insert = async (batch: ReturnType<typeof transactions>) => {
    const values: Array<unknown> = []
    const rows = batch.map(({ line }) => {
      const { amount, asset, direction, from, hash, network, status, timestamp, to, vaultId } = JSON.parse(line)
      const first = values.push(vaultId, network, hash, 0, direction, status, asset, amount, from, to, timestamp, line) - 11
      return `(${Array.from({ length: 12 }, (_, at) => `$${first + at}`).join(",")})`
    })
    await client.query(`INSERT INTO floor (${columns}) VALUES ${rows.join(",")}`, values)
  }
  const perSecond = async (take: (batch: ReturnType<typeof transactions>) => Promise<unknown>) => {
    const batches = Array.from({ length: REQUESTS }, () => transactions(RECORDS))
    const startedAt = performance.now()
    for (const batch of batches) await take(batch)
    return Math.round((REQUESTS * RECORDS) / ((performance.now() - startedAt) / 1_000))
  }
  const feed = (batch: ReturnType<typeof transactions>) => ours.feed(batch.map(({ line }) => line))
  await perSecond(insert)
  await perSecond(feed)
  const pairs = []
  for (let round = 0; round < ROUNDS; round++) pairs.push({ floor: await perSecond(insert), ours: await perSecond(feed) })
  const { rows } = await client.query(
    "SELECT (SELECT count(*) FROM transactions)::int AS transactions, (SELECT count(*) FROM events)::int AS events"
  )
  await client.end()
  const results = {
    floorPerSecond: median(pairs.map((_) => _.floor)),
    oursPerSecond: median(pairs.map((_) => _.ours)),
    ratio: Math.round(median(pairs.map((_) => _.ours / _.floor)) * 100) / 100,
    ...rows[0]
  }
  console.log(JSON.stringify({ bench: "feed", rounds: ROUNDS, records: REQUESTS * RECORDS, perRequest: RECORDS, pairs, results }, null, 2))
  console.table(results)
} finally {
  await end()
}
