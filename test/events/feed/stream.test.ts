/** The event feed as server-sent events. C-1. */
import { beforeAll, expect, test } from "bun:test"
import { type Process, patiently, useApp } from "../../support/app.ts"
import { codeOf } from "../../support/problem.ts"
import { until } from "../../support/receiver.ts"
import { smallest, transaction, user, vault } from "../../support/records.ts"

const app = useApp()
const keys = { owner: "", one: "" }
const FEED = "/v1/event-feed"

beforeAll(async () => {
  await app.feed(
    [...smallest(), vault("vault_b", "entity_a"), user("user_owner", "org_a", ["vault_a", "vault_b"], { organizationRole: "owner" })],
    { "x-record-events": "none" }
  )
  keys.owner = (await app.key("user_owner")).secret
  keys.one = (await app.key("user_owner", { vaultIds: ["vault_b"] })).secret
})

let counter = 0
const record = async (...vaultIds: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const made = vaultIds.map((vaultId) => transaction(vaultId, ++counter))
  await app.feed(made)
  return made.map(({ hash }) => String(hash))
}
const now = async (key: string): Promise<string> => (await app.get(`${FEED}?from=now`, key)).json.resumeCursor

interface Message {
  readonly id: string
  readonly event: string
  readonly hash: string
}

/** A reader of a stream: its messages and comments as they arrive. */
class Reader {
  readonly messages: Array<Message> = []
  readonly comments: Array<string> = []
  status = 0
  type = ""
  ended = false
  readonly #abort = new AbortController()
  readonly done: Promise<void>

  constructor(query: string, key: string, headers: { readonly [name: string]: string } = {}, process: Process | undefined = app.main) {
    this.done = this.#read(`${process?.baseUrl}${FEED}/stream${query}`, {
      authorization: `Bearer ${key}`,
      accept: "text/event-stream",
      ...headers
    })
  }

  async #read(url: string, headers: { readonly [name: string]: string }) {
    try {
      // As a client does while the service is busy.
      const response = await patiently(() => fetch(url, { headers, signal: this.#abort.signal }))
      this.status = response.status
      this.type = response.headers.get("content-type") ?? ""
      const decoder = new TextDecoder()
      let text = ""
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk, { stream: true })
        const blocks = text.split("\n\n")
        text = blocks.pop() ?? ""
        for (const block of blocks) this.#take(block)
      }
    } catch {
      // One side or the other closed it.
    }
    this.ended = true
  }

  #take(block: string) {
    if (block.startsWith(":")) this.comments.push(block.slice(1).trim())
    else {
      const field = (name: string) =>
        block
          .split("\n")
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2) ?? ""
      this.messages.push({ id: field("id"), event: field("event"), hash: JSON.parse(field("data")).payload.data.transaction.hash })
    }
  }

  get hashes() {
    return this.messages.map(({ hash }) => hash)
  }

  open() {
    return until("the stream", () => this.comments.length > 0 || this.ended)
  }

  close() {
    this.#abort.abort()
    return this.done
  }
}

test("a stream sends events after its cursor and new ones that the key may see", async () => {
  const cursor = await now(keys.owner)
  const before = await record("vault_a", "vault_b")
  const all = new Reader(`?after=${cursor}`, keys.owner)
  const one = new Reader(`?after=${cursor}`, keys.one)
  const filtered = new Reader(`?after=${cursor}&vaultId=vault_a&kind=transaction.confirmed`, keys.owner)
  await until("what was recorded", () => all.messages.length === 2 && one.messages.length === 1 && filtered.messages.length === 1)
  const after = [...(await record("vault_b")), ...(await record("vault_a", "vault_b"))]
  await until("what is recorded", () => all.messages.length === 5 && one.messages.length === 3 && filtered.messages.length === 2)
  expect([all.status, all.type]).toEqual([200, "text/event-stream"])
  expect(all.hashes).toEqual([...before, ...after])
  expect(one.hashes).toEqual([before[1] ?? "", after[0] ?? "", after[2] ?? ""])
  expect(filtered.hashes).toEqual([before[0] ?? "", after[1] ?? ""])
  expect(new Set(all.messages.map(({ event }) => event))).toEqual(new Set(["webhook-event"]))
  // Last-Event-ID takes precedence over after, and after over from.
  const resumed = new Reader(`?from=now&after=${cursor}`, keys.owner, { "last-event-id": all.messages[1]?.id ?? "" })
  await until("the rest", () => resumed.messages.length === 3)
  expect(resumed.hashes).toEqual(after)
  await Promise.all([all.close(), one.close(), filtered.close(), resumed.close()])
})

test("a key has at most 5 streams, and closing one makes room for another", async () => {
  const { secret } = await app.key("user_owner")
  const readers = Array.from({ length: 5 }, () => new Reader("?from=now", secret))
  await Promise.all(readers.map((reader) => reader.open()))
  const refused = await app.get(`${FEED}/stream?from=now`, secret)
  expect([codeOf(refused), refused.headers.has("retry-after")]).toEqual(["too_many_streams", true])
  await readers[0]?.close()
  let more = new Reader("?from=now", secret)
  await until("room", async () => {
    await more.open()
    if (more.status === 200) return true
    more = new Reader("?from=now", secret)
    return false
  })
  await Promise.all([...readers, more].map((reader) => reader.close()))
})

