/** A platform whose clock is ahead of Postgres': its records keep the order of their times, and none is shown in the future. C-9. */
import { beforeAll, describe, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import type { Record } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { balance, hash, smallest, transaction, user, vault } from "../../support/records.ts"

const ETH = "ethereum/native"
const app = useApi()
let key = ""
let last = 0

beforeAll(async () => {
  await app.feed([...smallest(), user("user_a", "org_a", ["vault_a"], { organizationRole: "owner" })])
  key = (await app.key("user_a")).secret
})

/** A vault that no other test uses. */
const fresh = async () => {
  const id = `vault_clock${++last}`
  const vaults = ["vault_a", ...Array.from({ length: last }, (_, index) => `vault_clock${index + 1}`)]
  await app.feed([vault(id, "entity_a"), user("user_a", "org_a", vaults, { organizationRole: "owner" })])
  return id
}
const at = (record: Record, time: number): Record => ({ ...record, occurredAt: new Date(time).toISOString() })
/** What each record did, fed one by one. */
const fed = async (...records: ReadonlyArray<Record>) => {
  const done: Array<string> = []
  for (const record of records) {
    const { changed, stale } = (await app.records([record])).json
    done.push(changed === 1 ? "changed" : stale === 1 ? "stale" : "unchanged")
  }
  return done
}
const eventsOf = async (vaultId: string) => {
  const rows = await app.sql("SELECT kind, payload FROM events WHERE vault_id = $1 ORDER BY id", [vaultId])
  return rows.map(({ kind, payload }) => ({ kind: String(kind), date: String(JSON.parse(String(payload)).date) }))
}
const kindsOf = async (vaultId: string) => (await eventsOf(vaultId)).map(({ kind }) => kind)
const list = (vaultId: string, path: string) => app.walk(`/v1/vaults/${vaultId}/${path}`, key)
const detailOf = async (vaultId: string) => {
  const [{ id = "" } = {}] = await list(vaultId, "transactions")
  return (await app.get(`/v1/vaults/${vaultId}/transactions/${id}`, key)).json
}
/** Times in the order in which they are expected to be, none of them in the future. */
const expectPast = (times: ReadonlyArray<string>) => {
  expect(times).toEqual(times.toSorted())
  for (const time of times) expect(time <= new Date().toISOString()).toBe(true)
}

for (const seconds of [2, 240]) {
  describe(`a platform that is ${seconds} s ahead`, () => {
    const base = () => Date.now() + seconds * 1_000

    test("undoes no transaction with a record that comes late or again", async () => {
      const id = await fresh()
      const start = base()
      const of = (status: string, millis: number) => at(transaction(id, last, { status }), start + millis)
      const [pending, confirmed] = [of("pending", 0), of("confirmed", 1_000)]
      expect(await fed(pending, confirmed, pending, confirmed)).toEqual(["changed", "changed", "stale", "unchanged"])
      expect((await app.records([pending, confirmed, pending])).json).toMatchObject({ unchanged: 1, staleLines: [1, 3] })
      const kinds = ["vault.created", "transaction.pending", "transaction.confirmed"]
      expect(await kindsOf(id)).toEqual(kinds)
      // It stays so when its time has passed.
      if (seconds === 2) await until("the time of the records", async () => Date.now() > start + 1_000)
      expect(await fed(pending, confirmed)).toEqual(["stale", "unchanged"])
      expect(await fed(of("failed", 999), of("failed", 1_001), of("confirmed", 1_000))).toEqual(["stale", "changed", "stale"])
      expect(await kindsOf(id)).toEqual([...kinds, "transaction.reorged", "transaction.failed"])
      const { history, status } = await detailOf(id)
      expect(status).toBe("failed")
      expect(history.map((state: { status: string }) => state.status)).toEqual(["pending", "confirmed", "failed"])
      if (seconds === 240) {
        expectPast(history.map((state: { occurredAt: string }) => state.occurredAt))
        expectPast((await eventsOf(id)).map(({ date }) => date))
      }
      expect(history.map((state: { occurredAt: string }) => state.occurredAt)).toEqual(
        (await eventsOf(id)).filter(({ kind }) => !/vault|reorged/.test(kind)).map(({ date }) => date)
      )
    })

    test("replaces no balance with an earlier one", async () => {
      const id = await fresh()
      const start = base()
      const of = (amount: string, millis: number) => at(balance(id, ETH, amount), start + millis)
      expect(await fed(of("200.5", 1_000))).toEqual(["changed"])
      if (seconds === 240) expect(await fed(of("100.5", 0), of("200.5", 1_000))).toEqual(["stale", "unchanged"])
      else await fed(of("100.5", 0))
      const present = async () => (await list(id, "balances")).map(({ amount, asOf }) => [amount, asOf])
      const now = await present()
      expect(now.map(([amount]) => amount)).toEqual(["200.5"])
      expectPast(now.map(([, asOf]) => String(asOf)))
      const instant = `balances?at=${encodeURIComponent(new Date().toISOString())}`
      expect((await list(id, instant)).map(({ amount, asOf }) => [amount, asOf])).toEqual(now)
      expect((await list(id, `balance-history?asset=${encodeURIComponent(ETH)}`))[0]).toMatchObject({ amount: "200.5", asOf: now[0]?.[1] })
      // Of one batch as well, of which the second is the newest.
      const batch = [of("1", 2_000), of("300", 3_000), of("2", 2_500)]
      expect((await app.records(batch)).json).toMatchObject({ changed: 2, staleLines: [3] })
      expect((await present()).map(([amount]) => amount)).toEqual(["300"])
      // What came before everything changes the past only, and what comes after is the present.
      expect(await fed(at(balance(id, ETH, "7"), Date.now() - 3_600_000), of("400", 3_001))).toEqual(["changed", "changed"])
      expect((await present()).map(([amount]) => amount)).toEqual(["400"])
      const hourAgo = `balances?at=${encodeURIComponent(new Date(Date.now() - 1_800_000).toISOString())}`
      expect((await list(id, hourAgo)).map(({ amount }) => amount)).toEqual(["7"])
      expect(await kindsOf(id)).toEqual(["vault.created", ...["200.5", "1", "300", "400"].map(() => "balance.updated")])
    })
  })
}

test("a clock that is set right makes records old until it reaches the time before", async () => {
  const id = await fresh()
  const right = Date.now()
  const [tx, amount] = [(status: string) => transaction(id, last, { status }), (value: string) => balance(id, ETH, value)]
  await fed(
    at(tx("confirmed"), right + 240_000),
    at(amount("1"), right + 240_000),
    at(vault(id, "entity_a", { label: "a" }), right + 240_000)
  )
  expect(await fed(at(tx("pending"), right), at(amount("2"), Date.now()), at(vault(id, "entity_a", { label: "b" }), right))).toEqual([
    "stale",
    "stale",
    "stale"
  ])
  // A record without a time is the newest, and what the platform says later is newer.
  expect(await fed(tx("pending"), amount("3"), vault(id, "entity_a", { label: "c" }))).toEqual(["changed", "changed", "changed"])
  expect(await fed(at(tx("failed"), right + 240_500), at(amount("4"), right + 240_500))).toEqual(["changed", "changed"])
  expect(await fed(at(vault(id, "entity_a", { label: "d" }), right + 240_500))).toEqual(["changed"])
  expect((await detailOf(id)).status).toBe("failed")
  expect((await list(id, "balances")).map((row) => row.amount)).toEqual(["4"])
  expect((await app.get(`/v1/vaults/${id}`, key)).json.label).toBe("d")
  expectPast((await eventsOf(id)).map(({ date }) => date))
  expect(await list(id, `transactions?hash=${hash(last)}`)).toHaveLength(1)
})

test("a record without a time stays the newest when older ones come again", async () => {
  const id = await fresh()
  const ahead = Date.now() + 240_000
  const timed = [
    at(transaction(id, last, { status: "confirmed" }), ahead),
    at(balance(id, ETH, "1"), ahead),
    at(vault(id, "entity_a", { label: "a" }), ahead)
  ]
  await fed(...timed)
  await fed(transaction(id, last, { status: "failed" }), balance(id, ETH, "2"), vault(id, "entity_a", { label: "b" }))
  expect(await fed(...timed)).toEqual(["stale", "stale", "stale"])
  expect((await list(id, "balances")).map((row) => row.amount)).toEqual(["2"])
  expect((await app.get(`/v1/vaults/${id}`, key)).json.label).toBe("b")
})

test("a long history of an asset does not move its present into the future", async () => {
  const id = await fresh()
  const start = Date.now() - 3_600_000
  const history = Array.from({ length: 5_000 }, (_, number) => at(balance(id, ETH, String(number + 1)), start + number))
  for (let from = 0; from < history.length; from += 1_000)
    expect((await app.records(history.slice(from, from + 1_000))).json.changed).toBe(1_000)
  await fed(balance(id, ETH, "7000"))
  const [present] = await list(id, "balances")
  expect(present?.amount).toBe("7000")
  expectPast([String(present?.asOf)])
  expectPast([(await eventsOf(id)).at(-1)?.date ?? ""])
})

test("after the database's clock was ahead, records are dated by the clock as it is", async () => {
  const id = await fresh()
  // The newest event has an id of then.
  await app.sql("UPDATE event_streams SET clock = now() + interval '26 hours' WHERE organization_id = 'org_a'")
  const before = Date.now()
  expect(await fed(balance(id, ETH, "20"))).toEqual(["changed"])
  const [{ asOf = "" } = {}] = await list(id, "balances")
  expect(Math.abs(Date.parse(asOf) - before)).toBeLessThan(60_000)
  const later = Date.parse(asOf) + 1
  await until("a later time", () => Date.now() > later)
  expect(await fed(at(balance(id, ETH, "21"), later))).toEqual(["changed"])
  expect((await list(id, "balances")).map(({ amount }) => amount)).toEqual(["21"])
  const events = await eventsOf(id)
  expect(events.map(({ kind }) => kind)).toEqual(["vault.created", "balance.updated", "balance.updated"])
  expectPast(events.map(({ date }) => date))
  await app.sql("UPDATE event_streams SET clock = now() WHERE organization_id = 'org_a'")
})
