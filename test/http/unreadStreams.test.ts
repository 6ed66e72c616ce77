/** Streams and exports whose clients do not read them count like other responses, also after the clients' half of the connection ended. */
import { afterEach, beforeAll, describe, expect, test } from "bun:test"
import { unacknowledged } from "../../src/http/connectionTable.ts"
import { event, insertEvents } from "../events/log/eventRows.ts"
import { useApp } from "../support/app.ts"
import { codeOf } from "../support/problem.ts"
import { until } from "../support/receiver.ts"
import { smallest } from "../support/records.ts"

const EXPORT = "/v1/vaults/vault_a/transactions/export?format=ndjson"
const STREAM = "/v1/event-feed/stream"
const PAGE = "/v1/vaults/vault_a/transactions?limit=500"
/** Most unread bytes of a key, and what further responses may add that had begun before. */
const SHARE = 16 * 1_048_576,
  BEGUN = 8_000_000
const CLIENTS = 60

const watches = process.platform === "linux" && Bun.which("python3") !== null

describe.skipIf(!watches)(`a client that ends its half of the connection${watches ? "" : " (skipped: it needs Linux and python3)"}`, () => {
  const app = useApp(["api"], { RATE_LIMIT: "off" })
  let key = ""

  beforeAll(async () => {
    await app.feed(smallest(), { "x-record-events": "none" })
    // Of both, 4 MB.
    await app.insert(
      `INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
       SELECT gen_random_uuid(), 'vault_a', 'org_a', 'ethereum', 'big' || n, 0, 'inbound', 'confirmed', 'ethereum/native', 1, 'a', 'b', '2022-01-01', '{"hash":"' || repeat('x', 8000) || '"}'
       FROM generate_series(1, 500) n`
    )
    await insertEvents(
      app,
      Array.from({ length: 500 }, () => event())
    )
    await app.sql(`UPDATE events SET payload = left(payload, -1) || ',"padding":"' || repeat('x', 8000) || '"}'`)
    key = (await app.key("user_a")).secret
  })

  const children: Array<Bun.Subprocess> = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill()
    app.patient = true
  })

  /** Clients, one after the other: each reads the beginning, waits until its socket gets no more, and half-closes. */
  const halfClosed = async (path: string, clients = CLIENTS) => {
    const { port } = new URL(app.main?.baseUrl ?? "")
    const child = Bun.spawn(
      [
        "python3",
        "-c",
        `
import array, fcntl, socket, sys, termios, time
sockets = []
def waiting(one):
    size = array.array("i", [0])
    fcntl.ioctl(one, termios.FIONREAD, size)
    return size[0]
for _ in range(${clients}):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    one.connect(("127.0.0.1", ${port}))
    one.sendall(b"GET ${path} HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer ${key}\\r\\n\\r\\n")
    status = one.recv(12, socket.MSG_WAITALL)[9:12].decode()
    if status == "200":
        got = 0
        while got < 1_000_000:
            got += len(one.recv(262144))
        last, since = -1, time.monotonic()
        while time.monotonic() - since < 0.1:
            if waiting(one) != last: last, since = waiting(one), time.monotonic()
            time.sleep(0.01)
    one.shutdown(socket.SHUT_WR)
    sockets.append(one)
    print(status, one.getsockname()[1], flush=True)
print("end", flush=True)
sys.stdin.read()
`
      ],
      { stdin: "pipe", stdout: "pipe", stderr: "inherit" }
    )
    children.push(child)
    let text = ""
    const reader = child.stdout.getReader()
    const decoder = new TextDecoder()
    while (!text.endsWith("end\n")) {
      const { done, value } = await reader.read()
      if (done) throw new Error(`the clients ended: ${text}`)
      text += decoder.decode(value)
    }
    const lines = text.trim().split("\n").slice(0, -1)
    return {
      statuses: lines.map((line) => line.slice(0, 3)),
      ports: lines.map((line) => line.slice(4)),
      end: () => {
        child.stdin.end()
        return child.exited
      }
    }
  }

  const openStreams = async () => {
    const metrics = await (await fetch(`${app.main?.platformUrl}/metrics`)).text()
    return Number(/^custody_feed_streams(?:\{[^}]*\})? (\d+)$/m.exec(metrics)?.[1])
  }

  test.each([STREAM, EXPORT])("of %s gets 503 beyond its share, until it has read", async (path) => {
    const { end, ports, statuses } = await halfClosed(path)
    const queues = unacknowledged()
    const bytes = ports.reduce((sum, port) => sum + (queues.get(`127.0.0.1 ${port}`) ?? 0), 0)
    expect([statuses.length, new Set(statuses)]).toEqual([CLIENTS, new Set(["200", "503"])])
    expect(bytes).toBeLessThan(SHARE + BEGUN)
    // What is refused keeps no place.
    app.patient = false
    const refused: Array<string> = []
    for (const target of [STREAM, EXPORT, STREAM, EXPORT, STREAM, EXPORT]) refused.push(codeOf(await app.get(target, key)))
    expect(new Set(refused)).toEqual(new Set(["service_unavailable"]))
    expect(await openStreams()).toBe(0)
    expect(await end()).toBe(0)
    await until("the next page", async () => (await app.get(PAGE, key)).status === 200)
    expect((await app.get(EXPORT, key)).status).toBe(200)
  })

  test("and reads before it ends is never refused", async () => {
    app.patient = false
    const status = async (target: string) => {
      const answer = await app.get(target, key)
      return answer.status === 200 ? answer.text.length > 4_000_000 : answer.text
    }
    // Several times its share, on connections that are kept and on others.
    for (let n = 0; n < 12; n++) {
      const ended = new AbortController()
      const stream = await fetch(`${app.main?.baseUrl}${STREAM}`, {
        headers: { authorization: `Bearer ${key}` },
        signal: ended.signal
      })
      expect(stream.status).toBe(200)
      let bytes = 0
      for await (const chunk of stream.body ?? []) {
        bytes += chunk.length
        if (bytes > 4_000_000) break
      }
      ended.abort()
      await until("its end", async () => (await openStreams()) === 0)
      expect([n, await status(EXPORT), await status(PAGE)]).toEqual([n, true, true])
    }
  })
})
