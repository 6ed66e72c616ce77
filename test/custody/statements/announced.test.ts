/** The events that announce statements, and what a revision says of its causes. C-10. */
import { beforeAll, describe, expect, test } from "bun:test"
import { Schema } from "effect"
import { schemaOf } from "../../../src/events/log/Envelope.ts"
import * as Id from "../../../src/values/Id.ts"
import { useApi } from "../../support/api.ts"
import { asset, transaction, transactionId } from "../../support/records.ts"
import { BIG, beginDay, dayOf, ETH, timeOf, useStatements } from "./statementFixtures.ts"

await beginDay()

const app = useApi({ STATEMENT_DELAY: "0s", STATEMENT_HISTORY: "5d" })
const { fresh, get, key, list, seal } = useStatements(app)

interface Announced {
  readonly kind: string
  readonly occurredAt: string
  readonly payload: {
    readonly data: {
      readonly vaultId: string
      readonly statement: Readonly<Record<string, unknown>>
      readonly because: {
        readonly transactionIds: ReadonlyArray<string>
        readonly assets: ReadonlyArray<string>
        readonly more: number
      } | null
    }
  }
}
/** The events of a vault's statements, in the order of recording. */
const announced = async (vaultId: string): Promise<ReadonlyArray<Announced>> =>
  (await app.get(`/v1/event-feed?limit=500&vaultId=${vaultId}&kind=statement.sealed&kind=statement.revised`, key())).json.data
/** The revisions that were announced after the first `before` events: the day, and why. */
const revisions = async (vaultId: string, before: number) =>
  (await announced(vaultId)).slice(before).map(({ kind, payload: { data } }) => [kind, data.statement["date"], data.because])

const balance = (vaultId: string, assetId: string, amount: string, occurredAt: string) => ({
  type: "balance",
  vaultId,
  asset: assetId,
  amount,
  occurredAt
})

beforeAll(() => app.feed([asset("ethereum/erc20:0x0000000000000000000000000000000000000079", { symbol: "MORE" })]))

describe("a sealed statement", () => {
  test("is announced with its hash, once, in the order of the chain", async () => {
    const id = await fresh()
    await seal()
    const events = await announced(id)
    expect(events.map(({ kind, payload }) => [kind, payload.data.statement["date"], payload.data.because])).toEqual(
      [-5, -4, -3, -2, -1].map((day) => ["statement.sealed", dayOf(day), null])
    )
    for (const { occurredAt, payload } of events) {
      expect(Schema.is(schemaOf("statement.sealed") as Schema.Schema<unknown>, { onExcessProperty: "error" })(payload)).toBe(true)
      const { date, hash, previousHash, revision, sealedAt } = (await get(id, `/${payload.data.statement["date"]}`)).json
      expect(payload.data).toEqual({ vaultId: id, statement: { date, revision, hash, previousHash, sealedAt }, because: null })
      expect(occurredAt).toBe(sealedAt)
    }
    await seal()
    expect(await announced(id)).toHaveLength(5)
  })

  test("is revised for the transactions and balances that changed it, and says which", async () => {
    const id = await fresh()
    await app.feed([
      balance(id, ETH, "10", timeOf(-4, "12:00:00.000")),
      balance(id, ETH, "20", timeOf(-2, "12:00:00.000")),
      transaction(id, 1, { timestamp: timeOf(-3, "12:00:00.000") }),
      transaction(id, 2, { timestamp: timeOf(-3, "13:00:00.000"), status: "pending" })
    ])
    await seal()
    const because = (transactionIds: ReadonlyArray<string>, assets: ReadonlyArray<string> = []) => ({ transactionIds, assets, more: 0 })
    const of = (number: number) => transactionId(id, number)

    // One is late, one leaves the day for another, a third changes nothing that a statement counts.
    await app.feed([
      transaction(id, 3, { timestamp: timeOf(-1, "01:00:00.000") }),
      transaction(id, 1, { timestamp: timeOf(-4, "12:00:00.000") }),
      transaction(id, 2, { timestamp: timeOf(-3, "13:00:00.000"), status: "dropped" })
    ])
    await seal()
    expect(await revisions(id, 5)).toEqual([
      ["statement.revised", dayOf(-4), because([of(1)])],
      ["statement.revised", dayOf(-3), because([of(1)])],
      ["statement.revised", dayOf(-1), because([of(3)])]
    ])
    expect((await list(id)).map(({ revision }: { revision: number }) => revision)).toEqual([2, 1, 2, 2, 1])

    // A balance changes its day and those until the next one; another asset's stays as it is.
    await app.feed([balance(id, ETH, "11", timeOf(-4, "18:00:00.000")), balance(id, BIG, "1", timeOf(-5, "18:00:00.000"))])
    await seal()
    expect((await revisions(id, 8)).map(([, date, why]) => [date, (why as { assets: unknown }).assets])).toEqual([
      [dayOf(-5), [BIG]],
      [dayOf(-4), [BIG, ETH].sort()],
      [dayOf(-3), [BIG, ETH].sort()],
      [dayOf(-2), [BIG, ETH].sort()],
      [dayOf(-1), [BIG]]
    ])
    expect(await app.sql("SELECT 1 FROM statement_changes WHERE vault_id = $1", [id])).toEqual([])

    // A correction that ends where it began changes no statement.
    const before = (await announced(id)).length
    await app.feed([transaction(id, 3, { timestamp: timeOf(-1, "01:00:00.000"), amount: "5" })])
    await app.feed([transaction(id, 3, { timestamp: timeOf(-1, "01:00:00.000") })])
    await seal()
    expect(await announced(id)).toHaveLength(before)
  })

  test("names twenty causes and counts the others, and a record before the chain", async () => {
    const id = await fresh()
    await seal()
    const late = Array.from({ length: 30 }, (_, number) => transaction(id, 100 + number, { timestamp: timeOf(-2, "01:00:00.000") }))
    await app.feed([...late, balance(id, ETH, "3", "2020-01-01T00:00:00.000Z")])
    await seal()
    const [first, ...others] = await revisions(id, 5)
    expect([first, others.length]).toEqual([["statement.revised", dayOf(-5), { transactionIds: [], assets: [ETH], more: 0 }], 4])
    const named = (others.find(([, date]) => date === dayOf(-2))?.[2] ?? null) as Announced["payload"]["data"]["because"]
    expect([named?.transactionIds.length, named?.assets, named?.more]).toEqual([20, [], 11])
    const ids = new Set(late.map((one) => Id.ofKey("tx", "ethereum", String(one["hash"]), "0", id, "inbound")))
    expect(named?.transactionIds.every((one) => ids.has(one))).toBe(true)
  })
})
