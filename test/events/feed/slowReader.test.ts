/** Readers of a stream that do not read what is sent, and streams without events. C-1. */
import { beforeAll, expect, test } from "bun:test"
import * as net from "node:net"
import { useApp } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { smallest, transaction } from "../../support/records.ts"

const app = useApp()
let key = ""

beforeAll(async () => {
  await app.feed(smallest(), { "x-record-events": "none" })
  key = (await app.key("user_a")).secret
})

/** Open streams, as counted by the process. */
const open = async (): Promise<number> => {
  const metrics = await (await fetch(`${app.main?.platformUrl}/metrics`)).text()
  return Number(/^custody_feed_streams(?:\{[^}]*\})? (\d+)$/m.exec(metrics)?.[1] ?? 0)
}

/** A reader on a socket, which reads nothing while it is paused. */
class SocketReader {
  text = ""
  ended = false
  readonly #socket: net.Socket

  constructor(query: string) {
    const { hostname, port } = new URL(app.main?.baseUrl ?? "")
    this.#socket = net.connect({ host: hostname, port: Number(port) }, () =>
      this.#socket.write(`GET /v1/event-feed/stream${query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`)
    )
    this.#socket.on("data", (chunk) => {
      this.text += chunk.toString()
    })
    this.#socket.on("error", () => {})
    this.#socket.on("close", () => {
      this.ended = true
    })
  }

  pause() {
    this.#socket.pause()
  }

  resume() {
    this.#socket.resume()
  }

  close() {
    this.#socket.destroy()
  }

  begun() {
    return until("the stream", () => this.text.includes(": at "))
  }

  /** Ids of the events, and the cursor after the last one that arrived completely. */
  get taken() {
    const whole = [
      ...this.text.replaceAll(/\r\n[0-9a-f]+\r\n/g, "").matchAll(/id: (\S+)\nevent: webhook-event\ndata: \{"id":"(evt_\w+)".*\n\n/g)
    ]
    return { ids: whole.map(([, , id = ""]) => id), place: whole.at(-1)?.[1] ?? "" }
  }
}

const EVENTS = 12_000

test("a reader that does not read is disconnected, and resumes from its cursor", async () => {
  // More is recorded than sockets hold plus 1 MiB, while the reader reads nothing.
  const cursor = (await app.get("/v1/event-feed?from=now", key)).json.resumeCursor
  const overrun = new SocketReader(`?after=${cursor}`)
  await overrun.begun()
  overrun.pause()
  expect(await open()).toBe(1)
  await app.feed(Array.from({ length: EVENTS }, (_, index) => transaction("vault_a", index + 1)))
  await until("its end", async () => (await open()) === 0)

  // Begun after the feed: a stream that a busy database ends is opened again by its reader, which this one is not.
  const idle = new SocketReader("?from=now&vaultId=vault_absent")
  await idle.begun()
  const beganAt = performance.now()
  const silent = idle.text.match(/: at /g)?.length ?? 0

  // Recorded events are read no faster than the reader reads them, so it is not disconnected early.
  // Timed from before it is opened: on a busy machine the sockets may be full before this process pauses.
  const openedAt = performance.now()
  const stalled = new SocketReader(`?after=${cursor}`)
  await stalled.begun()
  stalled.pause()
  await until("its opening", async () => (await open()) === 2)
  await until("its end", async () => (await open()) === 1)
  expect(performance.now() - openedAt).toBeGreaterThan(30_000)
  expect(idle.ended).toBe(false)

  // At most 15 s and a look apart: two comments in 45 s on a busy machine.
  await until("comments", () => (idle.text.match(/: at /g)?.length ?? 0) >= silent + 2)
  expect(performance.now() - beganAt).toBeGreaterThan(29_000)
  idle.close()

  // What it received before and what follows its last cursor is everything, once.
  const all: Array<string> = []
  for (let after = cursor; ; ) {
    const { data, pagination, resumeCursor } = (await app.get(`/v1/event-feed?limit=500&after=${after}`, key)).json
    all.push(...data.map(({ id }: { id: string }) => id))
    after = resumeCursor
    if (pagination.nextCursor === null) break
  }
  expect(all.length).toBe(EVENTS)
  stalled.resume()
  await until("its close", () => stalled.ended)
  const { ids, place } = stalled.taken
  expect(ids.length).toBeLessThan(EVENTS)
  expect(ids).toEqual(all.slice(0, ids.length))
  const next = (await app.get(`/v1/event-feed?limit=1&after=${place}`, key)).json.data
  expect(next.map(({ id }: { id: string }) => id)).toEqual(all.slice(ids.length, ids.length + 1))
  // A stop of the service waits for connections whose client reads nothing.
  overrun.close()
})
