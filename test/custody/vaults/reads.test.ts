import { beforeAll, describe, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import {
  ALICE,
  address,
  asset,
  BOB,
  balance,
  entity,
  hash,
  network,
  organization,
  transaction,
  user,
  vault
} from "../../support/records.ts"

const USDC = "ethereum/erc20:0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
const app = useApi()
let key = ""

beforeAll(async () => {
  await app.feed([
    network("ethereum"),
    network("bitcoin"),
    network("ethereum-sepolia", "testnet"),
    network("solana"),
    asset("ethereum/native", { symbol: "ETH", name: "Ether" }),
    asset("ethereum-sepolia/native", { symbol: "ETH", name: "Sepolia Ether" }),
    asset("bitcoin/native", { symbol: "BTC", name: "Bitcoin", decimals: 8 }),
    asset("solana/native", { symbol: "SOL", name: "Solana", decimals: 9 }),
    asset(USDC, { symbol: "USDC", name: "USD Coin", decimals: 6 }),
    asset("ethereum/erc20:0x1111111111111111111111111111111111111111", { symbol: "USDC", name: "Another USDC", decimals: 0 }),
    asset("ethereum/erc20:0x2222222222222222222222222222222222222222", { symbol: "AAVE", name: "Aave" }),
    organization("org_a", ["ethereum", "bitcoin", "ethereum-sepolia"]),
    entity("entity_a", "org_a"),
    vault("vault_old", "entity_a", { label: "Old", networks: ["ethereum", "bitcoin"], createdAt: "2023-01-01T00:00:00.000Z" }),
    vault("vault_b", "entity_a", { createdAt: "2024-01-01T00:00:00.000Z" }),
    vault("vault_c", "entity_a", { createdAt: "2024-01-01T00:00:00.000Z" }),
    vault("vault_new", "entity_a", { label: "Neu – “新しい” 🏦", createdAt: "2024-02-29T23:59:59.999Z" }),
    user("user_a", "org_a", ["vault_old", "vault_b", "vault_c", "vault_new"]),
    balance("vault_old", USDC, "2500.000001"),
    balance("vault_old", "ethereum/erc20:0x1111111111111111111111111111111111111111", "7"),
    balance("vault_old", "ethereum/erc20:0x2222222222222222222222222222222222222222", "0"),
    balance("vault_old", "ethereum/native", "1.500"),
    balance("vault_old", "bitcoin/native", "0.00000001"),
    address("vault_old", BOB.toLowerCase(), { createdAt: "2024-01-01T00:00:00Z" }),
    address("vault_old", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", { network: "bitcoin", createdAt: "2024-01-03T00:00:00Z" }),
    address("vault_old", ALICE, { assetType: "erc20", createdAt: "2024-01-02T00:00:00Z" }),
    transaction("vault_old", 1, {
      hash: `0x${"AB".repeat(32)}`,
      asset: `ethereum/erc20:0x${"a0b86991c6218b36c1d19d4a2e9eb0ce3606eb48".toUpperCase()}`,
      amount: "12.500000",
      from: ALICE.toLowerCase(),
      to: BOB.toUpperCase().replace("0X", "0x"),
      direction: "outbound",
      timestamp: "2024-03-01T10:00:00.5Z"
    }),
    transaction("vault_old", 2, { status: "pending", timestamp: "2024-03-01T10:00:00.501Z" })
  ])
  key = (await app.key("user_a")).secret
})

const get = async (target: string) => {
  const answer = await app.get(target, key)
  expect([target, answer.status]).toEqual([target, 200])
  return answer
}
const rows = async (target: string) => (await get(target)).json.data

describe("Custody reads", () => {
  test("a list is data and pagination with limit and nextCursor, and nothing else", async () => {
    for (const list of [
      "/v1/vaults",
      "/v1/assets",
      "/v1/networks",
      "/v1/vaults/vault_old/balances",
      "/v1/vaults/vault_old/transactions",
      "/v1/vaults/vault_old/addresses",
      "/v1/vaults/vault_new/transactions"
    ]) {
      const { headers, json } = await get(list)
      expect(Object.keys(json)).toEqual(["data", "pagination"])
      expect(json.pagination).toEqual({ limit: 100, nextCursor: null })
      expect(headers.get("content-type")).toBe("application/json")
    }
  })

  test("one vault is the bare object, with exactly the fields of the specification", async () => {
    expect((await get("/v1/vaults/vault_old")).json).toEqual({
      id: "vault_old",
      entityId: "entity_a",
      label: "Old",
      networks: ["ethereum", "bitcoin"],
      createdAt: "2023-01-01T00:00:00.000Z"
    })
    expect((await get("/v1/vaults/vault_new")).json.label).toBe("Neu – “新しい” 🏦")
  })

  test("vaults are listed newest first, and those of one instant by descending id", async () => {
    const vaults = await rows("/v1/vaults")
    expect(vaults.map(({ id }: { id: string }) => id)).toEqual(["vault_new", "vault_c", "vault_b", "vault_old"])
    for (const one of vaults) expect(Object.keys(one)).toEqual(["id", "entityId", "label", "networks", "createdAt"])
  })

  test("Balance: exactly the fields; the native asset first within a network", async () => {
    const found = await rows("/v1/vaults/vault_old/balances")
    for (const { asOf } of found) expect(asOf).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
    expect(found.map(({ asOf, ...row }: { asOf: string }) => row)).toEqual([
      { asset: "bitcoin/native", network: "bitcoin", symbol: "BTC", amount: "0.00000001" },
      { asset: "ethereum/native", network: "ethereum", symbol: "ETH", amount: "1.5" },
      { asset: "ethereum/erc20:0x2222222222222222222222222222222222222222", network: "ethereum", symbol: "AAVE", amount: "0" },
      { asset: "ethereum/erc20:0x1111111111111111111111111111111111111111", network: "ethereum", symbol: "USDC", amount: "7" },
      { asset: USDC, network: "ethereum", symbol: "USDC", amount: "2500.000001" }
    ])
  })

  test("Transaction: exactly the fields, most recent first, in canonical spelling", async () => {
    const generated = { id: expect.stringMatching(/^tx_[0-7][0-9a-hjkmnp-tv-z]{25}$/), updatedAt: expect.stringMatching(/^20.*\.\d{3}Z$/) }
    const absent = { fee: null, blockNumber: null, blockHash: null, memo: null, externalId: null }
    const found = await rows("/v1/vaults/vault_old/transactions")
    expect(found).toEqual([
      {
        ...generated,
        ...absent,
        hash: hash(2),
        network: "ethereum",
        status: "pending",
        direction: "inbound",
        asset: "ethereum/native",
        amount: "1",
        from: ALICE,
        to: BOB,
        timestamp: "2024-03-01T10:00:00.501Z"
      },
      {
        ...generated,
        ...absent,
        hash: `0x${"ab".repeat(32)}`,
        network: "ethereum",
        status: "confirmed",
        direction: "outbound",
        asset: USDC,
        amount: "12.5",
        from: ALICE,
        to: BOB,
        timestamp: "2024-03-01T10:00:00.500Z"
      }
    ])
    expect(Object.keys(found[0]).join()).toBe(
      "id,hash,network,status,direction,asset,amount,from,to,timestamp,fee,blockNumber,blockHash,memo,externalId,updatedAt"
    )
  })

  test("Deposit address: exactly the fields, newest first", async () => {
    expect(await rows("/v1/vaults/vault_old/addresses")).toEqual([
      { address: "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", network: "bitcoin", assetType: "native" },
      { address: ALICE, network: "ethereum", assetType: "erc20" },
      { address: BOB, network: "ethereum", assetType: "native" }
    ])
  })

  test("Asset: exactly the fields, of the organization's networks only, by id", async () => {
    const assets = await rows("/v1/assets")
    expect(assets[0]).toEqual({ id: "bitcoin/native", symbol: "BTC", name: "Bitcoin", decimals: 8, network: "bitcoin" })
    expect(assets.map(({ id }: { id: string }) => id)).toEqual([
      "bitcoin/native",
      "ethereum-sepolia/native",
      "ethereum/erc20:0x1111111111111111111111111111111111111111",
      "ethereum/erc20:0x2222222222222222222222222222222222222222",
      USDC,
      "ethereum/native"
    ])
  })

  test("Network: name and kind, of the networks available to the organization, by name", async () => {
    expect(await rows("/v1/networks")).toEqual([
      { name: "bitcoin", kind: "mainnet" },
      { name: "ethereum", kind: "mainnet" },
      { name: "ethereum-sepolia", kind: "testnet" }
    ])
  })

  test("filters of balances, addresses and assets restrict the list to what they name", async () => {
    const count = async (target: string) => (await rows(target)).length
    expect(await count("/v1/vaults/vault_old/balances?network=ethereum")).toBe(4)
    expect(await count("/v1/vaults/vault_old/balances?network=bitcoin")).toBe(1)
    expect(await count("/v1/vaults/vault_old/balances?network=solana")).toBe(0)
    expect(await count("/v1/vaults/vault_old/addresses?network=bitcoin")).toBe(1)
    expect(await count("/v1/vaults/vault_old/addresses?network=ethereum")).toBe(2)
    expect(await count("/v1/assets?network=ethereum")).toBe(4)
    expect(await count("/v1/assets?symbol=USDC")).toBe(2)
    expect(await count("/v1/assets?symbol=usdc")).toBe(0)
    expect(await count("/v1/assets?symbol=ETH&network=ethereum-sepolia")).toBe(1)
    expect(await count("/v1/assets?symbol=SOL")).toBe(0)
    expect(await count("/v1/assets?network=solana")).toBe(0)
  })

  test("custody reads never change a row of any custody table or of the log", async () => {
    const tables = ["networks", "assets", "organizations", "entities", "vaults", "users", "vault_roles"]
    tables.push("transactions", "balances", "deposit_addresses", "events", "deliveries", "webhooks")
    // xmin is the transaction that last wrote a row, so an update without a change would show as well.
    const state = async () => {
      const digests: { [table: string]: unknown } = {}
      for (const name of tables) {
        const [row] = await app.sql(
          `SELECT count(*) AS count, md5(coalesce(string_agg(t.xmin::text || t::text, '|' ORDER BY t::text), '')) AS digest FROM ${name} t`
        )
        digests[name] = row
      }
      return digests
    }
    const before = await state()
    const paths = [
      "/v1/vaults",
      "/v1/assets",
      "/v1/networks",
      ...["", "/balances", "/transactions", "/addresses"].map((list) => `/v1/vaults/vault_old${list}`)
    ]
    for (const path of paths) {
      await get(path)
      for (const method of ["HEAD", "POST", "PUT", "PATCH", "DELETE"]) {
        const { status } = await app.request(method, path, {
          key,
          ...(method === "HEAD" ? {} : { body: { label: "changed", amount: "1" } })
        })
        expect([method, path, status]).toEqual([method, path, method === "HEAD" ? 200 : 405])
      }
    }
    expect(await state()).toEqual(before)
  })

  test("an empty list of a visible vault is an empty page, not a 404", async () => {
    for (const list of ["balances", "transactions", "addresses"]) expect(await rows(`/v1/vaults/vault_new/${list}`)).toEqual([])
  })
})
