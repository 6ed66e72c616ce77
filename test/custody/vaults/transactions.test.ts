import { beforeAll, describe, expect, test } from "bun:test"
import fc from "fast-check"
import { TypeID } from "typeid-js"
import { useApi } from "../../support/api.ts"
import type { Record } from "../../support/app.ts"
import { asset, hash, network, smallest, transaction } from "../../support/records.ts"

const TOKEN = "ethereum/erc20:0xdac17f958d2ee523a2206206994597c13d831ec7"
const MINT = "solana/spl:EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkwyTDt1v"
const assets = ["ethereum/native", TOKEN, "solana/native", MINT]
const statuses = ["pending", "confirmed", "failed"]
const times = Array.from(
  { length: 9 },
  (_, index) => `2024-03-01T10:00:0${Math.floor(index / 3)}.${String((index % 3) * 400).padStart(3, "0")}Z`
)
const app = useApi()
let key = ""

/** 240 transactions in which every value of every filter occurs often, many of them at one instant. */
const all: ReadonlyArray<Record> = Array.from({ length: 240 }, (_, index) => {
  const id = assets[index % assets.length] ?? ""
  return transaction("vault_a", index % 80, {
    index: Math.floor(index / 80),
    network: id.split("/")[0],
    asset: id,
    direction: index % 3 === 0 ? "inbound" : "outbound",
    status: statuses[index % 7] ?? "confirmed",
    timestamp: times[index % times.length],
    amount: String(index)
  })
})

/** The API's representation of a record. */
const shown = ({ type: _type, vaultId: _vault, index: _index, ...rest }: Record): unknown => ({
  ...rest,
  fee: null,
  blockNumber: null,
  blockHash: null,
  memo: null,
  externalId: null
})
/** A transaction without what the service gives it. */
const fed = ({ id: _id, updatedAt: _updated, ...rest }: { readonly [field: string]: unknown }): unknown => rest
const text = (value: unknown) => JSON.stringify(value, Object.keys(value as object).sort())
const multiset = (rows: ReadonlyArray<unknown>) => rows.map(text).sort()

beforeAll(async () => {
  await app.feed([...smallest(), network("solana"), asset(TOKEN), asset("solana/native"), asset(MINT), ...all])
  key = (await app.key("user_a")).secret
})

const list = (query: string, limit?: number) => app.walk(`/v1/vaults/vault_a/transactions${query}`, key, limit)

