/** Balances of all visible vaults and their sums, for callers who see many vaults and few. C-6, C-11. */
import { beforeAll, describe, expect, test } from "bun:test"
import { Decimal } from "decimal.js"
import fc from "fast-check"
import { useApi } from "../../support/api.ts"
import { codeOf } from "../../support/problem.ts"
import { asset, entity, network, organization, smallest, user, vault } from "../../support/records.ts"

/** The assets in the order of lists. The longest id has 150 characters. */
const LONG = `ethereum/erc20:${"x".repeat(135)}`
const assets = ["bitcoin/native", "ethereum/native", "ethereum/erc20:0xb", "ethereum/erc20:0xa", LONG]
const symbols: { readonly [id: string]: string } = { "ethereum/erc20:0xb": "AAA", "ethereum/erc20:0xa": "BBB", [LONG]: "BBB" }
const VAULTS = 130
const vaultIds = Array.from({ length: VAULTS }, (_, index) => `vault_${String(index).padStart(3, "0")}`)
const entityOf = (index: number) => `entity_${index < 120 ? index % 2 : 2}`
/** A vault id of the greatest length. */
const LONGEST = `vault_${"v".repeat(64)}`

const app = useApi({ RATE_LIMIT: "off" })

interface Row {
  readonly vaultId: string
  readonly asset: string
  readonly amount: string
  readonly occurredAt: string
}
const early = "2024-01-01T00:00:00.000Z",
  late = "2024-06-01T00:00:00.000Z",
  between = "2024-03-01T00:00:00.000Z"
const records: ReadonlyArray<Row> = [...vaultIds, LONGEST].flatMap((vaultId, index) =>
  assets.flatMap((id, place) =>
    (index + place) % 3 === 0
      ? []
      : [early, late]
          .filter((_, time) => time === 1 || index % 4 !== 0)
          .map((occurredAt) => ({
            vaultId,
            asset: id,
            amount: occurredAt === early ? "0.5" : `${index}.${String(place + 1).padStart(18, "0")}`,
            occurredAt
          }))
  )
)

let callers: ReadonlyArray<readonly [secret: string, sees: ReadonlyArray<string>]> = []

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    network("bitcoin"),
    ...assets.filter((id) => id !== "ethereum/native").map((id) => asset(id, { symbol: symbols[id] ?? "COIN" })),
    ...[0, 1, 2, 3].map((index) => entity(`entity_${index}`, "org_a")),
    ...vaultIds.map((id, index) => vault(id, entityOf(index))),
    vault(LONGEST, "entity_2"),
    vault("vault_hidden", "entity_3"),
    user("user_every", "org_a", [...vaultIds, LONGEST]),
    user("user_three", "org_a", ["vault_000", "vault_010", LONGEST]),
    user("user_none", "org_a", []),
    organization("org_other", ["ethereum"]),
    entity("entity_other", "org_other"),
    vault("vault_other", "entity_other")
  ])
  const hidden = ["vault_hidden", "vault_other"].flatMap((vaultId) =>
    assets.map((id) => ({ vaultId, asset: id, amount: "1000000", occurredAt: early }))
  )
  for (let from = 0; from < records.length; from += 900)
    await app.feed(records.slice(from, from + 900).map((row) => ({ type: "balance", ...row })))
  await app.feed(hidden.map((row) => ({ type: "balance", ...row })))
  const secretOf = async (id: string, allowed: ReadonlyArray<string> | null = null) => (await app.key(id, { vaultIds: allowed })).secret
  callers = [
    [await secretOf("user_every"), [...vaultIds, LONGEST]],
    [await secretOf("user_every", vaultIds.slice(1, 121)), vaultIds.slice(1, 121)],
    [await secretOf("user_every", ["vault_007"]), ["vault_007"]],
    [await secretOf("user_three"), ["vault_000", "vault_010", LONGEST]],
    [await secretOf("user_none"), []]
  ]
})

interface Filters {
  readonly at?: string | undefined
  readonly asset?: string | undefined
  readonly network?: string | undefined
  readonly entityId?: ReadonlyArray<string> | undefined
}
const queryOf = ({ entityId = [], ...others }: Filters & { readonly sumBy?: string }) => {
  const query = new URLSearchParams(
    Object.entries(others).flatMap(([name, value]): Array<[string, string]> => (value === undefined ? [] : [[name, value]]))
  )
  for (const id of entityId) query.append("entityId", id)
  return query.size === 0 ? "/v1/balances" : `/v1/balances?${query}`
}

