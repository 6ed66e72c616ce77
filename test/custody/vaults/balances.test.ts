/** Balances at a time and their history, against a model that keeps every record in a list. C-6. */
import { beforeAll, describe, expect, test } from "bun:test"
import { Decimal } from "decimal.js"
import fc from "fast-check"
import { useApi } from "../../support/api.ts"
import { asset, smallest, vault } from "../../support/records.ts"

const app = useApi()
let key = ""
const USDC = "ethereum/erc20:0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48",
  BIG = "ethereum/erc20:0x0000000000000000000000000000000000000078",
  ETH = "ethereum/native"

beforeAll(async () => {
  await app.feed([...smallest(), asset(USDC, { decimals: 6, symbol: "USDC" }), asset(BIG, { decimals: 0, symbol: "BIG" })])
  key = (await app.key("user_a")).secret
})

let count = 0
/** A separate vault for a test. */
const fresh = async (): Promise<string> => {
  const id = `vault_balance${++count}`
  await app.feed(
    [
      vault(id, "entity_a"),
      {
        type: "user",
        id: "user_a",
        organizationId: "org_a",
        email: "a@example.com",
        name: "a",
        status: "active",
        organizationRole: "owner",
        vaultRoles: ["vault_a", ...Array.from({ length: count }, (_, index) => `vault_balance${index + 1}`)].map((vaultId) => ({
          vaultId,
          role: "developer"
        }))
      }
    ],
    { "x-record-events": "none" }
  )
  return id
}
const record = (vaultId: string, amount: string, occurredAt?: string, assetId = ETH) => ({
  type: "balance",
  vaultId,
  asset: assetId,
  amount,
  ...(occurredAt === undefined ? {} : { occurredAt })
})
const at = async (vaultId: string, time?: string) =>
  (await app.walk(`/v1/vaults/${vaultId}/balances${time === undefined ? "" : `?at=${encodeURIComponent(time)}`}`, key)).map((row) => [
    row.asset,
    row.amount,
    row.asOf
  ])
const historyOf = (vaultId: string, assetId = ETH, more = "") =>
  app.walk(`/v1/vaults/${vaultId}/balance-history?asset=${encodeURIComponent(assetId)}${more}`, key, 7)

