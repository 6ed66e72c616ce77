/** The table that statements on one vault's transactions name. A kept plan on all 32 partitions locks and opens each of them. Decision D-60. */
import { beforeAll, describe, expect, test } from "bun:test"
import { explained } from "../../support/plans.ts"
import { entity, smallest, transaction, user, vault } from "../../support/records.ts"

const { app, costs, pageOf } = explained()
/** How often a page is asked for until its statement names partitions, and how many statements may. */
const OFTEN = 50,
  FREQUENT = 4
let key = ""
const partitions: Record<string, string> = {}

/** The tables of transactions that statements named since the last call. */
const named = (all: Awaited<ReturnType<typeof costs>>) =>
  all.flatMap(({ error, text }) => {
    expect(error).toBe(undefined)
    return [...text.matchAll(/FROM (transactions\w*)/g)].map(([, table]) => table)
  })

const page = async (vaultId: string, query: { readonly [name: string]: string }) =>
  named((await pageOf(`/v1/vaults/${vaultId}/transactions`, query, key)).costs)

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    entity("entity_b", "org_a"),
    vault("vault_b", "entity_b"),
    vault("vault_c", "entity_b"),
    user("user_a", "org_a", ["vault_a", "vault_b", "vault_c"], { organizationRole: "owner" }),
    transaction("vault_a", 1),
    transaction("vault_b", 2)
  ])
  key = (await app.key("user_a")).secret
  for (const { vault_id, partition } of await app.sql("SELECT vault_id, tableoid::regclass::text AS partition FROM transactions"))
    partitions[String(vault_id)] = String(partition)
  await costs()
})

describe("transactions of one vault", () => {
  test("are read from its partition by the pages that are asked for most", async () => {
    const path = "/v1/vaults/vault_a/transactions?limit=20"
    const first = await app.get(path, key)
    expect(named(await costs())).toEqual(["transactions"])
    for (let turn = 2; turn < OFTEN; turn++) expect((await app.get(path, key)).text).toBe(first.text)
    expect(new Set(named(await costs()))).toEqual(new Set(["transactions"]))
    expect((await app.get(path, key)).text).toBe(first.text)
    expect(named(await costs())).toContain(partitions["vault_a"] ?? "none")
    expect(await page("vault_b", { limit: "20" })).toContain(partitions["vault_b"] ?? "none")
    // A vault without rows.
    expect((await app.get("/v1/vaults/vault_c/transactions?limit=20", key)).json.data).toEqual([])
    await costs()
    // Unusual sizes share a statement.
    const sizes = [(turn: number) => 110 + turn, () => 10, () => 25, () => 50]
    for (const [index, size] of sizes.entries()) {
      for (let turn = 1; turn < OFTEN; turn++) await app.get(`/v1/vaults/vault_a/transactions?limit=${size(turn)}`, key)
      await costs()
      expect(await page("vault_a", { limit: `${size(OFTEN)}` })).toEqual([
        index === FREQUENT - 1 ? "transactions" : (partitions["vault_a"] ?? "none")
      ])
    }
  })

  test("are looked up in its partition by a batch of one vault only", async () => {
    await app.feed([transaction("vault_a", 1, { status: "confirmed" }), transaction("vault_a", 3)])
    expect(named(await costs())).toEqual([partitions["vault_a"] ?? "none"])
    await app.feed([transaction("vault_a", 4), transaction("vault_b", 4)])
    expect(named(await costs())).toEqual(["transactions"])
    expect(
      (await app.get("/v1/vaults/vault_a/transactions?limit=20", key)).json.data.map((row: { hash: string }) => row.hash)
    ).toHaveLength(3)
    expect(await app.sql("SELECT count(*)::int AS rows, count(DISTINCT (vault_id, hash))::int AS keys FROM transactions")).toEqual([
      { rows: 5, keys: 5 }
    ])
  })
})
