/** Assets that vaults hold or moved, and their decimals, which cannot fall below stored digits. C-9. */
import { beforeAll, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { asset, entity, network, organization, smallest, transaction, user, vault } from "../../support/records.ts"

const app = useApi()
let key = "",
  limited = ""
const TOKEN = "polygon/erc20:0x0000000000000000000000000000000000000001",
  FEES = "polygon/native",
  OTHER = "polygon/erc20:0x0000000000000000000000000000000000000002",
  HELD = "tron/trc10:7"

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    ...["polygon", "tron", "solana"].map((name) => network(name)),
    ...[TOKEN, FEES, HELD, OTHER, "solana/native"].map((id) => asset(id)),
    organization("org_a", ["ethereum", "polygon", "tron"]),
    vault("vault_b", "entity_a"),
    organization("org_b", ["ethereum"]),
    entity("entity_b", "org_b"),
    vault("vault_other", "entity_b"),
    user("user_a", "org_a", ["vault_a", "vault_b"]),
    user("user_b", "org_a", ["vault_b"]),
    user("user_other", "org_b", ["vault_other"])
  ])
  key = (await app.key("user_a")).secret
  limited = (await app.key("user_b")).secret
})

test("an asset that a visible vault holds or moved is listed without its network", async () => {
  const ids = async (secret: string, query = "") => (await app.walk(`/v1/assets?${query}`, secret, 2)).map(({ id }) => id)
  await app.feed([
    transaction("vault_a", 1, { network: "polygon", asset: TOKEN, fee: { asset: FEES, amount: "0.1" } }),
    { type: "balance", vaultId: "vault_a", asset: HELD, amount: "5" },
    transaction("vault_b", 2, { network: "polygon", asset: TOKEN }),
    organization("org_a", ["ethereum"])
  ])
  expect(await ids(key)).toEqual(["ethereum/native", TOKEN, FEES, HELD])
  expect(await ids(key, "network=polygon")).toEqual([TOKEN, FEES])
  expect(await ids(key, "symbol=COIN")).toEqual([FEES])
  // The other vault moved only the token; another organization sees nothing of either.
  expect(await ids(limited)).toEqual(["ethereum/native", TOKEN])
  expect(await ids((await app.key("user_other")).secret)).toEqual(["ethereum/native"])
  expect(await ids((await app.key("user_a", { vaultIds: ["vault_b"] })).secret)).toEqual(["ethereum/native", TOKEN])
  // What moved it may change: a transaction that turned out to be of another asset keeps both, also within one batch.
  await app.feed([
    transaction("vault_b", 2, { network: "polygon", asset: OTHER, fee: { asset: FEES, amount: "0.1" } }),
    transaction("vault_b", 2, { network: "polygon", asset: TOKEN, fee: null })
  ])
  expect(await ids(limited)).toEqual(["ethereum/native", TOKEN, OTHER, FEES])
})

test("decimals cannot fall below digits that are stored, whatever has them", async () => {
  const set = (id: string, decimals: number) => app.records([asset(id, { decimals })])
  const rejected = async (id: string, decimals: number, digits: number) => {
    const answer = await set(id, decimals)
    expect([id, answer.status, answer.json.errors?.[0]?.detail ?? answer.json]).toEqual([id, 400, expect.stringContaining(String(digits))])
  }
  for (const [index, [id, records]] of Object.entries([
    ["tron/trc10:1", (asset: string) => [{ type: "balance", vaultId: "vault_a", asset, amount: "1.2345" }]],
    ["tron/trc10:2", (asset: string) => [transaction("vault_a", 20, { network: "tron", asset, amount: "1.2345" })]],
    ["tron/trc10:3", (asset: string) => [transaction("vault_a", 21, { network: "tron", asset: HELD, fee: { asset, amount: "0.0001" } })]],
    // The digits of a state that has been corrected since, and of a balance of the past, are stored too.
    [
      "tron/trc10:4",
      (asset: string) => [
        transaction("vault_a", 22, { network: "tron", asset, amount: "1.2345" }),
        transaction("vault_a", 22, { network: "tron", asset, amount: "1" })
      ]
    ]
  ] as const)) {
    await app.feed([asset(id, { decimals: 8 })])
    expect([index, (await set(id, 3)).status, (await set(id, 8)).status]).toEqual([index, 200, 200])
    await app.feed(records(id))
    await rejected(id, 3, 4)
    expect([index, (await set(id, 4)).status, (await set(id, 8)).status]).toEqual([index, 200, 200])
  }
  // Trailing zeros are no digits, and a rejected batch stores none.
  const FRESH = "tron/trc10:5"
  await app.feed([asset(FRESH, { decimals: 8 })])
  await app.feed([{ type: "balance", vaultId: "vault_a", asset: FRESH, amount: "1.50000" }])
  const broken = await app.records([
    { type: "balance", vaultId: "vault_a", asset: FRESH, amount: "1.1234567" },
    { type: "balance", vaultId: "vault_unknown", asset: FRESH, amount: "1" }
  ])
  expect(broken.status).toBe(400)
  expect((await set(FRESH, 1)).status).toBe(200)
  await rejected(FRESH, 0, 1)
})
