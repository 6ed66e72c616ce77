/**
 * The cost of a page of each list across vaults, by the plans of its statements. By hash, address, asset, vault, entity and a
 * status that few rows have it is bounded by the page, for a caller who sees a thousand vaults and for one who sees three; other
 * filters look at no more than 20,000 rows. Decision D-2. C-11.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import { expectWithin, explained, type Filters, LIMIT, planWithout, withoutAutovacuum } from "../../support/plans.ts"
import { asset, entity, network, smallest, user, vault } from "../../support/records.ts"

const { app, expectBounded, pageOf, plan } = explained()
const keys = { many: "", three: "", limited: "", blind: "" }

/** Vaults with transactions, and those of a caller who sees many vaults, in which there are nearly none. */
const VAULTS = 1_000,
  EMPTY = 150
/** Transactions: each vault has the same number, and each address and asset some of each vault. */
const ROWS = 60_000,
  /** More of one vault, with addresses of their own. */
  OWN = 12_000
const EARLY = "2023-01-01T00:00:00Z",
  HALF_TIME = "2024-06-01T00:00:00Z"

const seed = async () => {
  await app.sql("SET timezone = 'UTC'")
  await app.insert(
    `INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
     SELECT gen_random_uuid(), 'vault_' || n * 7919 % ${VAULTS}, 'org_a', net, 'hash' || n, 0, CASE WHEN half = 0 THEN 'inbound' ELSE 'outbound' END,
       CASE WHEN half = 0 THEN 'confirmed' ELSE 'pending' END, net || '/native', 1, 'from' || n / ${VAULTS} % 5, 'to' || n / ${VAULTS} % 3,
       timestamptz '${HALF_TIME}' + (CASE WHEN half = 0 THEN -1 ELSE 1 END) * n * interval '1 second', '{"n":1}'
     FROM generate_series(1, ${ROWS}) n, LATERAL (SELECT n / ${VAULTS} % 2 AS half, CASE WHEN n / ${VAULTS} % 2 = 0 THEN 'ethereum' ELSE 'solana' END AS net) x;
     INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
     SELECT gen_random_uuid(), 'vault_1', 'org_a', 'ethereum', 'own' || n, 0, 'inbound', 'confirmed', 'ethereum/native', 1, 'x' || n, 'y' || n,
       timestamptz '${HALF_TIME}' - n * interval '1 minute', '{"n":1}'
     FROM generate_series(1, ${OWN}) n;
     INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
     SELECT gen_random_uuid(), 'vault_empty' || n, 'org_a', 'ethereum', 'early' || n, 0, 'inbound', 'confirmed', 'ethereum/native', 1, 'a', 'b', '${EARLY}', '{"n":1}'
     FROM generate_series(1, 10) n`
  )
  await app.insert(
    `INSERT INTO assets (id, network, symbol, name, decimals) SELECT 'ethereum/erc20:' || n, 'ethereum', 'S' || n, 'Asset', 18 FROM generate_series(1, 110) n;
     INSERT INTO balances (vault_id, organization_id, asset_id, network, symbol, amount, as_of, recorded_at)
     SELECT v.id, 'org_a', a.id, a.network, a.symbol, 1, '${EARLY}', '${EARLY}' FROM vaults v, assets a WHERE v.id NOT LIKE 'vault_empty%' AND a.id <> 'ethereum/erc20:30'`
  )
}

/** Filters that an index serves, with values that match and that do not. */
const selective: Filters = {
  hash: ["hash7", "none"],
  address: ["from1", "to2", "none"],
  asset: ["ethereum/native", "solana/native", "ethereum/erc20:30"],
  vaultId: ["vault_1", "vault_7", "vault_absent"],
  entityId: ["entity_1", "entity_a", "entity_absent"],
  occurredAfter: ["2024-05-01T00:00:00Z", "2030-01-01T00:00:00Z"],
  occurredBefore: ["2024-05-31T23:50:00Z", "2020-01-01T00:00:00Z"],
  occurredUntil: ["2024-05-31T23:50:00Z"]
}
/** The others. */
const others: Filters = {
  status: ["confirmed", "dropped"],
  direction: ["inbound"],
  network: ["ethereum", "solana", "bitcoin"]
}
const balances: Filters = {
  asset: ["ethereum/native", "solana/native", "ethereum/erc20:30"],
  network: ["ethereum", "solana", "bitcoin"],
  entityId: ["entity_1", "entity_a", "entity_absent"],
  at: [HALF_TIME]
}

/** Plans every statement of the lists by the present statistics. */
const planAll = async () => {
  for (const secret of Object.values(keys)) {
    await plan("/v1/transactions", { ...selective, ...others }, secret, false)
    await plan("/v1/balances", balances, secret, false)
    await plan("/v1/balances", { sumBy: ["asset"] }, secret, false)
    await plan("/v1/entities", {}, secret)
  }
}

