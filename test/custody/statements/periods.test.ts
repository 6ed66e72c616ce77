/** Statements of a period: a page of days, CSV, and the summary, which foots to the digit. C-10. */
import { beforeAll, describe, expect, test } from "bun:test"
import { Decimal } from "decimal.js"
import { useApi } from "../../support/api.ts"
import { transaction } from "../../support/records.ts"
import { BIG, beginDay, dayOf, ETH, timeOf, useStatements } from "./statementFixtures.ts"

await beginDay()

Decimal.set({ precision: 400 })
const DAYS = 40
const app = useApi({ STATEMENT_DELAY: "0s", STATEMENT_HISTORY: `${DAYS}d` })
const { fresh, get, key, seal } = useStatements(app)
let id = "",
  empty = ""

const header = "asset,symbol,opening,inbound,outbound,fees,other,closing,transactionCount"
const summary = (query: string, headers = {}) => app.get(`/v1/vaults/${id}/statement-summary?${query}`, key(), headers)
const fields = async (path: string) => {
  const { json, status } = await app.get(path, key())
  return [status, json.code, json.errors?.map(({ field }: { readonly field: string }) => field)]
}

/** What happened in the vault: amounts of many digits, fees of both assets, and days without anything. */
const movements = Array.from({ length: 60 }, (_, number) => ({
  day: -DAYS + ((number * 7) % (DAYS - 3)),
  asset: number % 5 === 0 ? BIG : ETH,
  amount: number % 5 === 0 ? String(10n ** 60n + BigInt(number)) : `${number}.${"123456789012345678".slice(0, 1 + (number % 18))}`,
  direction: number % 3 === 0 ? "outbound" : "inbound",
  status: number % 11 === 0 ? "failed" : "confirmed",
  fee: number % 2 === 0 ? { asset: ETH, amount: `0.00${number + 1}` } : null
}))

beforeAll(async () => {
  id = await fresh()
  empty = await fresh()
  await app.feed(
    movements.map(({ day, ...fields }, number) => transaction(id, 7_000 + number, { ...fields, timestamp: timeOf(day, "09:00:00.000") }))
  )
  await app.feed([
    { type: "balance", vaultId: id, asset: ETH, amount: "5", occurredAt: timeOf(-35, "00:00:00.000") },
    { type: "balance", vaultId: id, asset: ETH, amount: "1234.000000000000000001", occurredAt: timeOf(-5, "20:00:00.000") }
  ])
  await seal()
})