/** The balances that a caller should see, in order. */
const expected = (sees: ReadonlyArray<string>, { at = "9", asset, entityId, network }: Filters): ReadonlyArray<Row> =>
  assets.flatMap((id) =>
    [...vaultIds, LONGEST].flatMap((vaultId, index) => {
      const row = records.filter((one) => one.vaultId === vaultId && one.asset === id && one.occurredAt <= at).at(-1)
      return row !== undefined &&
        sees.includes(vaultId) &&
        (asset === undefined || id === asset) &&
        (network === undefined || id.startsWith(`${network}/`)) &&
        (entityId === undefined || entityId.includes(entityOf(index)))
        ? [row]
        : []
    })
  )

const maybe = <A>(values: ReadonlyArray<A>) => fc.option(fc.constantFrom(...values), { nil: undefined, freq: 1 })
const filters = fc.record({
  at: maybe([early, between, late, "2023-01-01T00:00:00.000Z"]),
  asset: maybe([...assets, "ethereum/erc20:0xabsent"]),
  network: maybe(["ethereum", "bitcoin", "solana"]),
  entityId: fc.option(fc.subarray(["entity_0", "entity_1", "entity_2", "entity_3", "entity_other"], { minLength: 1 }), {
    nil: undefined,
    freq: 2
  })
})

describe("balances of all vaults", () => {
  test("any combination of filters returns each visible balance once, in order, in any page size", async () => {
    await fc.assert(
      fc.asyncProperty(filters, fc.nat(4), fc.constantFrom(3, 100, 500), async (chosen, caller, limit) => {
        const [secret, sees] = callers[caller] ?? ["", []]
        const found = await app.walk(queryOf(chosen), secret, limit)
        expect(found).toEqual(
          expected(sees, chosen).map(({ amount, asset, occurredAt, vaultId }) => ({
            asset,
            network: asset.split("/")[0],
            symbol: symbols[asset] ?? (asset === "ethereum/native" ? "ETH" : "COIN"),
            amount,
            asOf: occurredAt,
            vaultId
          }))
        )
      }),
      { numRuns: 120 }
    )
  })

  test("summed by asset, each line is the exact sum over the visible vaults", async () => {
    await fc.assert(
      fc.asyncProperty(filters, fc.nat(4), fc.constantFrom(1, 2, 500), async (chosen, caller, limit) => {
        const [secret, sees] = callers[caller] ?? ["", []]
        const found = await app.walk(queryOf({ ...chosen, sumBy: "asset" }), secret, limit)
        const groups = [...Map.groupBy(expected(sees, chosen), ({ asset }) => asset)]
        expect(found).toEqual(
          groups.map(([asset, rows]) => ({
            asset,
            symbol: symbols[asset] ?? (asset === "ethereum/native" ? "ETH" : "COIN"),
            network: asset.split("/")[0],
            amount: rows.reduce((sum, { amount }) => Decimal.clone({ precision: 100 }).add(sum, amount), new Decimal(0)).toFixed(),
            vaultCount: rows.length
          }))
        )
      }),
      { numRuns: 120 }
    )
  })

  test("invalid parameters are rejected, a time in the future among them", async () => {
    const [[secret] = [""]] = callers
    for (const query of ["sumBy=vault", "at=2999-01-01T00:00:00Z", "at=x", "asset=x", "network=X", "sumBy=asset&sumBy=asset"])
      expect([query, codeOf(await app.get(`/v1/balances?${query}`, secret))]).toEqual([query, "invalid_parameter"])
    expect(codeOf(await app.get("/v1/balances?vaultId=vault_000", secret))).toBe("unknown_parameter")
    const { pagination } = (await app.get("/v1/balances?limit=1", secret)).json
    expect(codeOf(await app.get(`/v1/balances?sumBy=asset&cursor=${pagination.nextCursor}`, secret))).toBe("invalid_cursor")
    const { secret: other } = await app.key("user_every", { scopes: ["webhook:read"] })
    expect(codeOf(await app.get("/v1/balances", other))).toBe("insufficient_scope")
  })
})
