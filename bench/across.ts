/**
 * `bun run bench across [--large]`: transactions and balances across 10,000 vaults, for a caller who sees all of them and for one
 * who sees three, which have a tenth of the rows. Two services run side by side, one with 10 thousand transactions and one with
 * 1 million (10 million with --large), measured in turn. Floor: the service with 10 thousand.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { options } from "./support/options.ts"
import { announced, custody, database, end, environment, folder, load, median, start } from "./support/servers.ts"
import { seeding } from "./support/vaultRows.ts"

const ROUNDS = options.quick ? 1 : 5,
  SECONDS = options.quick ? 0.5 : 2,
  CONNECTIONS = 4
const SMALL = 10_000,
  LARGE = options.quick ? 50_000 : options.large ? 10_000_000 : 1_000_000,
  /** Rows of a statement that writes them. */
  PART = 500_000
const VAULTS = 10_000,
  ENTITIES = 100,
  ASSETS = 5
/** Transactions before a late page: a thousand pages of five. */
const LATE = 5_000

const vaultIds = Array.from({ length: VAULTS }, (_, index) => `vault_${index}`)
const assetOf = (number: number) => `ethereum/erc20:0x${String(number).padStart(40, "0")}`
const user = (id: string, vaults: ReadonlyArray<string>) => ({
  type: "user",
  id,
  organizationId: "org_bench",
  email: `${id}@example.com`,
  name: id,
  status: "active",
  organizationRole: "member",
  vaultRoles: vaults.map((vaultId) => ({ vaultId, role: "developer" }))
})
const records = [
  { type: "network", name: "ethereum", kind: "mainnet" },
  ...Array.from({ length: ASSETS }, (_, index) => ({
    type: "asset",
    id: assetOf(index),
    symbol: `T${index}`,
    name: "Token",
    decimals: 18,
    network: "ethereum"
  })),
  { type: "organization", id: "org_bench", name: "Bench", networks: ["ethereum"] },
  ...Array.from({ length: ENTITIES }, (_, index) => ({
    type: "entity",
    id: `entity_${index}`,
    organizationId: "org_bench",
    name: `Entity ${index}`
  })),
  ...vaultIds.map((id, index) => ({
    type: "vault",
    id,
    entityId: `entity_${index % ENTITIES}`,
    label: id,
    networks: ["ethereum"],
    createdAt: "2020-01-01T00:00:00Z"
  })),
  user("user_all", vaultIds),
  user("user_three", vaultIds.slice(0, 3))
]

/** Rows as the ledger writes them; every value of a filter is in vaults of both callers. */
const insert = (client: Awaited<ReturnType<typeof database>>, from: number, to: number) =>
  client.query(
    `INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
     SELECT md5('id' || n)::uuid, 'vault_' || CASE WHEN n % 10 = 0 THEN n / 10 % 3 ELSE n * 7919 % ${VAULTS} END, 'org_bench', 'ethereum',
       '0x' || md5((n / 2)::text) || md5('b' || n / 2), 0, CASE WHEN n % 2 = 0 THEN 'inbound' ELSE 'outbound' END, 'confirmed',
       'ethereum/erc20:0x' || lpad((n / 30 % ${ASSETS})::text, 40, '0'), 1.5, 'from' || n / 30 % 7, 'to' || n,
       timestamptz '2020-01-01T00:00:00Z' + n * interval '3 seconds', format('{"id":"%s","filler":"%s"}', n, repeat('x', 500))
     FROM generate_series($1::bigint, $2::bigint) AS n`,
    [from, to]
  )