describe("statements of a period", () => {
  test("are paged with both days inclusive, and a cursor is bound to them", async () => {
    const dates = async (query: string) => (await app.walk(`/v1/vaults/${id}/statements?${query}`, key(), 2)).map((one) => one.date)
    expect(await dates(`from=${dayOf(-5)}&to=${dayOf(-2)}`)).toEqual([-2, -3, -4, -5].map(dayOf))
    expect(await dates(`from=${dayOf(-2)}`)).toEqual([-1, -2].map(dayOf))
    expect(await dates(`to=${dayOf(-DAYS)}`)).toEqual([dayOf(-DAYS)])
    const { nextCursor } = (await get(id, `?limit=1&from=${dayOf(-5)}`)).json.pagination
    expect(await fields(`/v1/vaults/${id}/statements?limit=1&from=${dayOf(-6)}&cursor=${nextCursor}`)).toEqual([
      400,
      "invalid_cursor",
      ["cursor"]
    ])
    for (const [query, field] of [
      [`from=${dayOf(-2)}&to=${dayOf(-3)}`, "from"],
      ["from=2026-02-30", "from"],
      ["to=yesterday", "to"],
      ["movedOnly=yes", "movedOnly"]
    ])
      expect([query, await fields(`/v1/vaults/${id}/statements?${query}`)]).toEqual([query, [400, "invalid_parameter", [field]]])
  })

  test("as CSV have a line for each day and asset, or each that moved", async () => {
    const csv = async (query: string) => (await get(id, `?${query}`, { accept: "text/csv" })).text.split("\r\n")
    const [head, ...lines] = await csv(`from=${dayOf(-DAYS)}&to=${dayOf(-1)}`)
    expect(head).toBe(`date,revision,${header}`)
    const expected = [...(await app.walk(`/v1/vaults/${id}/statements`, key(), 500))]
      .reverse()
      .flatMap(
        ({ assets, date, revision }): ReadonlyArray<string> =>
          assets.map((line: Readonly<Record<string, unknown>>) =>
            [
              date,
              revision,
              ...header.split(",").map((name) => (["asset", "symbol", "transactionCount"].includes(name) ? line[name] : `'${line[name]}`))
            ].join()
          )
      )
    expect(lines).toEqual([...expected, ""])
    const moved = await csv(`from=${dayOf(-DAYS)}&to=${dayOf(-1)}&movedOnly=true`)
    expect(moved.slice(1)).toEqual([...expected.filter((line) => !/,'0,'0,'0,'0,'[^,]*,0$/.test(line)), ""])
    expect(moved.length).toBeLessThan(lines.length)
    const status = async (query: string) => {
      const answer = await get(id, `?${query}`, { accept: "text/csv" })
      return [answer.status, JSON.parse(answer.text).errors[0].field]
    }
    expect(await status("")).toEqual([400, "from"])
    expect(await status(`from=${dayOf(-3)}`)).toEqual([400, "to"])
    expect(await status("from=2024-01-01&to=2025-01-01")).toEqual([400, "to"])
  })
})

describe("the summary of a period", () => {
  /** The lines of a period, added up from what was fed. */
  const expected = (from: number, to: number) =>
    [BIG, ETH].map((asset) => {
      const days = movements.filter(({ day }) => day >= from && day <= to)
      const sum = (amounts: ReadonlyArray<string>) => amounts.reduce((total, one) => total.plus(one), new Decimal(0)).toFixed()
      const of = (direction: string) =>
        days.filter((one) => one.asset === asset && one.status === "confirmed" && one.direction === direction).map(({ amount }) => amount)
      return {
        asset,
        inbound: sum(of("inbound")),
        outbound: sum(of("outbound")),
        fees: sum(days.flatMap(({ fee }) => (fee?.asset === asset ? [fee.amount] : []))),
        transactionCount: of("inbound").length + of("outbound").length
      }
    })

  test("adds up the days to the digit, and foots", async () => {
    for (const [from, to] of [
      [-DAYS, -1],
      [-30, -10],
      [-5, -5]
    ] as const) {
      const { json } = await summary(`from=${dayOf(from)}&to=${dayOf(to)}`)
      const [first, last] = [(await get(id, `/${dayOf(from)}`)).json, (await get(id, `/${dayOf(to)}`)).json]
      expect(json).toMatchObject({ vaultId: id, from: dayOf(from), to: dayOf(to), firstHash: first.hash, lastHash: last.hash })
      const lines = new Map(json.assets.map((line: { readonly asset: string }) => [line.asset, line]))
      for (const { asset, ...sums } of expected(from, to)) {
        const zeros = Object.values(sums).every((one) => one === "0" || one === 0)
        if (!(zeros && !lines.has(asset)))
          expect([from, to, lines.get(asset)]).toEqual([from, to, expect.objectContaining({ asset, ...sums })])
      }
      for (const { asset, closing, fees, inbound, opening, other, outbound } of json.assets) {
        const edge = (statement: typeof first, field: string) =>
          statement.assets.find((line: { readonly asset: string }) => line.asset === asset)?.[field] ?? "0"
        expect([opening, closing]).toEqual([edge(first, "opening"), edge(last, "closing")])
        expect(new Decimal(opening).plus(inbound).minus(outbound).minus(fees).plus(other).toFixed()).toBe(closing)
      }
    }
  })

  test("begins with the first statement, and names a day that is not sealed", async () => {
    expect((await summary(`from=2000-01-01&to=${dayOf(-1)}`)).json).toMatchObject({ from: dayOf(-DAYS), to: dayOf(-1) })
    const problem = async (query: string) => {
      const { json, status } = await summary(query)
      return [status, json.code, json.detail, json.firstDate]
    }
    expect(await problem(`from=${dayOf(-3)}&to=${dayOf(0)}`)).toEqual([
      409,
      "not_sealed",
      `The statement of ${dayOf(0)} is not sealed yet.`,
      undefined
    ])
    const later = await problem("from=2090-01-01&to=2090-01-31")
    expect(later).toEqual([409, "not_sealed", "The statement of 2090-01-01 is not sealed yet.", undefined])
    const first = dayOf(-DAYS)
    expect(await problem("from=2000-01-01&to=2000-01-31")).toEqual([409, "not_sealed", `The vault's statements begin at ${first}.`, first])
    const unsealed = await app.get(`/v1/vaults/${await fresh()}/statement-summary?from=2000-01-01&to=2000-01-31`, key())
    expect([unsealed.json.code, unsealed.json.firstDate]).toEqual(["not_sealed", first])
    for (const [query, field] of [
      [`from=${dayOf(-1)}&to=${dayOf(-2)}`, "from"],
      [`from=${dayOf(-1)}`, "to"],
      [`to=${dayOf(-1)}`, "from"]
    ])
      expect([query, await fields(`/v1/vaults/${id}/statement-summary?${query}`)]).toEqual([query, [400, "invalid_parameter", [field]]])
    expect((await app.get(`/v1/vaults/vault_unknown/statement-summary?from=${dayOf(-2)}&to=${dayOf(-1)}`, key())).status).toBe(404)
  })

  test("is CSV if asked, and leaves out assets that did not move", async () => {
    const query = `from=${dayOf(-2)}&to=${dayOf(-1)}`
    const all = await summary(query, { accept: "text/csv" })
    expect(all.text.split("\r\n").slice(0, 2)).toEqual([
      header,
      "ethereum/native,ETH,'1234.000000000000000001,'0,'0,'0,'0,'1234.000000000000000001,0"
    ])
    expect((await summary(`${query}&movedOnly=true`, { accept: "text/csv" })).text).toBe(`${header}\r\n`)
    expect((await summary(`${query}&movedOnly=true`)).json.assets).toEqual([])
    expect((await app.get(`/v1/vaults/${empty}/statement-summary?${query}`, key())).json.assets).toEqual([])
  })
})

test("a day that is not sealed yet is 404, and says so", async () => {
  const detail = async (vaultId: string, date: string) => {
    const { json, status } = await get(vaultId, `/${date}`)
    return [status, json.code, json.detail]
  }
  expect(await detail(id, dayOf(0))).toEqual([404, "not_found", `The statement of ${dayOf(0)} is not sealed yet.`])
  expect(await detail(id, "2001-01-01")).toEqual([404, "not_found", `The vault's statements begin at ${dayOf(-DAYS)}.`])
  const hidden = await detail("vault_unknown", dayOf(0))
  expect(hidden).toEqual([404, "not_found", "The resource does not exist, or this API key cannot access it."])
  expect(await detail(id, "2026-02-30")).toEqual(hidden)
})
