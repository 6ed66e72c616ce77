/**
 * The cost of a page of each list, by the plans of its statements: rows read and memory pages touched are bounded by the
 * page, whatever the number of rows and the filters. In the data, two filters that each match half of the rows match none
 * together. Decisions D-1, D-2.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import { Direction, TransactionStatus } from "../../../src/values/Vault.ts"
import { explained, type Filters, LIMIT, planWithout, withoutAutovacuum } from "../../support/plans.ts"
import { network, smallest, user, vault } from "../../support/records.ts"
import { create } from "../../support/webhookFixtures.ts"

const { app, expectBounded, plan } = explained()
let key = "",
  limitedKey = ""

/** Rows of the largest lists. */
const MANY = 100_000
const HALF_TIME = "2024-06-01T00:00:00.000Z"

/** Rows as the ledger writes them. In every list, the two halves differ in every field with a filter. */
const seed = async () => {
  await app.sql("SET timezone = 'UTC'")
  await app.sql(
    `INSERT INTO assets (id, network, symbol, name, decimals)
     SELECT net || '/erc20:' || n, net, 'S' || n % 500, 'Asset', 18
     FROM generate_series(1, 10000) n, LATERAL (SELECT CASE WHEN n % 2 = 0 THEN 'ethereum' ELSE 'solana' END AS net) x`
  )
  await app.insert(
    `INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
     SELECT gen_random_uuid(), 'vault_a', 'org_a', net, 'hash' || n, 0, CASE WHEN half = 0 THEN 'inbound' ELSE 'outbound' END, CASE WHEN half = 0 THEN 'confirmed' ELSE 'pending' END,
       net || '/native', 1, 'a', 'b', timestamptz '${HALF_TIME}' + (CASE WHEN half = 0 THEN -1 ELSE 1 END) * n * interval '1 second',
       format('{"n":%s}', n)
     FROM generate_series(1, ${MANY}) n, LATERAL (SELECT n % 2 AS half, CASE WHEN n % 2 = 0 THEN 'ethereum' ELSE 'solana' END AS net) x`
  )
  await app.insert(
    `INSERT INTO deposit_addresses (vault_id, network, address, asset_type, created_at)
     SELECT 'vault_a', CASE WHEN n % 2 = 0 THEN 'ethereum' ELSE 'solana' END, 'address' || n, 'native', timestamptz '${HALF_TIME}' + n * interval '1 second'
     FROM generate_series(1, ${MANY / 2}) n`
  )
  await app.sql(
    "INSERT INTO balances (vault_id, organization_id, asset_id, network, symbol, amount, as_of, recorded_at) SELECT 'vault_a', 'org_a', id, network, symbol, 1, now(), now() FROM assets"
  )
  await app.sql(
    `WITH made AS (
       INSERT INTO vaults (id, entity_id, organization_id, label, networks, created_at)
       SELECT 'many_' || n, 'entity_a', 'org_a', 'many', '{ethereum}', timestamptz '${HALF_TIME}' + n * interval '1 second'
       FROM generate_series(1, ${MANY / 10}) n RETURNING id, created_at, entity_id)
     INSERT INTO vault_roles (user_id, vault_id, organization_id, role, vault_created_at, entity_id)
     SELECT u, id, 'org_a', 'developer', created_at, entity_id FROM made, unnest(ARRAY['user_a', 'user_many']) u
     WHERE u = 'user_a' OR id LIKE 'many_1%'`
  )
}

const seedWebhooks = async () => {
  await app.sql(
    `WITH made AS (
       INSERT INTO webhooks (id, organization_id, url, description, status, disabled_reason, disabled_at, event_kinds, notification_email, created_at)
       SELECT 'whs_many' || n, 'org_a', 'https://hooks.example.com/', '', CASE WHEN n % 2 = 0 THEN 'ACTIVE' ELSE 'DISABLED' END,
         CASE WHEN n % 2 = 1 THEN 'MANUAL' END, CASE WHEN n % 2 = 1 THEN now() END, '{vault.updated}', 'a@example.com', timestamptz '${HALF_TIME}' + n * interval '1 second'
       FROM generate_series(1, ${MANY / 10}) n RETURNING id, status, created_at)
     INSERT INTO webhook_entities (webhook_id, entity_id, organization_id, created_at, status)
     SELECT id, CASE WHEN status = 'ACTIVE' THEN 'entity_a' ELSE 'entity_b' END, 'org_a', created_at, status FROM made`
  )
}