test("at most 20 waiting requests of a key are held, and each end makes room", async () => {
  const { secret } = await app.key("user_owner")
  const ends = new AbortController()
  const wait = (signal?: AbortSignal) =>
    patiently(() =>
      fetch(`${app.main?.baseUrl}${FEED}?from=now&wait=20&kind=webhook.disabled`, {
        headers: { authorization: `Bearer ${secret}` },
        ...(signal === undefined ? {} : { signal })
      })
    ).then(
      ({ headers, status }) => ({ status, retryAfter: headers.get("retry-after") }),
      () => undefined
    )
  // Of twenty-one at once it is any of them that is refused.
  const held = Array.from({ length: 21 }, () => wait(ends.signal))
  expect(await Promise.race(held)).toEqual({ status: 429, retryAfter: "5" })
  expect(await wait()).toEqual({ status: 429, retryAfter: "5" })
  // Requests that do not wait are still answered, and so are another key's.
  expect((await app.get(`${FEED}?from=now`, secret)).status).toBe(200)
  expect((await app.get(`${FEED}?from=now&wait=1&kind=webhook.disabled`, keys.owner)).status).toBe(200)
  ends.abort()
  await Promise.all(held)
  await until("room", async () => (await app.get(`${FEED}?from=now&wait=1&kind=webhook.disabled`, secret)).status === 200)
})

test("a stream ends within 5 seconds after its key is revoked", async () => {
  await app.feed([user("user_two", "org_a", ["vault_a", "vault_b"])], { "x-record-events": "none" })
  const { key, secret } = await app.key("user_two")
  const reader = new Reader("?from=now", secret)
  await reader.open()
  await app.feed([user("user_two", "org_a", ["vault_b"])], { "x-record-events": "none" })
  const [, second] = await record("vault_a", "vault_b")
  await until("the event that is seen", () => reader.messages.length > 0)
  expect(reader.hashes).toEqual([second ?? ""])
  const startedAt = performance.now()
  await app.sql("UPDATE api_keys SET revoked_at = now(), revoked_reason = 'revoked' WHERE id = $1", [key.id])
  await reader.done
  expect(performance.now() - startedAt).toBeLessThan(30_000)
  expect(reader.comments.at(-1)).toMatch(/^at /)
  expect(codeOf(await app.get(`${FEED}/stream`, secret))).toBe("revoked_api_key")
})

test("streams and waiting requests end within 5 seconds after an allowlist excludes their client", async () => {
  const { key, secret } = await app.key("user_owner")
  const reader = new Reader("?from=now", secret)
  await reader.open()
  const allow = (ranges: string) => app.sql("UPDATE api_keys SET ip_allowlist = $2::text[] WHERE id = $1", [key.id, ranges])
  // An allowlist that contains the client ends nothing.
  await allow("{127.0.0.0/8,::1/128}")
  const held = app.get(`${FEED}?from=now&wait=30&vaultId=vault_b`, secret)
  const [first] = await record("vault_a")
  await until("the event", () => reader.messages.length === 1)
  expect(reader.hashes).toEqual([first ?? ""])

  await allow("{203.0.113.0/24}")
  const startedAt = performance.now()
  await reader.done
  expect(performance.now() - startedAt).toBeLessThan(30_000)
  // The waiting request does not receive what is recorded now.
  await record("vault_b")
  expect(codeOf(await held)).toBe("revoked_api_key")
  expect(reader.messages).toHaveLength(1)
  expect(codeOf(await app.get(`${FEED}/stream`, secret))).toBe("ip_not_allowed")
})

test("SIGTERM ends streams and waiting requests with a cursor from which another process continues", async () => {
  const second = await app.start(["api"])
  const cursor = await now(keys.owner)
  const reader = new Reader(`?after=${cursor}`, keys.owner, {}, second)
  await reader.open()
  const [first] = await record("vault_a")
  await until("the event", () => reader.messages.length === 1)
  const held = fetch(`${second.baseUrl}${FEED}?from=now&wait=30`, { headers: { authorization: `Bearer ${keys.owner}` } })
  const startedAt = performance.now()
  // Time for the request to arrive, also on a busy machine.
  await Bun.sleep(3_000)
  expect(await second.end()).toBe(0)
  await reader.done
  expect((await held).status).toBe(200)
  expect(performance.now() - startedAt).toBeLessThan(25_000)
  const [later] = await record("vault_b")
  const resumed = new Reader("", keys.owner, { "last-event-id": reader.comments.at(-1)?.slice(3) ?? "" })
  await until("the rest", () => resumed.messages.length > 0)
  expect([reader.hashes, resumed.hashes]).toEqual([[first ?? ""], [later ?? ""]])
  await resumed.close()
})

test("HEAD opens no stream, and errors are problem documents whatever the reader accepts", async () => {
  expect((await app.request("HEAD", `${FEED}/stream`, { key: keys.owner })).status).toBe(200)
  expect(codeOf(await app.get(`${FEED}/stream?after=x`, keys.owner, { accept: "text/event-stream" }))).toBe("invalid_cursor")
  expect(codeOf(await app.get(`${FEED}/stream`, keys.owner, { "last-event-id": "x" }))).toBe("invalid_cursor")
  expect(codeOf(await app.get(`${FEED}/stream?limit=1`, keys.owner))).toBe("unknown_parameter")
  expect(codeOf(await app.get(`${FEED}/stream?kind=transaction.confirmd`, keys.owner))).toBe("invalid_parameter")
  expect(codeOf(await app.get(`${FEED}`, keys.owner, { accept: "text/event-stream" }))).toBe("not_acceptable")
})
