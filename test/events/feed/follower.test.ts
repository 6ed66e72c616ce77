/** The cost and robustness of following the feed: one poll for all readers, none without readers, and broken connections. C-1. */
import { beforeAll, expect, test } from "bun:test"
import * as fs from "node:fs"
import net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { followEvents } from "../../../src/client/index.ts"
import { useApp } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { smallest, transaction, user, vault } from "../../support/records.ts"

const statements = path.join(os.tmpdir(), `custody-follower-${process.pid}.jsonl`)
const app = useApp(["api"], { EXPLAIN_TO: statements })
let key = ""

beforeAll(async () => {
  await app.feed(smallest(), { "x-record-events": "none" })
  key = (await app.key("user_a")).secret
})

/** Statements so far that read what waiting readers may have missed, or the state of their keys. */
const asked = (): number =>
  fs.existsSync(statements)
    ? fs
        .readFileSync(statements, "utf8")
        .split("\n")
        .filter((line) => line.includes("FROM event_streams WHERE organization_id = ANY") || line.includes("FROM api_keys k JOIN users u"))
        .length
    : 0
const askedIn = async (millis: number): Promise<number> => {
  const before = asked()
  await Bun.sleep(millis)
  return asked() - before
}

/** A stream whose text is recorded. */
const open = async () => {
  const abort = new AbortController()
  const stream = { text: "", close: () => abort.abort() }
  const response = await fetch(`${app.main?.baseUrl}/v1/event-feed/stream?from=now`, {
    headers: { authorization: `Bearer ${key}` },
    signal: abort.signal
  })
  const read = async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) stream.text += decoder.decode(chunk, { stream: true })
  }
  read().catch(() => {})
  await until("the stream", () => stream.text.includes(": at "))
  return stream
}

test("without waiting readers the database is not queried, and one poll serves all waiting readers", async () => {
  // Longer than between two polls.
  expect(await askedIn(1_500)).toBe(0)
  const streams = [await open(), await open(), await open()]
  await until("a poll", () => asked() > 0)
  const startedAt = performance.now()
  const queries = await askedIn(3_000)
  // One poll a second and one check of the keys in four, for three streams.
  expect(queries).toBeLessThanOrEqual(2 + (1.5 * (performance.now() - startedAt)) / 1_000)
  for (const stream of streams) stream.close()
  await until("the streams' end", async () => (await askedIn(1_500)) === 0)
})

test("a follower misses nothing after the listening connection broke", async () => {
  // As a client reads: a busy database may end a stream, which is then resumed.
  const stop = new AbortController()
  const received: Array<string> = []
  const following = new Promise<void>((connected, lost) => {
    const follow = async () => {
      const events = followEvents(
        { baseUrl: app.main?.baseUrl ?? "", apiKey: key },
        { from: "now", signal: stop.signal, onConnected: connected }
      )
      for await (const { event } of events) received.push(/"hash":"(0x\w+)"/.exec(JSON.stringify(event.payload))?.[1] ?? "")
    }
    follow().catch(lost)
  })
  await following
  const pids = async () =>
    (
      await app.sql("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'custody-notifications'")
    ).map(({ pid }) => pid)
  const before = await pids()
  expect(before.length).toBe(1)
  await app.sql(`SELECT pg_terminate_backend(${before[0]})`)
  const hashes: Array<string> = []
  for (let counter = 1; counter <= 20; counter++) {
    const made = transaction("vault_a", counter)
    hashes.push(String(made.hash))
    await app.feed([made])
  }
  await until("the events", () => received.length >= hashes.length)
  expect(received).toEqual(hashes)
  await until("a new connection", async () => (await pids()).some((pid) => !before.includes(pid)))
  stop.abort()
})

test("a refused stream says nothing of what another stream of its key sees", async () => {
  await app.feed([vault("vault_c", "entity_a"), user("user_a", "org_a", ["vault_a", "vault_c"])], { "x-record-events": "none" })
  const of = async (localAddress: string, secret: string) => {
    const { hostname, port } = new URL(app.main?.baseUrl ?? "")
    const socket = net.connect({ host: hostname, port: Number(port), localAddress })
    const stream = { text: "", close: () => socket.destroy() }
    socket.on("data", (chunk) => {
      stream.text += String(chunk)
    })
    socket.write(`GET /v1/event-feed/stream?from=now HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${secret}\r\n\r\n`)
    await until("the stream", () => stream.text.includes(": at "))
    return stream
  }
  for (const [number, before, after] of [
    [1, null, "{vault_a}"],
    [2, "{vault_a}", null]
  ] as const) {
    const { key: made, secret } = await app.key("user_a", before === null ? {} : { vaultIds: ["vault_a"] })
    const streams = [await of("127.0.0.2", secret), await of("127.0.0.1", secret)]
    // One edit excludes the first one's address, and changes what the other one sees.
    await app.sql("UPDATE api_keys SET ip_allowlist = '{127.0.0.1/32}', vault_ids = $2::text[] WHERE id = $1", [made.id, after])
    const [seen, other] = [transaction("vault_a", 100 + number), transaction("vault_c", 200 + number)]
    await app.feed([other, seen])
    await until("the event", () => streams[1]?.text.includes(String(seen.hash)))
    expect([number, streams[1]?.text.includes(String(other.hash))]).toEqual([number, after === null])
    expect(streams[0]?.text).not.toContain(String(seen.hash))
    for (const stream of streams) stream.close()
  }
})
