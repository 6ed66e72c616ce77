/** `GET /v1/vaults/{vaultId}/transactions/{transactionId}`: the states that a transaction has had, whoever recorded them. C-9. */
import { beforeAll, describe, expect, test } from "bun:test"
import fc from "fast-check"
import { useApi } from "../../support/api.ts"
import type { App, Record } from "../../support/app.ts"
import { hash, smallest, transaction, user, vault } from "../../support/records.ts"

const app = useApi(),
  other = useApi()
let key = "",
  limited = ""

beforeAll(async () => {
  for (const one of [app, other])
    await one.feed([
      ...smallest(),
      vault("vault_b", "entity_a"),
      user("user_a", "org_a", ["vault_a", "vault_b"], { organizationRole: "owner" }),
      user("user_b", "org_a", ["vault_b"])
    ])
  key = (await app.key("user_a")).secret
  limited = (await app.key("user_b")).secret
})

const idOf = async (number: number, from: App = app, secret = key): Promise<string> =>
  (await from.get(`/v1/vaults/vault_a/transactions?hash=${hash(number)}`, secret)).json.data[0].id
const detail = (id: string, vaultId = "vault_a", secret = key) => app.get(`/v1/vaults/${vaultId}/transactions/${id}`, secret)
interface State {
  readonly amount: string
  readonly eventIds: ReadonlyArray<string>
  readonly occurredAt: string
  readonly recordedAt: string
  readonly status: string
}

describe("one transaction", () => {
  test("has its states oldest first, with events that the log has", async () => {
    for (const status of ["pending", "confirmed", "failed"]) await app.feed([transaction("vault_a", 1, { status })])
    await app.feed([transaction("vault_a", 1, { status: "failed", memo: "reverted" })])
    const id = await idOf(1)
    const { json } = await detail(id)
    expect(Object.keys(json).slice(-3)).toEqual(["updatedAt", "history", "historyTruncated"])
    expect(Object.keys(json.history[0])).toEqual(
      "status,asset,amount,from,to,timestamp,fee,blockNumber,blockHash,memo,externalId,occurredAt,recordedAt,eventIds".split(",")
    )
    const told: Array<unknown> = []
    for (const { eventIds, occurredAt, status } of json.history as ReadonlyArray<State>) {
      for (const eventId of eventIds) {
        const event = (await app.get(`/v1/webhook-events/${eventId}`, key)).json
        expect([event.payload.id, event.payload.date]).toEqual([eventId, occurredAt])
        expect(event.payload.data.transaction).toMatchObject({ id, status })
        told.push([status, event.kind])
      }
    }
    expect(told).toEqual([
      ["pending", "transaction.pending"],
      ["confirmed", "transaction.confirmed"],
      ["failed", "transaction.reorged"],
      ["failed", "transaction.failed"],
      ["failed", "transaction.updated"]
    ])
    expect([json.status, json.memo, json.historyTruncated]).toEqual(["failed", "reverted", false])
  })

  test("is 404 under another vault, when its vault is hidden, and for garbage", async () => {
    await app.feed([transaction("vault_a", 2)])
    const id = await idOf(2)
    expect((await detail(id)).status).toBe(200)
    expect((await detail(id, "vault_b")).status).toBe(404)
    expect((await detail(id, "vault_a", limited)).status).toBe(404)
    expect((await detail(id, "vault_b", limited)).status).toBe(404)
    for (const text of ["tx_", "tx_zzzzzzzzzzzzzzzzzzzzzzzzzz", id.toUpperCase(), id.replace("tx_", "evt_"), hash(2), "%00", `${id}0`, "1"])
      expect([text, (await detail(text)).status]).toEqual([text, 404])
  })

  test("keeps its newest 1,000 states in the answer and says when there were more", async () => {
    const amounts = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, index) => transaction("vault_a", 3, { amount: String(from + index) }))
    await app.feed(amounts(1, 1_000))
    const id = await idOf(3)
    const told = async () => {
      const { history, historyTruncated } = (await detail(id)).json
      return [history.map(({ amount }: State) => Number(amount)), historyTruncated]
    }
    const upTo = (last: number) => Array.from({ length: 1_000 }, (_, index) => last - 999 + index)
    expect(await told()).toEqual([upTo(1_000), false])
    await app.feed(amounts(1_001, 1_001))
    expect(await told()).toEqual([upTo(1_001), true])
  })

  test("has no event ids for changes that were recorded without events", async () => {
    await app.feed([transaction("vault_a", 4, { status: "pending" }), transaction("vault_a", 4)], { "x-record-events": "none" })
    await app.feed([transaction("vault_a", 4, { amount: "2" })])
    const { history } = (await detail(await idOf(4))).json
    expect(history.map(({ eventIds, status }: State) => [status, eventIds.length])).toEqual([
      ["pending", 0],
      ["confirmed", 0],
      ["confirmed", 1]
    ])
  })

  test("has the same id in every database", async () => {
    const there = (await other.key("user_a")).secret
    for (const [number, records] of [
      [5, [transaction("vault_a", 5)]],
      [6, [transaction("vault_a", 6, { status: "pending", amount: "7" })]]
    ] as const) {
      await app.feed(records)
      await other.feed([transaction("vault_b", 50 + number), ...records])
      const [here, elsewhere] = [await idOf(number), await idOf(number, other, there)]
      expect(here).toBe(elsewhere)
    }
  })
})