describe("List transactions", () => {
  test("any combination of filters returns exactly the matching rows, in any page size", async () => {
    const maybe = <A>(values: ReadonlyArray<A>) => fc.option(fc.constantFrom(...values), { nil: undefined, freq: 2 })
    const filters = fc.record({
      status: maybe([...statuses, "replaced", "dropped"]),
      direction: maybe(["inbound", "outbound"]),
      asset: maybe(assets),
      network: maybe(["ethereum", "solana"]),
      hash: maybe([hash(1), hash(2), hash(79), hash(80)]),
      occurredAfter: maybe(times),
      occurredBefore: maybe(times)
    })
    await fc.assert(
      fc.asyncProperty(filters, fc.constantFrom(3, 50, 500), async (chosen, limit) => {
        const query = new URLSearchParams()
        for (const [name, value] of Object.entries(chosen)) if (value !== undefined) query.set(name, value)
        const found = await list(query.size === 0 ? "" : `?${query}`, limit)
        const expected = all.filter(
          (one) =>
            (["status", "direction", "asset", "network", "hash"] as const).every(
              (name) => chosen[name] === undefined || chosen[name] === one[name]
            ) &&
            (chosen.occurredAfter === undefined || String(one.timestamp) >= chosen.occurredAfter) &&
            (chosen.occurredBefore === undefined || String(one.timestamp) <= chosen.occurredBefore)
        )
        expect(multiset(found.map(fed))).toEqual(multiset(expected.map(shown)))
        const stamps = found.map(({ timestamp }) => timestamp)
        expect(stamps).toEqual([...stamps].sort().reverse())
      }),
      { numRuns: 60 }
    )
  })

  test("a row's stored text says what its columns say, also after they changed", async () => {
    await app.feed([
      transaction("vault_a", 500, { status: "pending", amount: "0.000000000000000001", timestamp: "2020-01-01T00:00:00.000Z" }),
      transaction("vault_a", 501, { amount: "123456789012345678901234567890.5" })
    ])
    await app.feed([
      transaction("vault_a", 500, {
        status: "confirmed",
        amount: "1000000000000000000000",
        timestamp: "2020-01-01T00:00:07.250Z",
        fee: { asset: "ethereum/native", amount: "0.000021" },
        blockNumber: "19505152",
        blockHash: "0xb10c",
        memo: "invoice „7“",
        externalId: "wd-7"
      })
    ])
    const rows = await app.sql(`
      SELECT json, id, hash, network, status, direction, asset_id AS asset, trim_scale(amount)::text AS amount, from_address AS "from",
        to_address AS "to", to_char(timestamp AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS timestamp,
        CASE WHEN fee_asset_id IS NOT NULL THEN json_build_object('asset', fee_asset_id, 'amount', trim_scale(fee_amount)::text) END AS fee,
        block_number AS "blockNumber", block_hash AS "blockHash", memo, external_id AS "externalId",
        to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS "updatedAt"
      FROM transactions WHERE vault_id = 'vault_a'`)
    expect(rows.length).toBe(242)
    for (const { id, json, ...columns } of rows)
      expect(json).toBe(JSON.stringify({ id: TypeID.fromUUID("tx", String(id)).toString(), ...columns }))
    // The other tests do not expect them.
    await app.sql("DELETE FROM transactions WHERE hash = ANY($1)", [[hash(500), hash(501)]])
  })

  test("rows of the same timestamp are listed by descending record id, in every page size", async () => {
    const found = await list("", 500)
    expect(found.length).toBe(240)
    for (let at = 1; at < found.length; at++) {
      if (found[at].timestamp === found[at - 1].timestamp && !(found[at].id < found[at - 1].id))
        throw new Error(`row ${at} is out of order`)
    }
    for (const limit of [1, 7, 100]) expect(await list("", limit)).toEqual(found)
  })

  test("the asset and hash filters accept EVM values in either letter case", async () => {
    const lower = await list(`?asset=${TOKEN}`)
    expect(lower.length).toBe(60)
    expect(await list(`?asset=${encodeURIComponent(TOKEN.replace(/0x.*/, (contract) => `0x${contract.slice(2).toUpperCase()}`))}`)).toEqual(
      lower
    )
    expect(await list(`?asset=${MINT.toLowerCase()}`)).toEqual([])
    const one = await list(`?hash=${hash(10)}`)
    expect(one.length).toBe(3)
    expect(await list(`?hash=0x${hash(10).slice(2).toUpperCase()}`)).toEqual(one)
  })

  test("occurredAfter and occurredBefore are inclusive, to the millisecond and in any zone", async () => {
    const at = "2024-03-01T10:00:01.400Z"
    const exactly = await list(`?occurredAfter=${at}&occurredBefore=${at}`)
    expect(exactly.length).toBe(all.filter(({ timestamp }) => timestamp === at).length)
    expect(exactly.length).toBeGreaterThan(20)
    expect(await list(`?occurredAfter=2024-03-01T12:00:01.400%2B02:00&occurredBefore=2024-03-01T04:30:01.400-05:30`)).toEqual(exactly)
    expect(await list("?occurredAfter=2024-03-01T10:00:01.401Z&occurredBefore=2024-03-01T10:00:01.799Z")).toEqual([])
    expect(await list("?occurredAfter=2024-03-02T00:00:00Z&occurredBefore=2024-03-01T00:00:00Z")).toEqual([])
  })

  test("there is no implicit time window: transactions of year 1 and of now are listed", async () => {
    const now = new Date().toISOString()
    await app.feed([
      transaction("vault_a", 900, { timestamp: "1970-01-01T00:00:00Z" }),
      transaction("vault_a", 901, { timestamp: now }),
      transaction("vault_a", 902, { timestamp: "0001-01-01T00:00:00Z" })
    ])
    const found = await list("", 100)
    expect(found[0].timestamp).toBe(now)
    expect(found.at(-1).timestamp).toBe("0001-01-01T00:00:00.000Z")
    expect(found.at(-2).timestamp).toBe("1970-01-01T00:00:00.000Z")
  })
})
