/** What a record of a known transaction changes, and how that is told: corrections, statuses, old news, optional fields. C-9. */
import { beforeAll, describe, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import type { Record } from "../../support/app.ts"
import { ALICE, asset, BOB, hash, network, smallest, transaction, user, vault } from "../../support/records.ts"

const TOKEN = "ethereum/erc20:0xdac17f958d2ee523a2206206994597c13d831ec7"
const statuses = ["pending", "confirmed", "failed", "replaced", "dropped"]
const app = useApi()
let key = ""
let last = 0
/** A hash that no other test uses. */
const fresh = () => ++last

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    asset(TOKEN, { decimals: 6, symbol: "USDT" }),
    network("bitcoin"),
    asset("bitcoin/native", { decimals: 8 }),
    user("user_a", "org_a", ["vault_a"], { organizationRole: "owner" })
  ])
  key = (await app.key("user_a")).secret
})

/** Feeds records as one batch and returns its answer with the events that it caused, in order. */
const fed = async (...records: ReadonlyArray<Record>) => {
  const [{ newest } = {}] = await app.sql("SELECT coalesce(max(id), '') AS newest FROM events")
  const answer = await app.records(records)
  const rows = await app.sql("SELECT payload FROM events WHERE id > $1 ORDER BY id", [newest])
  const events = rows.map(({ payload }) => JSON.parse(String(payload)))
  return { answer: answer.json, status: answer.status, events, kinds: events.map(({ kind }) => kind.replace("transaction.", "")) }
}
const refused = async (record: Record) => {
  const { answer, status } = await fed(record)
  expect(status).toBe(400)
  return answer.errors.map(({ field, reason }: { field: string; reason: string }) => `${field}: ${reason}`)
}
const rowsOf = async (number: number) => (await app.get(`/v1/vaults/vault_a/transactions?hash=${hash(number)}`, key)).json.data
/** The only transaction of a hash with its history. */
const detailOf = async (number: number) => {
  const [row] = await rowsOf(number)
  const { json } = await app.get(`/v1/vaults/vault_a/transactions/${row.id}`, key)
  const { history, historyTruncated: _, ...rest } = json
  expect(rest).toEqual(row)
  return { row, history }
}
const at = (second: number) => new Date(Date.UTC(2024, 5, 1, 12, 0, second)).toISOString()
const ahead = (millis: number) => new Date(Date.now() + millis).toISOString()

describe("a confirmed transaction that is corrected", () => {
  test("tells each corrected field with its value before, and keeps both in its history", async () => {
    for (const [correction, previous] of [
      [{ amount: "2" }, { amount: "1" }],
      [{ asset: TOKEN }, { asset: "ethereum/native" }],
      [{ from: BOB }, { from: ALICE }],
      [{ to: ALICE }, { to: BOB }],
      [{ timestamp: "2024-06-01T12:00:05.250Z" }, { timestamp: "2024-06-01T12:00:00.000Z" }],
      [
        { amount: "3", memo: "7" },
        { amount: "1", memo: null }
      ]
    ]) {
      const number = fresh()
      const first = await fed(transaction("vault_a", number))
      expect(first.events.map(({ data }) => data.previous)).toEqual([null])
      const { answer, events, kinds } = await fed(transaction("vault_a", number, correction))
      expect([correction, kinds, answer.changed, answer.events]).toEqual([correction, ["updated"], 1, 1])
      const { history, row } = await detailOf(number)
      expect(row).toMatchObject({ status: "confirmed", ...correction })
      expect(events[0].data).toEqual({ vaultId: "vault_a", transaction: row, previous })
      expect(history).toHaveLength(2)
      expect(history).toMatchObject([previous, correction])
      expect(history.map(({ eventIds }: { eventIds: unknown }) => eventIds)).toEqual([[first.events[0].id], [events[0].id]])
      expect(history.map(({ occurredAt }: { occurredAt: string }) => occurredAt)).toEqual([first.events[0].date, events[0].date])
      // Every field of a state is in the row, and the last state is the row.
      const { eventIds: _ids, occurredAt: _occurred, recordedAt, ...state } = history[1]
      expect({ ...row, ...state, updatedAt: recordedAt }).toEqual(row)
    }
  })

  test("two outputs of one hash with equal fields are two transactions with two ids", async () => {
    const number = fresh()
    await fed(transaction("vault_a", number), transaction("vault_a", number, { index: 1 }))
    const rows = await rowsOf(number)
    expect(rows).toHaveLength(2)
    expect(rows[0].id).not.toBe(rows[1].id)
    expect({ ...rows[0], id: "" }).toEqual({ ...rows[1], id: "" })
    const { events } = await fed(transaction("vault_a", number, { index: 1, amount: "2" }))
    const changed = (await rowsOf(number)).filter(({ amount }: { amount: string }) => amount === "2")
    expect(changed.map(({ id }: { id: string }) => id)).toEqual([events[0].data.transaction.id])
  })

  test("changes of one object get rising dates that are kept for its organization", async () => {
    const number = fresh()
    const { events } = await fed(
      ...Array.from({ length: 500 }, (_, index) => transaction("vault_a", number, { amount: String(index + 1) }))
    )
    const dates = events.map(({ date }) => date)
    expect(dates).toEqual([...new Set(dates)].sort())
    const kept = await app.sql("SELECT organization_id FROM event_dates WHERE object LIKE 'transaction %'")
    expect(kept.length).toBeGreaterThan(0)
    expect(kept).toEqual(kept.map(() => ({ organization_id: "org_a" })))
  })
})