beforeAll(async () => {
  const vaultIds = Array.from({ length: VAULTS }, (_, index) => `vault_${index}`)
  const empty = Array.from({ length: EMPTY }, (_, index) => `vault_empty${index + 1}`)
  await app.feed(
    [
      ...smallest(),
      network("solana"),
      asset("solana/native"),
      ...Array.from({ length: 20 }, (_, index) => entity(`entity_${index}`, "org_a")),
      // Half of them in one entity, the others in ten.
      ...vaultIds.slice(0, 700).map((id, index) => vault(id, index < 500 ? "entity_a" : `entity_${index % 10}`))
    ],
    { "x-record-events": "none" }
  )
  await app.feed(
    [
      ...vaultIds.slice(700).map((id, index) => vault(id, `entity_${index % 10}`)),
      ...empty.map((id) => vault(id, "entity_19")),
      user("user_many", "org_a", vaultIds, { organizationRole: "owner" }),
      user("user_member", "org_a", vaultIds),
      user("user_three", "org_a", ["vault_1", "vault_7", "vault_900"]),
      user("user_blind", "org_a", empty)
    ],
    { "x-record-events": "none" }
  )
  keys.many = (await app.key("user_many")).secret
  keys.three = (await app.key("user_three")).secret
  keys.limited = (await app.key("user_member", { vaultIds: ["vault_1", "vault_7"] })).secret
  keys.blind = (await app.key("user_blind")).secret
  await withoutAutovacuum(app)
  await planAll()
  await seed()
})

/** The ranges of up to a hundred vaults, with their checks, and of each the rows of a page. */
const MERGED = { rows: 100 * (LIMIT + 1) + 2_000, buffers: 3_000 }
/** Three vaults, each with a range for every status and direction. */
const THREE = { rows: 800, buffers: 1_000 }
/** A bounded search, with checks of each row. */
const SEARCHED = { rows: 3 * 20_000 + 1_000, buffers: 150_000 }

const when = {
  "by plans that were made for empty tables": async () => {},
  "once the tables are analyzed": () => app.sql("ANALYZE"),
  "by plans that were made for few rows": () => planWithout(app, { transactions: "hash NOT LIKE 'hash1_'" }, planAll)
}
for (const [planned, prepare] of Object.entries(when)) {
  describe(`a page across vaults costs the same with more rows, ${planned}`, () => {
    beforeAll(async () => {
      await prepare()
    })
    test("for a caller who sees a thousand vaults", () =>
      expectBounded("/v1/transactions", { ...selective, status: ["pending", "dropped"] }, keys.many, MERGED, false))
    test("for a caller who sees three", () => expectBounded("/v1/transactions", { ...selective, ...others }, keys.three, THREE, false))
    test("for a key that allows two", () => expectBounded("/v1/transactions", { ...selective, ...others }, keys.limited, THREE, false))
    test("by other filters, no more than 20,000 rows are searched", async () => {
      await expectBounded("/v1/transactions", others, keys.many, SEARCHED)
      await expectBounded("/v1/transactions", { ...selective, ...others }, keys.blind, SEARCHED, false)
    })
    test("for balances", async () => {
      await expectBounded("/v1/balances", balances, keys.many, MERGED, false)
      await expectBounded("/v1/balances", balances, keys.three, THREE, false)
    })
    test("for entities", async () => {
      await expectBounded("/v1/entities", {}, keys.many, { rows: 100, buffers: 200 })
      await expectBounded("/v1/entities", {}, keys.three, { rows: 100, buffers: 200 })
    })
  })
}

test("sums of many vaults add up whole assets, a bounded number of balances a page", async () => {
  const sums = { sumBy: "asset", limit: "500" }
  const first = await pageOf("/v1/balances", sums, keys.many)
  expectWithin(first.costs, { rows: 2 * 100_000 + 1_000, buffers: 1_000_000 }, "sums")
  expect(first.rows).toBe(99)
  const rows = await app.walk("/v1/balances?sumBy=asset", keys.many)
  // Two native assets, and all tokens but the one that no vault has.
  expect(rows.length).toBe(111)
  expect(new Set(rows.map(({ amount, vaultCount }) => `${amount} ${vaultCount}`))).toEqual(new Set(["1000 1000"]))
})

test("the thousandth page costs what the first does", async () => {
  let cursor: string | null = null
  for (let page = 0; page < 60; page++)
    cursor = (await pageOf("/v1/transactions", { limit: "500", ...(cursor === null ? {} : { cursor }) }, keys.many)).cursor
  const late = await pageOf("/v1/transactions", { limit: String(LIMIT), cursor: cursor ?? "" }, keys.many)
  expect(late.rows).toBe(LIMIT)
  expectWithin(late.costs, { rows: 200, buffers: 300 }, "late")
})

test("a search that finds little returns short and empty pages, and in the end everything", async () => {
  const pages: Array<number> = []
  for (let cursor: string | null = null; ; ) {
    const page: Awaited<ReturnType<typeof pageOf>> = await pageOf("/v1/transactions", cursor === null ? {} : { cursor }, keys.blind)
    expectWithin(page.costs, SEARCHED, "blind")
    pages.push(page.rows)
    cursor = page.cursor
    if (cursor === null) break
  }
  expect(pages).toEqual([0, 0, 0, 10])
})