const lists: ReadonlyArray<readonly [name: string, list: string, filters: Filters]> = [
  [
    "transactions",
    "/v1/vaults/vault_a/transactions",
    {
      status: ["confirmed", "pending", "dropped"],
      direction: ["inbound", "outbound"],
      asset: ["ethereum/native", "solana/native", "ethereum/erc20:0xdac17f958d2ee523a2206206994597c13d831ec7"],
      network: ["ethereum", "solana", "bitcoin"],
      hash: ["hash7", "hash8", "none"],
      occurredAfter: ["2024-05-01T00:00:00Z", HALF_TIME, "2030-01-01T00:00:00Z"],
      occurredBefore: ["2024-05-31T23:50:00Z", "2020-01-01T00:00:00Z"]
    }
  ],
  ["balances", "/v1/vaults/vault_a/balances", { network: ["ethereum", "solana", "bitcoin"] }],
  ["addresses", "/v1/vaults/vault_a/addresses", { network: ["ethereum", "solana", "bitcoin"] }],
  ["vaults", "/v1/vaults", {}],
  ["assets", "/v1/assets", { network: ["ethereum", "solana", "bitcoin"], symbol: ["S1", "S2", "NONE"] }],
  ["networks", "/v1/networks", {}],
  ["webhooks", "/v1/webhooks", { status: ["ACTIVE", "PAUSED", "DISABLED"], entityId: ["entity_a", "entity_b", "none"] }]
]

/** Plans every statement of the lists by the present statistics. */
const planAll = async () => {
  for (const [, list, filters] of lists) await plan(list, filters, key)
  await plan("/v1/vaults", {}, limitedKey)
}

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    network("solana"),
    { type: "asset", id: "solana/native", network: "solana", symbol: "SOL", name: "Solana", decimals: 9 },
    { type: "organization", id: "org_a", name: "A", networks: ["ethereum", "solana"] },
    { type: "entity", id: "entity_b", organizationId: "org_a", name: "B" },
    vault("vault_a", "entity_a", { networks: ["ethereum", "solana"] }),
    vault("vault_b", "entity_b"),
    user("user_a", "org_a", ["vault_a", "vault_b"], { organizationRole: "owner" }),
    user("user_many", "org_a", ["vault_a"])
  ])
  key = (await app.key("user_a")).secret
  limitedKey = (await app.key("user_a", { vaultIds: ["vault_a", "vault_b"] })).secret
  // A creation reads every vault that it covers; there are few yet.
  await create(app, key, { status: "DISABLED", entityIds: ["entity_a"] })
  await withoutAutovacuum(app)
  await planAll()
  await seed()
  await seedWebhooks()
})

/** For a page of 20 and the first row of the next, by up to ten runs, each with a visibility check. */
const BOUNDS = { rows: 12 * (LIMIT + 1), buffers: 600 }

const when = {
  "by plans that were made for empty tables": async () => {},
  "once the tables are analyzed": () => app.sql("ANALYZE"),
  "by plans that were made when all was of one kind": () =>
    planWithout(
      app,
      {
        transactions: "status = 'pending'",
        deposit_addresses: "network = 'solana'",
        webhooks: "status = 'DISABLED'",
        webhook_entities: "status = 'DISABLED'"
      },
      planAll
    ),
  "by plans that were made for few rows": () =>
    planWithout(
      app,
      {
        transactions: "hash NOT LIKE 'hash1_'",
        deposit_addresses: "id > 40",
        webhooks: "id NOT LIKE 'whs_many1_'",
        webhook_entities: "webhook_id NOT LIKE 'whs_many1_'",
        vault_roles: "vault_id LIKE 'many_1%'",
        vaults: "id LIKE 'many_1%'"
      },
      planAll
    )
}
for (const [analyzed, prepare] of Object.entries(when)) {
  describe(`the cost of a page does not depend on the number of rows, ${analyzed}`, () => {
    beforeAll(async () => {
      await prepare()
    })
    for (const [name, list, filters] of lists) {
      test(name, () => expectBounded(list, filters, key, BOUNDS))
    }
    test("vaults that a key is limited to", () => expectBounded("/v1/vaults", {}, limitedKey, BOUNDS))
  })
}

test("the transaction indexes cover every status and direction that the table accepts", async () => {
  const [row] = await app.sql(
    "SELECT string_agg(pg_get_constraintdef(oid), ' ') AS checks FROM pg_constraint WHERE conrelid = 'transactions'::regclass AND contype = 'c'"
  )
  const words = [...String(row?.checks).matchAll(/'([a-z]+)'::text/g)].map(([, word]) => word)
  expect(words.sort()).toEqual([...TransactionStatus.literals, ...Direction.literals].sort())
  // The indexes contain first letters.
  for (const { literals } of [TransactionStatus, Direction]) expect(new Set(literals.map(([first]) => first)).size).toBe(literals.length)
})