const serviceWith = async (directory: string, rows: number) => {
  const env = environment({ DATA_DIR: path.join(folder, directory) })
  const { port } = await start("src/main.ts", ["start", "--roles", "api"], env, announced)
  const file = path.join(folder, "records.ndjson")
  fs.writeFileSync(file, records.map((record) => JSON.stringify(record)).join("\n"))
  await custody(["load", file, "--no-events"], env)
  const keyOf = async (id: string): Promise<string> =>
    JSON.parse(await custody(["keys", "create", "--user", id, "--scopes", "vault:read", "--all-vaults"], env)).secret
  const client = await database(directory)
  await client.query("SET timezone = 'UTC'")
  await seeding(client, rows >= 1_000_000, async () => {
    for (let from = 0; from < rows; from += PART) await insert(client, from + 1, Math.min(rows, from + PART))
  })
  await client.query(
    `INSERT INTO balances (vault_id, organization_id, asset_id, network, symbol, amount, as_of, recorded_at)
     SELECT v.id, v.organization_id, a.id, a.network, a.symbol, 1.5, now(), now() FROM vaults v, assets a`
  )
  await client.query("VACUUM (ANALYZE, PARALLEL 0) balances, vaults, vault_roles")
  await client.end()
  return { port, keys: { all: await keyOf("user_all"), three: await keyOf("user_three") } }
}
type Service = Awaited<ReturnType<typeof serviceWith>>
type Caller = keyof Service["keys"]

/** The target of the page after this many transactions, of those that the caller with three vaults sees half. */
const late = async ({ keys, port }: Service, caller: Caller): Promise<string> => {
  let cursor = ""
  for (let left = caller === "all" ? LATE : LATE / 10; left > 0; left -= 500) {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/transactions?limit=500${cursor}`, {
      headers: { authorization: `Bearer ${keys[caller]}` }
    })
    // A response of our own service, whose shape is checked by its tests.
    const { pagination }: { pagination: { nextCursor: string } } = (await answer.json()) as never
    cursor = `&cursor=${pagination.nextCursor}`
  }
  return `/v1/transactions?limit=20${cursor}`
}

const cases: ReadonlyArray<readonly [name: string, target: string]> = [
  ["all", "/v1/transactions?limit=20"],
  // Seen by both callers: of the first vault.
  [
    "hash",
    `/v1/transactions?limit=20&hash=0x${new Bun.CryptoHasher("md5").update("15").digest("hex")}${new Bun.CryptoHasher("md5").update("b15").digest("hex")}`
  ],
  ["address", "/v1/transactions?limit=20&address=from3"],
  ["address, once", "/v1/transactions?limit=20&address=to30"],
  ["asset", `/v1/transactions?limit=20&asset=${encodeURIComponent(assetOf(3))}`],
  ["vaultId", "/v1/transactions?limit=20&vaultId=vault_1"],
  ["entityId", "/v1/transactions?limit=20&entityId=entity_1"],
  ["a status that never was", "/v1/transactions?limit=20&status=dropped"],
  ["balances", "/v1/balances?limit=20"],
  ["balances of an asset", `/v1/balances?limit=20&asset=${encodeURIComponent(assetOf(3))}`],
  ["sums", "/v1/balances?limit=20&sumBy=asset"]
]

try {
  const small = await serviceWith("small", SMALL)
  const large = await serviceWith("large", LARGE)
  const pages = ({ keys, port }: Service, caller: Caller, target: string) =>
    load({ paths: [target], key: keys[caller], port, connections: CONNECTIONS, seconds: SECONDS })
  const results = []
  for (const caller of ["all", "three"] as const) {
    const lates = { small: await late(small, caller), large: await late(large, caller) }
    for (const [name, target] of [...cases, ["late page", ""] as const]) {
      const targets = target === "" ? lates : { small: target, large: target }
      // Programs that have run for a while are measured.
      await pages(small, caller, targets.small)
      await pages(large, caller, targets.large)
      const rounds = []
      for (let round = 0; round < ROUNDS; round++)
        rounds.push({
          small: (await pages(small, caller, targets.small)).perSecond,
          large: (await pages(large, caller, targets.large)).perSecond
        })
      results.push({
        sees: caller,
        filter: name,
        small: median(rounds.map((round) => round.small)),
        large: median(rounds.map((round) => round.large)),
        costAgainstSmall: Math.round(median(rounds.map((round) => round.small / round.large)) * 100) / 100
      })
    }
  }
  console.log(
    JSON.stringify({ bench: "across", sizes: [SMALL, LARGE], vaults: VAULTS, rounds: ROUNDS, secondsEach: SECONDS, results }, null, 2)
  )
  console.table(results)
} finally {
  await end()
}