describe("the status of a transaction", () => {
  /** The events of each change from a status; everything else leaves nothing but the new status's own. */
  const fromConfirmed: { readonly [to: string]: ReadonlyArray<string> } = {
    pending: ["reorged"],
    failed: ["reorged", "failed"],
    replaced: ["reorged", "replaced"],
    dropped: ["reorged", "dropped"]
  }

  test("may be any at first, and any may follow any other, each with its events", async () => {
    for (const from of statuses) {
      for (const to of statuses) {
        for (const fields of [{}, { amount: "2" }]) {
          const number = fresh()
          const first = await fed(transaction("vault_a", number, { status: from }))
          expect([from, first.kinds]).toEqual([from, [from]])
          const { answer, events, kinds } = await fed(transaction("vault_a", number, { status: to, ...fields }))
          const corrected = "amount" in fields
          const expected = from === to ? (corrected ? ["updated"] : []) : from === "confirmed" ? fromConfirmed[to] : [to]
          expect([from, to, fields, kinds, answer.changed]).toEqual([from, to, fields, expected, expected?.length === 0 ? 0 : 1])
          const { history, row } = await detailOf(number)
          const previous = { ...(from === to ? {} : { status: from }), ...(corrected ? { amount: "1" } : {}) }
          for (const { data } of events) expect(data).toEqual({ vaultId: "vault_a", transaction: row, previous })
          expect(row).toMatchObject({ status: to, ...fields })
          // One change is one state, also if two events tell it.
          expect(history.slice(1).map(({ eventIds }: { eventIds: unknown }) => eventIds)).toEqual(
            events.length === 0 ? [] : [events.map(({ id }) => id)]
          )
          expect(new Set(events.map(({ date }) => date)).size).toBe(Math.min(1, events.length))
        }
      }
    }
  })
})

