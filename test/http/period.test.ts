/** Periods of lists: periods that follow each other count every row once. C-10. */
import { beforeAll, expect, test } from "bun:test"
import { useApi } from "../support/api.ts"
import { codeOf } from "../support/problem.ts"
import { balance, smallest, transaction } from "../support/records.ts"

const app = useApi()
let key = ""

const days = [1, 2, 3].map((day) => `2024-01-0${day}T00:00:00.000Z`)
/** Every list with a period, and the field with the time of its rows. */
const lists = [
  ["/v1/vaults/vault_a/transactions?", "timestamp"],
  ["/v1/vaults/vault_a/balance-history?asset=ethereum/native&", "asOf"],
  ["/v1/webhook-events?kind=transaction.confirmed&", "occurredAt"]
] as const
const exported = "/v1/vaults/vault_a/transactions/export?format=ndjson&"

beforeAll(async () => {
  // One batch per day: an event's time is that of its record.
  await app.feed(smallest())
  for (const [number, occurredAt] of days.entries())
    await app.feed([
      transaction("vault_a", number, { timestamp: occurredAt, occurredAt }),
      { ...balance("vault_a", "ethereum/native", String(number)), occurredAt }
    ])
  key = (await app.key("user_a")).secret
})

test("occurredUntil excludes its own instant, occurredBefore includes it", async () => {
  for (const [list, time] of lists) {
    const all = (await app.walk(list.slice(0, -1), key)).map((row) => row[time])
    const [last = "", middle = "", first = ""] = all
    expect([list, all.length]).toEqual([list, 3])
    const times = async (period: string) => (await app.walk(`${list}${period}`, key)).map((row) => row[time])
    expect([list, await times(`occurredUntil=${middle}`)]).toEqual([list, [first]])
    expect([list, await times(`occurredBefore=${middle}`)]).toEqual([list, [middle, first]])
    expect([list, await times(`occurredAfter=${middle}&occurredUntil=${last}`)]).toEqual([list, [middle]])
    // A time between two milliseconds is after the first.
    expect([list, await times(`occurredUntil=${middle.replace("Z", "0001Z")}`)]).toEqual([list, [middle, first]])
  }
  expect((await app.get(`${exported}occurredAfter=${days[0]}&occurredUntil=${days[1]}`, key)).text.split("\n")).toEqual([
    expect.stringContaining(`"timestamp":"${days[0]}"`),
    ""
  ])
})

test("two ends of a period are rejected, naming the exclusive one", async () => {
  for (const list of [...lists.map(([list]) => list), exported]) {
    const answer = await app.get(`${list}occurredBefore=${days[0]}&occurredUntil=${days[1]}`, key)
    expect([list, codeOf(answer), answer.json.errors]).toEqual([
      list,
      "invalid_parameter",
      [{ in: "query", field: "occurredUntil", code: "invalid_parameter", detail: "must not be given together with occurredBefore" }]
    ])
  }
})
