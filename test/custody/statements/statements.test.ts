/** Statements: their figures, against a model in decimal.js; their chain and signatures; revisions. C-6. */
import { expect, test } from "bun:test"
import { createHash, createPublicKey, verify } from "node:crypto"
import canonicalize from "canonicalize"
import { Decimal } from "decimal.js"
import fc from "fast-check"
import { useApi } from "../../support/api.ts"
import { transaction } from "../../support/records.ts"
import { BIG, beginDay, dayOf, ETH, timeOf, today, useStatements } from "./statementFixtures.ts"

await beginDay()

Decimal.set({ precision: 400 })
const DAY = 86_400_000
const app = useApi({ STATEMENT_DELAY: "0s", STATEMENT_HISTORY: "5d" })
const { fresh, get, list, revisions, seal } = useStatements(app)

/** Every revision of a vault, in the order of the chain, each verified. */
const chain = async (id: string) => {
  const { keys } = (await app.get("/v1/jwks.json")).json
  const all = await revisions(id)
  const byPrevious = new Map(all.map((one) => [one.previousHash, one]))
  expect(byPrevious.size).toBe(all.length)
  const ordered = []
  for (let last = byPrevious.get(null); last !== undefined; last = byPrevious.get(last.hash)) {
    const { hash, jws, ...sealed } = last
    expect(
      createHash("sha256")
        .update(canonicalize(sealed) ?? "")
        .digest("hex")
    ).toBe(hash)
    const [head = "", payload = "", signature = ""] = jws.split(".")
    const { alg, kid } = JSON.parse(Buffer.from(head, "base64url").toString())
    const jwk = keys.find((one: { readonly kid: string }) => one.kid === kid)
    expect([
      alg,
      verify(null, Buffer.from(`${head}.${payload}`), createPublicKey({ key: jwk, format: "jwk" }), Buffer.from(signature, "base64url"))
    ]).toEqual(["EdDSA", true])
    expect(JSON.parse(Buffer.from(payload, "base64url").toString())).toEqual({
      iss: "custody-data-service",
      vaultId: id,
      date: last.date,
      revision: last.revision,
      hash
    })
    ordered.push(last)
  }
  expect(ordered).toHaveLength(all.length)
  return ordered
}

test("a chain begins STATEMENT_HISTORY before its vault, with a statement for every day", async () => {
  const id = await fresh()
  await seal()
  const statements = await list(id)
  expect(statements.map(({ date }: { date: string }) => date)).toEqual([-1, -2, -3, -4, -5].map(dayOf))
  for (const one of statements) expect([one.revision, one.assets]).toEqual([1, []])
  await chain(id)
  const status = async (path: string) => (await get(id, `/${path}`)).status
  for (const path of [dayOf(0), dayOf(-6), "2024-02-30", "nonsense", "0000-01-01", `${dayOf(-1)}?revision=2`])
    expect([path, await status(path)]).toEqual([path, 404])
  for (const path of [`${dayOf(-1)}?revision=0`, `${dayOf(-1)}?revision=x`, `${dayOf(-1)}?nonsense=1`])
    expect([path, await status(path)]).toEqual([path, 400])
  expect(await seal()).toEqual({ sealed: 0, revised: 0, failed: 0 })
  // The history is made longer later: the earlier days are sealed, too, at the chain's end.
  await seal({ STATEMENT_HISTORY: "8d" })
  expect((await chain(id)).map(({ date }) => date)).toEqual([-5, -4, -3, -2, -1, -6, -7, -8].map(dayOf))
})

test("midnight belongs to the day that it begins, lines add up, and CSV contains them", async () => {
  const id = await fresh()
  await app.feed([
    { type: "balance", vaultId: id, asset: ETH, amount: "10", occurredAt: timeOf(-3, "00:00:00.000") },
    { type: "balance", vaultId: id, asset: ETH, amount: "7.5", occurredAt: timeOf(-2, "23:59:59.999") },
    transaction(id, 900, { amount: "2", direction: "outbound", timestamp: timeOf(-2, "00:00:00.000") }),
    transaction(id, 950, { amount: "100", status: "pending", timestamp: timeOf(-2, "00:00:00.000"), fee: { asset: ETH, amount: "9" } }),
    transaction(id, 960, { amount: "50", status: "failed", timestamp: timeOf(-2, "06:00:00.000"), fee: { asset: ETH, amount: "0.25" } })
  ])
  await seal()
  const lines = async (day: number) => (await get(id, `/${dayOf(day)}`)).json.assets
  expect(await lines(-4)).toEqual([])
  const line = { asset: ETH, symbol: "ETH", inbound: "0", fees: "0" }
  expect(await lines(-3)).toEqual([{ ...line, opening: "0", outbound: "0", other: "10", closing: "10", transactionCount: 0 }])
  expect(await lines(-2)).toEqual([
    { ...line, opening: "10", outbound: "2", fees: "0.25", other: "-0.25", closing: "7.5", transactionCount: 1 }
  ])
  const csv = await get(id, `/${dayOf(-2)}`, { accept: "text/csv" })
  expect([csv.headers.get("content-type"), csv.text]).toEqual([
    "text/csv; charset=utf-8",
    "asset,symbol,opening,inbound,outbound,fees,other,closing,transactionCount\r\nethereum/native,ETH,'10,'0,'2,'0.25,'-0.25,'7.5,1\r\n"
  ])
})