describe("old news", () => {
  test("is stale and changes nothing, unless it says what the row already says", async () => {
    const number = fresh()
    const record = (status: string, second: number, more = {}) => ({
      ...transaction("vault_a", number, { status, ...more }),
      occurredAt: at(second)
    })
    await fed(record("confirmed", 10))
    const before = await detailOf(number)
    // An equal record changes nothing, whatever its time: not even when later news counts as old.
    expect((await fed(record("confirmed", 5))).answer).toMatchObject({ unchanged: 1, stale: 0 })
    expect((await fed(record("confirmed", 30))).answer).toMatchObject({ unchanged: 1, stale: 0 })
    const { answer, events } = await fed(record("confirmed", 8), record("pending", 9), record("confirmed", 9, { memo: "late" }))
    expect(answer).toEqual({ received: 3, changed: 0, unchanged: 1, stale: 2, staleLines: [2, 3], events: 0 })
    expect(events).toEqual([])
    expect(await detailOf(number)).toEqual(before)
    expect((await fed(record("pending", 10))).kinds).toEqual(["reorged"])
    expect((await fed(record("confirmed", 20))).kinds).toEqual(["confirmed"])
  })

  test("is counted in full, and its first hundred lines are named", async () => {
    const number = fresh()
    const old = Array.from({ length: 120 }, () => ({ ...transaction("vault_a", number, { status: "pending" }), occurredAt: at(0) }))
    const { answer } = await fed(transaction("vault_a", number), ...old)
    expect(answer).toMatchObject({ received: 121, changed: 1, unchanged: 0, stale: 120, events: 1 })
    expect(answer.staleLines).toEqual(Array.from({ length: 100 }, (_, index) => index + 2))
  })

  test("that ends a pending transaction applies a millisecond after its last change", async () => {
    for (const status of statuses.slice(1)) {
      const number = fresh()
      const record = (fields: { readonly [name: string]: unknown }, second: number) => ({
        ...transaction("vault_a", number, fields),
        occurredAt: at(second)
      })
      await fed(record({ status: "pending" }, 10))
      expect((await fed(record({ status: "pending", amount: "2" }, 9))).answer).toMatchObject({ changed: 0, stale: 1 })
      const { events, kinds } = await fed(record({ status, amount: "3" }, 4))
      const date = at(10).replace(".000Z", ".001Z")
      expect([status, kinds, events.map((event) => event.date)]).toEqual([status, [status], [date]])
      const { history, row } = await detailOf(number)
      expect(row).toMatchObject({ status, amount: "3" })
      expect(history.map(({ occurredAt }: { occurredAt: string }) => occurredAt)).toEqual([at(10), date])
    }
  })

  test("from before a re-org confirms nothing again, also in later batches", async () => {
    const number = fresh()
    const record = (status: string, second: number) => ({ ...transaction("vault_a", number, { status }), occurredAt: at(second) })
    const [confirmed, reorged] = [record("confirmed", 5), record("pending", 9)]
    expect((await fed(confirmed, reorged)).kinds).toEqual(["confirmed", "reorged"])
    for (const repeated of [[confirmed, reorged], [confirmed], [reorged]]) expect((await fed(...repeated)).events).toEqual([])
    // The pending row has more than one state, and one of them was confirmed.
    expect((await fed(record("pending", 10), { ...record("pending", 10), memo: "seen again" })).kinds).toEqual(["updated"])
    expect((await fed(confirmed)).answer).toMatchObject({ changed: 0, stale: 1 })
    expect((await fed(record("confirmed", 11))).kinds).toEqual(["confirmed"])
  })

  test("of a vault is stale as well, and of a user applies", async () => {
    const of = (second: number, label: string) => ({ ...vault("vault_t", "entity_a", { label }), occurredAt: at(second) })
    expect((await fed(of(10, "new"))).events).toHaveLength(1)
    expect((await fed(of(9, "old"), of(8, "new"))).answer).toMatchObject({ changed: 0, unchanged: 1, stale: 1, staleLines: [1] })
    const person = (status: string, second: number) => ({ ...user("user_t", "org_a", ["vault_t"], { status }), occurredAt: at(second) })
    await fed(person("active", 10))
    const key = (await app.key("user_t")).secret
    expect((await app.get("/v1/vaults/vault_t", key)).json.label).toBe("new")
    expect((await fed(person("deactivated", 5))).answer).toMatchObject({ changed: 1, stale: 0 })
    expect((await app.get("/v1/vaults/vault_t", key)).status).toBe(401)
  })
})