describe("the history of balances", () => {
  test("a record with its own time is history even if it equals the present amount", async () => {
    const id = await fresh()
    expect(await app.feed([record(id, "5", "2024-01-01T00:00:00Z")])).toMatchObject({ changed: 1, events: 1 })
    expect(await app.feed([record(id, "5", "2024-01-03T00:00:00Z")])).toMatchObject({ changed: 1, events: 0 })
    expect(await app.feed([record(id, "5.000", "2024-01-03T00:00:00Z")])).toMatchObject({ changed: 0, unchanged: 1, events: 0 })
    // Late: it applies until the record of January 3 and no further.
    expect(await app.feed([record(id, "7", "2024-01-02T00:00:00Z")])).toMatchObject({ changed: 1, events: 0 })
    expect(await at(id)).toEqual([[ETH, "5", "2024-01-03T00:00:00.000Z"]])
    expect(await at(id, "2024-01-02T23:59:59.999Z")).toEqual([[ETH, "7", "2024-01-02T00:00:00.000Z"]])
    expect(await at(id, "2024-01-01T23:59:59.999Z")).toEqual([[ETH, "5", "2024-01-01T00:00:00.000Z"]])
    expect(await at(id, "2023-12-31T23:59:59.999Z")).toEqual([])
    expect((await historyOf(id)).map((row) => [row.amount, row.asOf])).toEqual([
      ["5", "2024-01-03T00:00:00.000Z"],
      ["7", "2024-01-02T00:00:00.000Z"],
      ["5", "2024-01-01T00:00:00.000Z"]
    ])
  })

  test("of records with equal times the last recorded counts", async () => {
    const id = await fresh(),
      noon = "2024-01-01T12:00:00.000Z"
    expect(await app.feed([record(id, "1", noon), record(id, "2", noon), record(id, "1", noon)])).toMatchObject({ changed: 3, events: 3 })
    expect(await at(id)).toEqual([[ETH, "1", noon]])
    expect(await at(id, noon)).toEqual([[ETH, "1", noon]])
    expect((await historyOf(id)).map((row) => row.amount)).toEqual(["1", "2", "1"])
    const { json } = await app.get(`/v1/webhook-events?vaultId=${id}&kind=balance.updated&limit=1`, key)
    expect(json.data[0].payload.data.balance).toEqual({ asset: ETH, network: "ethereum", symbol: "ETH", amount: "1", asOf: noon })
  })

  test("a record without a time is of the time of recording", async () => {
    const id = await fresh(),
      before = new Date().toISOString()
    await app.feed([record(id, "3")])
    const [[, amount = "", asOf = ""] = []] = await at(id)
    expect([amount, asOf >= before, asOf <= new Date().toISOString()]).toEqual(["3", true, true])
    expect(await app.feed([record(id, "3.0")])).toMatchObject({ unchanged: 1, events: 0 })
    const [only] = await historyOf(id)
    expect(only).toEqual({ asset: ETH, amount: "3", asOf, recordedAt: asOf })
  })

  test("a record up to five minutes ahead counts as now", async () => {
    const id = await fresh(),
      ahead = (millis: number) => new Date(Date.now() + millis).toISOString()
    for (const [amount, occurredAt] of [
      ["9", ahead(2_000)],
      ["4", undefined],
      ["5", ahead(200_000)],
      ["6", ahead(201_000)],
      ["7", undefined]
    ] as const) {
      const before = new Date().toISOString()
      expect(await app.feed([record(id, amount, occurredAt)])).toMatchObject({ changed: 1, events: 1 })
      const [[, , asOf = ""] = []] = await at(id)
      expect([asOf >= before, asOf <= new Date().toISOString()]).toEqual([true, true])
      for (const time of [undefined, new Date().toISOString()]) expect([time, await at(id, time)]).toEqual([time, [[ETH, amount, asOf]]])
    }
    const { json, status } = await app.records([record(id, "8", ahead(310_000))])
    expect([status, json.errors[0].line, json.errors[0].field]).toEqual([400, 1, "occurredAt"])
  })

  test("at cannot be in the future, and a history must name its asset", async () => {
    const problem = async (path: string) => {
      const { json, status } = await app.get(`/v1/vaults/vault_a/${path}`, key)
      return [status, json.code, json.errors?.[0]?.field]
    }
    expect(await problem(`balances?at=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([400, "invalid_parameter", "at"])
    expect(await problem("balances?at=yesterday")).toEqual([400, "invalid_parameter", "at"])
    expect(await problem("balance-history")).toEqual([400, "invalid_parameter", "asset"])
    expect(await problem("balance-history?asset=nonsense")).toEqual([400, "invalid_parameter", "asset"])
    expect((await app.get("/v1/vaults/vault_absent/balance-history?asset=ethereum/native", key)).status).toBe(404)
    expect((await app.get("/v1/vaults/vault_absent/balances?at=2024-01-01T00:00:00Z", key)).status).toBe(404)
    expect((await app.get(`/v1/vaults/vault_a/balance-history?asset=${encodeURIComponent(USDC.toUpperCase())}`, key)).status).toBe(400)
  })

  test("balances and histories match a plain list of the records, in any order", async () => {
    const times = ["2024-02-28T23:59:59.999Z", "2024-02-29T00:00:00.000Z", "2024-02-29T12:00:00.000Z", "2024-03-01T00:00:00.000Z"]
    const one = fc.record({
      asset: fc.constantFrom(ETH, USDC, BIG),
      amount: fc.oneof(
        fc.constantFrom("0", "1", "2"),
        fc.bigInt({ min: 10n ** 77n, max: 10n ** 78n - 1n }).map(String),
        fc.nat(9).map((digit) => `0.00000${digit}`)
      ),
      occurredAt: fc.constantFrom(...times)
    })
    const fits = (row: { readonly asset: string; readonly amount: string }) => row.asset !== BIG || !row.amount.includes(".")
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(one.filter(fits), { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 5 }),
        async (batches) => {
          const id = await fresh()
          const all: Array<{ readonly asset: string; readonly amount: Decimal; readonly occurredAt: string }> = []
          /** The records of an asset; the last one counts. */
          const sorted = (assetId: string) =>
            all
              .filter((row) => row.asset === assetId)
              .sort((a, b) => (a.occurredAt < b.occurredAt ? -1 : a.occurredAt > b.occurredAt ? 1 : 0))
          for (const batch of batches) {
            let changed = 0,
              events = 0
            for (const row of batch) {
              const known = sorted(row.asset),
                present = known.at(-1),
                same = known.filter((other) => other.occurredAt === row.occurredAt).at(-1),
                amount = new Decimal(row.amount)
              if (same?.amount.eq(amount) === true) continue
              changed++
              if (present === undefined || (row.occurredAt >= present.occurredAt && !present.amount.eq(amount))) events++
              all.push({ ...row, amount })
            }
            expect(await app.feed(batch.map((row) => record(id, row.amount, row.occurredAt, row.asset)))).toEqual({
              received: batch.length,
              changed,
              unchanged: batch.length - changed,
              stale: 0,
              events
            })
          }
          for (const time of [undefined, "2024-02-28T23:59:59.998Z", ...times, "2024-02-29T11:59:59.999Z"]) {
            const expected = [ETH, BIG, USDC].flatMap((assetId) => {
              const last = sorted(assetId)
                .filter((row) => time === undefined || row.occurredAt <= time)
                .at(-1)
              return last === undefined ? [] : [[assetId, last.amount.toFixed(), last.occurredAt]]
            })
            expect([time, await at(id, time)]).toEqual([time, expected])
          }
          for (const assetId of [ETH, BIG, USDC]) {
            const rows = (await historyOf(id, assetId)).map((row) => [row.amount, row.asOf])
            expect(rows).toEqual(
              sorted(assetId)
                .reverse()
                .map((row) => [row.amount.toFixed(), row.occurredAt])
            )
            const some = await historyOf(id, assetId, `&occurredAfter=${times[1]}&occurredBefore=${times[2]}`)
            expect(some.map((row) => row.asOf)).toEqual(
              rows.map(([, asOf]) => asOf ?? "").filter((asOf) => asOf >= String(times[1]) && asOf <= String(times[2]))
            )
          }
        }
      ),
      { numRuns: 25, endOnFailure: true }
    )
  })
})
