/** What the feed reveals of events that a key may not see: that there were some, but never how many. C-1. */
import { beforeAll, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { until } from "../../support/receiver.ts"
import { asset, entity, network, organization, transaction, user, vault } from "../../support/records.ts"

const app = useApi()
const FEED = "/v1/event-feed"

/** Two organizations that differ only in what happens in a vault that the key cannot see. */
const worlds = { quiet: 0, busy: 40 }
const keys = { quiet: "", busy: "" }
type World = keyof typeof worlds
const names = ["quiet", "busy"] as const
const VISIBLE = 7

let counter = 0
const record = async (world: World, seen: number) => {
  const hidden = Array.from({ length: worlds[world] }, () => transaction(`vault_hidden_${world.slice(0, 4)}`, ++counter))
  const own = Array.from({ length: seen }, () => transaction(`vault_seen_${world.slice(0, 4)}`, ++counter))
  await app.feed([...hidden, ...own, ...hidden.map((one) => ({ ...one, hash: `0x${(++counter).toString(16).padStart(64, "0")}` }))])
}

beforeAll(async () => {
  await app.feed([network("ethereum"), asset("ethereum/native")])
  for (const world of names) {
    const id = world.slice(0, 4)
    await app.feed(
      [
        organization(`org_${id}`, ["ethereum"]),
        entity(`entity_${id}`, `org_${id}`),
        vault(`vault_seen_${id}`, `entity_${id}`),
        vault(`vault_hidden_${id}`, `entity_${id}`),
        user(`user_${id}`, `org_${id}`, [`vault_seen_${id}`])
      ],
      { "x-record-events": "none" }
    )
    keys[world] = (await app.key(`user_${id}`)).secret
  }
})

/** What a reader of the feed sees of responses besides their content: statuses, lengths, and whether there is more. */
const outside = async (world: World, query: string) => {
  const seen: Array<unknown> = []
  const read = async (more: string) => {
    const answer = await app.get(`${FEED}?${query}${more}`, keys[world])
    seen.push([answer.status, answer.text.length, answer.json.data.length, answer.json.pagination.nextCursor === null])
    return answer.json
  }
  let { resumeCursor } = await read("&from=now")
  for (let round = 0; round < 3; round++) {
    await record(world, round === 1 ? 0 : VISIBLE)
    for (let more = true; more; ) {
      const page = await read(`&after=${resumeCursor}`)
      resumeCursor = page.resumeCursor
      more = page.pagination.nextCursor !== null
    }
  }
  return seen
}

test("the pages, their number, their size and their bounds do not depend on others' events", async () => {
  for (const query of ["limit=3", "limit=7", "limit=100", "limit=2&kind=transaction.confirmed", "limit=2&kind=vault.created", "limit=1"]) {
    expect([query, await outside("busy", query)]).toEqual([query, await outside("quiet", query)])
  }
})

test("the number of pages of the whole log does not depend on others' events", async () => {
  const walk = async (world: World) => {
    const lengths: Array<number> = []
    for (let after = ""; ; ) {
      const { json, text } = await app.get(`${FEED}?limit=4${after}`, keys[world])
      lengths.push(text.length)
      if (json.pagination.nextCursor === null) return lengths
      after = `&after=${json.pagination.nextCursor}`
    }
  }
  expect(await walk("busy")).toEqual(await walk("quiet"))
})

test("the content and size of a stream do not depend on others' events", async () => {
  /** What a stream shows; undefined if it ended, as a busy service may do: its reader opens another one. */
  const once = async (world: World) => {
    const response = await app.send("api", `${FEED}/stream?from=now`, { headers: { authorization: `Bearer ${keys[world]}` } })
    const reader = response.body?.getReader()
    const decoder = new TextDecoder()
    let text = ""
    const shown = () =>
      text.split("\n").map((line) => line.replace(/^(: at|id:) \S+/, (place) => `${place.slice(0, 4)}${place.length}`).length)
    const read = async (isRead: () => boolean) => {
      while (!isRead()) {
        const next = await reader?.read()
        if (next === undefined || next.done) return false
        text += decoder.decode(next.value, { stream: true })
      }
      return true
    }
    if (!(await read(() => text.includes(": at")))) return undefined
    await record(world, VISIBLE)
    await record(world, 0)
    await record(world, 2)
    if (!(await read(() => text.split("event: webhook-event").length === VISIBLE + 3 && text.endsWith("\n\n")))) return undefined
    await reader?.cancel()
    return shown()
  }
  const streamed = (world: World) => until("a stream that does not end", () => once(world))
  expect(await streamed("busy")).toEqual(await streamed("quiet"))
})