describe("news from the future", () => {
  test("is refused, and what is only a little ahead counts as now", async () => {
    const number = fresh()
    const late = { ...transaction("vault_a", number), occurredAt: ahead(310_000) }
    expect(await refused(late)).toEqual(["occurredAt: is more than 5 minutes ahead of the service's clock"])
    expect(await refused({ ...vault("vault_x", "entity_a"), occurredAt: ahead(310_000) })).toHaveLength(1)
    expect(await refused(transaction("vault_a", number, { timestamp: ahead(7_300_000) }))).toEqual([
      "timestamp: is more than 2 hours ahead of the service's clock"
    ])
    const before = new Date().toISOString()
    for (const [amount, occurredAt] of [
      ["1", ahead(2_000)],
      ["2", ahead(290_000)],
      ["3", undefined]
    ] as const) {
      const record = transaction("vault_a", number, { amount, timestamp: ahead(7_000_000) })
      const { answer, events } = await fed({ ...record, ...(occurredAt === undefined ? {} : { occurredAt }) })
      expect([amount, answer.changed, answer.stale]).toEqual([amount, 1, 0])
      expect([events[0].date >= before, events[0].date <= new Date().toISOString()]).toEqual([true, true])
    }
    const { history } = await detailOf(number)
    const times = history.map(({ occurredAt }: { occurredAt: string }) => occurredAt)
    expect(times).toEqual([...new Set(times)].sort())
  })
})

describe("optional fields of a transaction", () => {
  const all = {
    fee: { asset: "ethereum/native", amount: "0.0210" },
    blockNumber: "19505152",
    blockHash: "0xb10c",
    memo: "104721",
    externalId: "wd-20394"
  }
  const stored = { ...all, fee: { asset: "ethereum/native", amount: "0.021" } }

  test("keep their values when they are absent, and null clears them", async () => {
    const number = fresh()
    expect((await fed(transaction("vault_a", number, all))).events[0].data.transaction).toMatchObject(stored)
    expect((await fed(transaction("vault_a", number), transaction("vault_a", number, stored))).answer).toMatchObject({ unchanged: 2 })
    expect((await fed(transaction("vault_a", number, { amount: "2" }))).events[0].data.previous).toEqual({ amount: "1" })
    const left: { [name: string]: unknown } = { ...stored }
    for (const name of Object.keys(all) as ReadonlyArray<keyof typeof all>) {
      const { events, kinds } = await fed(transaction("vault_a", number, { amount: "2", [name]: null }))
      expect([name, kinds, events[0].data.previous]).toEqual([name, ["updated"], { [name]: stored[name] }])
      left[name] = null
      expect((await rowsOf(number))[0]).toMatchObject(left)
    }
    const { events } = await fed(transaction("vault_a", number, { amount: "2", fee: { asset: TOKEN, amount: "5.000000" } }))
    expect(events[0].data).toMatchObject({ previous: { fee: null }, transaction: { fee: { asset: TOKEN, amount: "5" } } })
    expect((await detailOf(number)).history).toHaveLength(8)
  })

  test("are checked like the other fields", async () => {
    const number = fresh()
    const fee = (assetId: string, amount: string) => ({ fee: { asset: assetId, amount } })
    for (const [fields, fault] of [
      [fee(TOKEN, "0.0000001"), "fee.amount: has more fraction digits than the asset's 6 decimals"],
      [fee("ethereum/erc20:0x9", "1"), "fee.asset: refers to ethereum/erc20:0x9, which was not recorded before"],
      [fee("bitcoin/native", "1"), "fee.asset: is not an asset of ethereum"],
      [{ fee: { asset: TOKEN } }, "fee.amount: is missing"],
      [fee(TOKEN, "-1"), "fee.amount: must"],
      [{ blockNumber: 5 }, "blockNumber: must"],
      [{ blockNumber: "0x10" }, "blockNumber: must"],
      [{ blockNumber: "010" }, "blockNumber: must"],
      [{ blockHash: "" }, "blockHash: must"],
      [{ memo: "m".repeat(257) }, "memo: must"],
      [{ externalId: "e".repeat(129) }, "externalId: must"]
    ] as const) {
      const found = await refused(transaction("vault_a", number, fields))
      expect([fields, found.length, found[0].slice(0, fault.length)]).toEqual([fields, 1, fault])
    }
    expect(await rowsOf(number)).toEqual([])
    const longest = { memo: "m".repeat(256), externalId: "e".repeat(128), blockNumber: "9".repeat(39) }
    expect((await fed(transaction("vault_a", number, longest))).events[0].data.transaction).toMatchObject(longest)
  })
})
