/** Cursors of the event feed after the database was restored from a backup, or an organization deleted and recorded again. C-9. */
import { beforeAll, expect, test } from "bun:test"
import { seal } from "../../../src/events/feed/cursor.ts"
import { sealing } from "../../../src/runtime/crypto/MasterKey.ts"
import * as Id from "../../../src/values/Id.ts"
import { useApi } from "../../support/api.ts"
import { until } from "../../support/receiver.ts"
import { smallest, transaction } from "../../support/records.ts"

const app = useApi()
const FEED = "/v1/event-feed"
let key = "",
  hashes = 0

beforeAll(async () => {
  await app.feed(smallest(), { "x-record-events": "none" })
  key = (await app.key("user_a")).secret
})

const record = (count: number) => app.feed(Array.from({ length: count }, () => transaction("vault_a", ++hashes)))
const read = (query: string) => app.get(`${FEED}?limit=500${query}`, key)
const cursorNow = async (): Promise<string> => (await read("&from=now")).json.resumeCursor

/** The log as a backup had it: without the events after a position. */
const restoreTo = async (position: number) => {
  await app.sql("DELETE FROM event_outbox WHERE position > $1", [position])
  await app.sql("DELETE FROM events WHERE position > $1", [position])
  await app.sql(
    "UPDATE event_streams SET position = $1, event_id = (SELECT id FROM events WHERE position = $1) WHERE organization_id = 'org_a'",
    [position]
  )
}
const position = async () => Number((await app.sql("SELECT position FROM event_streams WHERE organization_id = 'org_a'"))[0]?.["position"])

test("a cursor is gone where the log has another event at its place", async () => {
  await record(3)
  const before = await position()
  const kept = await cursorNow()
  await record(4)
  // The next event passes a midnight.
  await app.sql("UPDATE entity_chains SET sealed_until = date_trunc('day', now(), 'UTC') - interval '1 day'")
  await record(1)
  const inside = (await app.get(`${FEED}?limit=2&after=${kept}`, key)).json.resumeCursor
  const atEnd = await cursorNow()
  const [sealed] = (await app.get("/v1/event-checkpoints?entityId=entity_a", key)).json.data
  const latest = (await app.get("/v1/event-checkpoints/latest?entityId=entity_a", key)).json
  expect([sealed.count, latest.count]).toEqual([before + 4, before + 5])
  const later = [inside, atEnd, sealed.resumeCursor, latest.resumeCursor]
  await restoreTo(before)
  // Beyond the end of the restored log.
  for (const cursor of later) expect((await read(`&after=${cursor}`)).json).toMatchObject({ status: 410, code: "cursor_gone" })
  await record(7)
  for (const cursor of later) {
    const gone = await read(`&after=${cursor}`)
    expect(gone.json).toMatchObject({ status: 410, code: "cursor_gone" })
    expect((await app.get(`${FEED}/stream?after=${cursor}`, key)).status).toBe(410)
    const again = await read(`&after=${gone.json.oldestCursor}`)
    expect(again.json.data).toHaveLength(before + 7)
  }
  // A cursor from before the backup is still good, and misses nothing.
  expect((await read(`&after=${kept}`)).json.data).toHaveLength(7)
})

/** A stream as it arrives. */
const follow = async () => {
  const response = await app.send("api", `${FEED}/stream?from=now`, { headers: { authorization: `Bearer ${key}` } })
  const seen = { text: "" }
  const ended = (async () => {
    const decoder = new TextDecoder()
    for await (const part of response.body ?? []) seen.text += decoder.decode(part, { stream: true })
  })()
  const all = (pattern: RegExp) => seen.text.match(pattern) ?? []
  await until("the stream's first cursor", () => all(/^: at /gm).length > 0)
  return {
    ended,
    events: () => all(/^event: webhook-event$/gm).length,
    cursor: () =>
      all(/^: at \S+$/gm)
        .at(-1)
        ?.slice(5)
  }
}

for (const [title, lost, recorded] of [
  ["fewer", 5, 2],
  ["as many", 3, 3],
  ["more", 3, 6]
] as const)
  test(`open readers learn that the log was restored and has ${title} events now`, async () => {
    await record(2)
    const before = await position()
    const stream = await follow()
    await record(lost)
    await until("the stream's events", () => stream.events() === lost)
    const end = await cursorNow()
    const waiting = read(`&after=${end}&wait=30`)
    await restoreTo(before)
    await record(recorded)
    await stream.ended
    expect(stream.events()).toBe(lost)
    expect((await read(`&after=${stream.cursor()}`)).json).toMatchObject({ status: 410, code: "cursor_gone" })
    // It is told at once if it came after the restore.
    const { data = [], resumeCursor = end } = (await waiting).json
    expect(data).toEqual([])
    expect((await read(`&after=${resumeCursor}`)).json).toMatchObject({ status: 410, code: "cursor_gone" })
  })

test("a cursor at the end of an idle log stays valid", async () => {
  const end = await cursorNow()
  expect((await read(`&after=${end}`)).json).toMatchObject({ data: [] })
  // Retention removed every event; the stream keeps the id at its end.
  await app.sql("DELETE FROM events")
  expect((await read(`&after=${end}`)).status).toBe(200)
  const oldest = (await read("")).json.resumeCursor
  expect((await read(`&after=${oldest}`)).status).toBe(200)
})

test("a cursor stays valid when its event has left the log and new ones follow", async () => {
  await record(2)
  const master = sealing(Buffer.from(app.env["MASTER_KEY"] ?? "", "base64"), undefined)
  const old = Id.floor("evt", Date.now() - 40 * 86_400_000)
  // A reader of an idle log: its last event is 40 days old, and the reader asked a second ago.
  const cursor = seal(master, "org_a", { position: (await position()) - 2, at: Date.now() - 3_600_000, id: old })
  expect((await read(`&after=${cursor}`)).json.data).toHaveLength(2)
})

test("a cursor that was given while Postgres' clock was ahead misses no later event", async () => {
  await record(1)
  const master = sealing(Buffer.from(app.env["MASTER_KEY"] ?? "", "base64"), undefined)
  const [last] = await app.sql("SELECT position, event_id AS id FROM event_streams WHERE organization_id = 'org_a'")
  const place = { position: Number(last?.["position"]), at: Date.now() + 5 * 3_600_000, id: String(last?.["id"]) }
  await record(3)
  expect((await read(`&after=${seal(master, "org_a", place)}`)).json.data).toHaveLength(3)
})