describe("any sequence of records", () => {
  const past = ["2024-01-01T00:00:00.000Z", "2024-01-02T00:00:00.000Z", "2024-01-02T00:00:00.001Z", "2024-01-03T00:00:00.000Z"]
  const change = fc.record({
    index: fc.constantFrom(0, 0, 1),
    status: fc.constantFrom("pending", "pending", "confirmed", "failed", "replaced", "dropped"),
    amount: fc.constantFrom("1", "1", "2"),
    memo: fc.constantFrom(undefined, undefined, null, "m"),
    occurredAt: fc.constantFrom(undefined, ...past)
  })
  let number = 1_000

  test("gives the same rows, histories and counts fed at once or one by one", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 12 }), async (changes) => {
        const started = new Date().toISOString()
        const recordsOf = (of: number): ReadonlyArray<Record> =>
          changes.map(({ memo, occurredAt, ...fields }) => ({
            ...transaction("vault_a", of, fields),
            ...(memo === undefined ? {} : { memo }),
            ...(occurredAt === undefined ? {} : { occurredAt })
          }))
        const [atOnce, oneByOne] = [++number, ++number]
        const counts = await app.feed(recordsOf(atOnce))
        const sum = { received: 0, changed: 0, unchanged: 0, stale: 0, events: 0 }
        for (const record of recordsOf(oneByOne)) {
          const one = await app.feed([record])
          for (const name of ["received", "changed", "unchanged", "stale", "events"] as const) sum[name] += one[name]
        }
        expect(counts).toEqual(sum)
        /** The transactions of a hash without what depends on the time of recording. */
        const seen = async (of: number) => {
          const rows = (await app.get(`/v1/vaults/vault_a/transactions?hash=${hash(of)}`, key)).json.data
          const found: Array<unknown> = []
          for (const { id } of rows) {
            const { hash: _hash, history, id: _id, updatedAt: _updated, ...rest } = (await detail(id)).json
            const states = history.map(({ eventIds, occurredAt, recordedAt: _recorded, ...state }: State) => ({
              ...state,
              events: eventIds.length,
              occurredAt: occurredAt < started ? occurredAt : "when it was recorded"
            }))
            const times = history.map(({ occurredAt }: State) => occurredAt)
            expect(times).toEqual([...times].sort())
            found.push({ ...rest, states })
          }
          return found.map((one) => JSON.stringify(one)).sort()
        }
        expect(await seen(atOnce)).toEqual(await seen(oneByOne))
      }),
      { numRuns: 60, endOnFailure: true }
    )
  })
})