test("statements and revisions match a model, and a sealed day never changes silently", async () => {
  const time = fc.integer({ min: 0, max: 5 * 4 }).map((quarter) => new Date(today - 5 * DAY + (quarter * DAY) / 4).toISOString())
  const amount = fc.oneof(fc.constantFrom("0", "1", "3"), fc.bigInt({ min: 10n ** 77n, max: 10n ** 78n - 1n }).map(String))
  const one = fc.oneof(
    fc.record({ type: fc.constant("balance" as const), asset: fc.constantFrom(ETH, BIG), amount, occurredAt: time }),
    fc.record({
      type: fc.constant("transaction" as const),
      hash: fc.integer({ min: 0, max: 4 }),
      asset: fc.constantFrom(ETH, BIG),
      amount,
      status: fc.constantFrom("confirmed", "pending", "failed"),
      fee: fc.option(fc.record({ asset: fc.constantFrom(ETH, BIG), amount })),
      direction: fc.constantFrom("inbound", "outbound"),
      timestamp: time
    })
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(one, { minLength: 1, maxLength: 6 }), { minLength: 2, maxLength: 3 }), async (batches) => {
      const id = await fresh()
      const balances: Array<{ asset: string; amount: string; occurredAt: string }> = []
      const transactions = new Map<
        string,
        {
          readonly asset: string
          readonly amount: string
          readonly status: string
          readonly direction: string
          readonly timestamp: string
          readonly fee: { readonly asset: string; readonly amount: string } | null
        }
      >()
      const expected = (day: number) => {
        const [from, to] = [`${dayOf(day)}T00:00:00.000Z`, `${dayOf(day + 1)}T00:00:00.000Z`]
        return [ETH, BIG].flatMap((assetId) => {
          const before = (bound: string) =>
            balances
              .filter((row) => row.asset === assetId && row.occurredAt < bound)
              .reduce<(typeof balances)[number] | undefined>(
                (last, row) => (last === undefined || row.occurredAt >= last.occurredAt ? row : last),
                undefined
              )
          const day = [...transactions.values()].filter((row) => row.timestamp >= from && row.timestamp < to)
          const rows = day.filter((row) => row.asset === assetId && row.status === "confirmed")
          const paid = day.flatMap(({ fee, status }) => (status !== "pending" && fee?.asset === assetId ? [fee.amount] : []))
          const closing = before(to)
          if (closing === undefined && rows.length === 0 && paid.length === 0) return []
          const figures = [before(from)?.amount, closing?.amount, ...paid]
          if (rows.length === 0 && figures.every((one) => one === undefined || one === "0")) return []
          const sum = (direction: string) =>
            rows.filter((row) => row.direction === direction).reduce((total, row) => total.plus(row.amount), new Decimal(0))
          const [opening, end, inbound, outbound] = [
            new Decimal(before(from)?.amount ?? 0),
            new Decimal(closing?.amount ?? 0),
            sum("inbound"),
            sum("outbound")
          ]
          const fees = paid.reduce((total, one) => total.plus(one), new Decimal(0))
          const other = end.minus(opening).minus(inbound).plus(outbound).plus(fees)
          return [
            {
              asset: assetId,
              opening: opening.toFixed(),
              inbound: inbound.toFixed(),
              outbound: outbound.toFixed(),
              fees: fees.toFixed(),
              other: other.toFixed(),
              closing: end.toFixed(),
              transactionCount: rows.length
            }
          ]
        })
      }
      let sealed = new Map<string, string>()
      const revisions = new Map<string, number>()
      for (const batch of batches) {
        for (const row of batch) {
          if (row.type === "balance") {
            await app.feed([{ ...row, vaultId: id }])
            balances.push(row)
          } else {
            const { hash, ...rest } = row
            await app.feed([transaction(id, 5_000 + hash, rest)])
            transactions.set(`${hash} ${row.direction}`, rest)
          }
        }
        await seal()
        const now = new Map<string, string>()
        for (const statement of await list(id)) {
          const day = Math.round((Date.parse(statement.date) - today) / DAY)
          const lines = statement.assets.map(({ symbol: _, ...line }: { symbol: string }) => line)
          expect([statement.date, lines]).toEqual([statement.date, expected(day)])
          now.set(statement.date, JSON.stringify(lines))
          const changed = sealed.get(statement.date) !== now.get(statement.date)
          revisions.set(statement.date, (revisions.get(statement.date) ?? 0) + (changed ? 1 : 0))
          expect([statement.date, statement.revision]).toEqual([statement.date, revisions.get(statement.date) ?? 0])
        }
        expect(now.size).toBe(5)
        sealed = now
      }
      await chain(id)
    }),
    { numRuns: 4, endOnFailure: true }
  )
})
