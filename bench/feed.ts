/**
 * `bun run bench feed`: records with events over HTTP against a plain multi-row INSERT of the same rows into tables with
 * the same columns and indexes, in one run: once the transactions and their events, once the transactions alone.
 */
import * as Id from "../src/values/Id.ts"
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
  await client.query("CREATE TABLE floor_events (LIKE events INCLUDING ALL)")
  const columns =
    "id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json"
  const insert = async (batch: ReturnType<typeof transactions>) => {
    const values: Array<unknown> = []
    const rows = batch.map(({ line }) => {
      const { amount, asset, direction, from, hash, network, status, timestamp, to, vaultId } = JSON.parse(line)
      const first =
        values.push(
          crypto.randomUUID(),
          vaultId,
          "org_bench",
          network,
          hash,
          0,
          direction,
          status,
          asset,
          amount,
          from,
          to,
          timestamp,
          line
        ) - 13
      return `(${Array.from({ length: 14 }, (_, at) => `$${first + at}`).join(",")})`
    })
    await client.query(`INSERT INTO floor (${columns}) VALUES ${rows.join(",")}`, values)
  }
  const envelope = JSON.stringify({ id: "evt", kind: "transaction.confirmed", date: new Date().toISOString(), entityId: "entity_bench" })
  const eventColumns = "id, organization_id, position, entity_id, vault_id, kind, schema_version, payload, occurred_at"
  let position = 0
  const insertBoth = async (batch: ReturnType<typeof transactions>) => {
    await insert(batch)
    const values: Array<unknown> = []
    const rows = batch.map(({ line }) => {
      const payload = `${envelope.slice(0, -1)},"data":${line}}`
      const event = [
        Id.make("evt"),
        "org_bench",
        ++position,
        "entity_bench",
        "vault_bench",
        "transaction.confirmed",
        1,
        payload,
        new Date()
      ]
      const first = values.push(...event) - 8
      return `(${Array.from({ length: 9 }, (_, at) => `$${first + at}`).join(",")})`
    })
    await client.query(`INSERT INTO floor_events (${eventColumns}) VALUES ${rows.join(",")}`, values)
  }
  const perSecond = async (take: (batch: ReturnType<typeof transactions>) => Promise<unknown>) => {
    const batches = Array.from({ length: REQUESTS }, () => transactions(RECORDS))
    const startedAt = performance.now()
    for (const batch of batches) await take(batch)
    return Math.round((REQUESTS * RECORDS) / ((performance.now() - startedAt) / 1_000))
  }
  const feed = (batch: ReturnType<typeof transactions>) => ours.feed(batch.map(({ line }) => line))
  const pairs = []
  // The first round warms both sides up and is not counted.
  for (let round = 0; round <= ROUNDS; round++) {
    const pair = { floor: await perSecond(insertBoth), transactionsOnly: await perSecond(insert), ours: await perSecond(feed) }
    if (round > 0) pairs.push(pair)
  }
  const { rows } = await client.query(
    "SELECT (SELECT count(*) FROM transactions)::int AS transactions, (SELECT count(*) FROM events)::int AS events"
  )
  await client.end()
  const results = {
    floorPerSecond: median(pairs.map((_) => _.floor)),
    transactionsOnlyPerSecond: median(pairs.map((_) => _.transactionsOnly)),
    oursPerSecond: median(pairs.map((_) => _.ours)),
    ratio: Math.round(median(pairs.map((_) => _.ours / _.floor)) * 100) / 100,
    ratioToTransactionsOnly: Math.round(median(pairs.map((_) => _.ours / _.transactionsOnly)) * 100) / 100,
    ...rows[0]
  }
  console.log(JSON.stringify({ bench: "feed", rounds: ROUNDS, records: REQUESTS * RECORDS, perRequest: RECORDS, pairs, results }, null, 2))
  console.table(results)
} finally {
  await end()
}
