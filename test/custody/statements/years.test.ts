/** Statements over unusual periods, against a model in decimal.js: a leap year, re-orgs across midnight, assets that vanish. C-6. */
import { expect, test } from "bun:test"
import { Decimal } from "decimal.js"
import fc from "fast-check"
import { createClient, verifyStatements } from "../../../src/client/index.ts"
import { useApi } from "../../support/api.ts"
import { ORIGIN } from "../../support/app.ts"
import { transaction } from "../../support/records.ts"
import { BIG, beginDay, dayOf, ETH, leapDay, timeOf, useStatements } from "./statementFixtures.ts"

await beginDay()

Decimal.set({ precision: 400 })
/** A past year around a 29 February: sealing stops at its end. */
const LEAP = leapDay(),
  FIRST = LEAP - 200,
  LAST = LEAP + 165
const app = useApi({ STATEMENT_DELAY: `${-LAST - 1}d`, STATEMENT_HISTORY: `${-FIRST}d` })
const { fresh, get, key, list, seal } = useStatements(app)
const custody = () => createClient({ baseUrl: ORIGIN, fetch: app.fetch, apiKey: key() })

const line = async (id: string, day: number, asset = ETH) =>
  (await get(id, `/${dayOf(day)}`)).json.assets.find((one: { readonly asset: string }) => one.asset === asset)

test("a year's chain with a leap day verifies, and its sums match a model", async () => {
  const id = await fresh()
  const days = LAST - FIRST + 1
  const moves = fc.sample(
    fc.record({
      day: fc.oneof(fc.constantFrom(LEAP, LEAP - 1, LEAP + 1), fc.integer({ min: FIRST, max: LAST })),
      asset: fc.constantFrom(ETH, BIG),
      amount: fc.oneof(fc.constantFrom("0", "1"), fc.bigInt({ min: 10n ** 77n, max: 10n ** 78n - 1n }).map(String)),
      direction: fc.constantFrom("inbound", "outbound"),
      time: fc.constantFrom("00:00:00.000", "12:00:00.000", "23:59:59.999")
    }),
    120
  )
  const held = fc.sample(
    fc.record({
      day: fc.integer({ min: FIRST + 20, max: LAST - 20 }),
      asset: fc.constantFrom(ETH, BIG),
      amount: fc.bigInt({ min: 0n, max: 10n ** 78n - 1n }).map(String)
    }),
    40
  )
  await app.feed([
    ...moves.map(({ amount, asset, day, direction, time }, number) =>
      transaction(id, number, { amount, asset, direction, timestamp: timeOf(day, time) })
    ),
    ...held.map(({ amount, asset, day }) => ({ type: "balance", vaultId: id, asset, amount, occurredAt: timeOf(day, "00:00:00.000") })),
    // An asset that vanishes: the vault has some of it, and then none.
    { type: "balance", vaultId: id, asset: BIG, amount: "0", occurredAt: timeOf(LAST - 10, "00:00:00.000") }
  ])
  await seal()
  const statements = (await list(id, 100)).toReversed()
  expect(statements.map(({ date }) => date)).toEqual(Array.from({ length: days }, (_, index) => dayOf(FIRST + index)))
  expect(statements.map(({ date }) => date)).toContain(dayOf(LEAP))
  expect(dayOf(LEAP)).toEndWith("-02-29")
  expect(await verifyStatements(custody(), id)).toMatchObject({ valid: true, statements: days, previousHash: null })
  const closing = new Map<string, string>()
  for (const [index, { assets }] of statements.entries()) {
    for (const { asset, closing: end, inbound, opening, other, outbound, transactionCount } of assets) {
      expect(opening).toBe(closing.get(asset) ?? "0")
      closing.set(asset, end)
      const ofDay = moves.filter((move) => move.asset === asset && move.day === FIRST + index)
      const sum = (direction: string) =>
        ofDay
          .filter((move) => move.direction === direction)
          .reduce((total, { amount }) => total.plus(amount), new Decimal(0))
          .toFixed()
      expect([inbound, outbound, transactionCount]).toEqual([sum("inbound"), sum("outbound"), ofDay.length])
      expect(new Decimal(opening).plus(inbound).minus(outbound).plus(other).toFixed()).toBe(end)
      // Of records with the same time, the last recorded counts.
      const last = held
        .filter((one) => one.asset === asset && one.day <= FIRST + index)
        .reduce<(typeof held)[number] | undefined>((best, one) => (best === undefined || one.day >= best.day ? one : best), undefined)
      if (asset !== BIG || FIRST + index < LAST - 10) expect(end).toBe(last?.amount ?? "0")
      else expect(end).toBe("0")
    }
  }
})

test("a re-org across midnight revises both days once, and sealed revisions stay readable", async () => {
  const id = await fresh()
  const move = (fields: { readonly [field: string]: string }) => app.feed([transaction(id, 9_000, { amount: "5", ...fields })])
  await move({ timestamp: timeOf(LEAP, "23:59:59.999") })
  await seal()
  const before = (await get(id, `/${dayOf(LEAP)}`)).text
  expect([(await line(id, LEAP))?.inbound, await line(id, LEAP + 1)]).toEqual(["5", undefined])
  // No longer in a block: the day gets a revision.
  await move({ status: "pending", timestamp: timeOf(LEAP, "23:59:59.999") })
  expect((await seal()).revised).toBe(1)
  expect(await line(id, LEAP)).toBeUndefined()
  // In the next block, and so on the next day.
  await move({ timestamp: timeOf(LEAP + 1, "00:00:00.000") })
  expect((await seal()).revised).toBe(1)
  expect([await line(id, LEAP), (await line(id, LEAP + 1))?.inbound]).toEqual([undefined, "5"])
  const revisionsOf = async () => (await list(id, 100)).filter(({ revision }) => revision > 1).map(({ date, revision }) => [date, revision])
  expect(await revisionsOf()).toEqual([
    [dayOf(LEAP + 1), 2],
    [dayOf(LEAP), 2]
  ])
  expect((await get(id, `/${dayOf(LEAP)}?revision=1`)).text).toBe(before)
  // Both directions at once: one pass, two days.
  await move({ status: "pending", timestamp: timeOf(LEAP + 1, "00:00:00.000") })
  await move({ timestamp: timeOf(LEAP, "23:59:59.999") })
  expect((await seal()).revised).toBe(2)
  expect([(await line(id, LEAP))?.inbound, await line(id, LEAP + 1)]).toEqual(["5", undefined])
  // A record that repeats the same content changes nothing, and seals nothing.
  await move({ timestamp: timeOf(LEAP, "23:59:59.999") })
  expect(await seal()).toEqual({ sealed: 0, revised: 0, failed: 0 })
  expect(await verifyStatements(custody(), id)).toMatchObject({ valid: true, previousHash: null })
})
