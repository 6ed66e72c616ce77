/** Responses that their clients do not read: bounded for each caller, organization, network and site. */
import { beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import ipaddr from "ipaddr.js"
import { unreadResponses } from "../../src/http/unread.ts"
import { useApp } from "../support/app.ts"
import { until } from "../support/receiver.ts"
import { entity, organization, smallest, user, vault } from "../support/records.ts"

describe("what clients have not read", () => {
  const body = new Uint8Array(200_000).map((_, at) => at % 251)
  const to = (organizationId: string | undefined, keyId: string | undefined, port: number, address = "203.0.113.1") => ({
    client: ipaddr.parse(address),
    organizationId,
    keyId,
    userId: undefined,
    peer: { address, port }
  })
  /** Of each connection, the system says that so many bytes were not acknowledged. */
  const counting = (bytes: number, stalled?: number) => {
    const queues = new Map(Array.from({ length: 120 }, (_, at) => [`203.0.113.${at % 6} ${Math.floor(at / 6)}`, bytes]))
    const { enter, passedOn, streamOf } = unreadResponses(1_000_000, stalled, () => queues)
    return {
      enter: (...receiver: Parameters<typeof to>) => enter(to(...receiver), body.length, false),
      /** How many responses of so many bytes a caller may have, each on a connection of its own. */
      most: (keyId: string, size: number) => {
        let port = 0
        while (port < 20 && enter(to("a", keyId, port), size, false) !== undefined) port++
        return port
      },
      hold: (...receiver: Parameters<typeof to>) => {
        const one = enter(to(...receiver), body.length, true)
        return one && streamOf(one, body).getReader()
      },
      pass: (source: ReadableStream<Uint8Array>, ...receiver: Parameters<typeof to>) => {
        const one = enter(to(...receiver), 0, false)
        return one && passedOn(one, source).getReader()
      }
    }
  }

  test("counts for the caller, up to a quarter, and for the organization", () => {
    const { enter, most } = counting(1_000_000)
    expect(["1", "2", "3", "4"].map((keyId) => most(keyId, 60_000))).toEqual([4, 4, 4, 4])
    // One response whatever its size, and a small share of its own.
    expect([most("5", 60_000), most("6", 5_000)]).toEqual([1, 3])
    expect([enter("b", "7", 1) === undefined, enter("a", "1", 1) === undefined]).toEqual([false, true])
  })

  test("counts for strangers by their address, up to a quarter, and by their site", () => {
    const { enter } = counting(body.length)
    const stranger = (port: number, address: string) => enter(undefined, undefined, port, address) !== undefined
    const [first = "", ...others] = Array.from({ length: 6 }, (_, host) => `203.0.113.${host}`)
    expect([stranger(1, first), stranger(2, first)]).toEqual([true, false])
    expect(others.map((address) => stranger(1, address))).toEqual([true, true, true, true, false])
    expect(stranger(1, "203.0.114.1")).toBe(true)
  })

  test("adds up on a connection, as far as it is not acknowledged", () => {
    for (const [bytes, next] of [
      [0, true],
      [40_000, true],
      [60_000, false]
    ] as const) {
      const { enter } = counting(bytes)
      expect([bytes, enter("a", "1", 1) !== undefined, enter("a", "1", 1) !== undefined]).toEqual([bytes, true, next])
    }
  })

  test("on a proxy's connection counts for who was answered last", () => {
    const { enter } = counting(body.length)
    for (const keyId of ["1", "2"]) expect(enter("a", keyId, 1)).toBeDefined()
    expect(["1", "2"].map((keyId) => enter("a", keyId, 2) !== undefined)).toEqual([true, false])
  })

  test("is one response at least, whatever its size", () => {
    expect(unreadResponses(1_000).enter(to("a", "1", 1), body.length, false)).toBeDefined()
  })

  test("of a stream counts until the system has taken the last piece", async () => {
    for (const wait of [true, false]) {
      const { enter, hold } = counting(0)
      const reader = hold("a", "1", 1)
      const bytes: Array<number> = []
      while (bytes.length < body.length) bytes.push(...((await reader?.read())?.value ?? []))
      expect(new Uint8Array(bytes)).toEqual(body)
      if (!wait) expect((await reader?.read())?.done).toBe(true)
      expect([wait, enter("a", "1", 2) === undefined]).toEqual([wait, wait])
    }
  })

  test("of a stream of unknown length counts once the system has taken it", async () => {
    for (const [then, fits] of [
      ["nothing", true],
      ["asks for more", false],
      ["ends", false],
      ["is disconnected", false]
    ] as const) {
      const { enter, pass } = counting(body.length)
      const { promise: source, resolve } = Promise.withResolvers<ReadableStreamDefaultController<Uint8Array>>()
      const stream = new ReadableStream<Uint8Array>(
        { start: resolve, pull: (controller) => controller.enqueue(body) },
        { highWaterMark: 0 }
      )
      const reader = pass(stream, "a", "1", 1)
      expect((await reader?.read())?.value).toEqual(body)
      if (then === "asks for more") await reader?.read()
      if (then === "ends") await reader?.cancel()
      if (then === "is disconnected") {
        ;(await source).error(new Error("the reader did not keep up"))
        await expect(reader?.closed).rejects.toThrow("keep up")
      }
      expect([then, enter("a", "1", 2) !== undefined]).toEqual([then, fits])
    }
  })

  test("breaks off without progress", async () => {
    const { enter, hold } = counting(0, 20)
    const reader = hold("a", "1", 1)
    await reader?.read()
    await expect(reader?.closed).rejects.toThrow("does not read")
    expect(enter("a", "1", 2)).toBeDefined()
  })
})

const watches = process.platform === "linux" && Bun.which("python3") !== null

describe.skipIf(!watches)(`a client that reads no page${watches ? "" : " (skipped: it needs Linux and python3)"}`, () => {
  const app = useApp(["api"], { RATE_LIMIT: "off" })
  /** Few large pages, of which a loopback takes much at once, and many smaller ones, with the short segments of a network. */
  const readers = [
    { limit: 500, pageBytes: 4_000_000, clients: 50, segment: "", most: 30, memoryBytes: 450_000_000 },
    {
      limit: 12,
      pageBytes: 96_000,
      clients: 240,
      segment: "one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)",
      most: 200,
      memoryBytes: 150_000_000
    }
  ]
  let key = "",
    other = ""
  beforeAll(async () => {
    await app.feed([
      ...smallest(),
      user("user_a", "org_a", ["vault_a"]),
      organization("org_b", ["ethereum"]),
      entity("entity_b", "org_b"),
      vault("vault_b", "entity_b"),
      user("user_b", "org_b", ["vault_b"])
    ])
    await app.insert(
      `INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
       SELECT gen_random_uuid(), 'vault_a', 'org_a', 'ethereum', 'big' || n, 0, 'inbound', 'confirmed', 'ethereum/native', 1, 'a', 'b', '2022-01-01', '{"hash":"' || repeat('x', 8000) || '"}'
       FROM generate_series(1, 500) n`
    )
    ;[key, other] = [(await app.key("user_a")).secret, (await app.key("user_b")).secret]
  })

  test.each(readers)("of $pageBytes bytes gets 503, takes little memory and disturbs nobody", async (reader) => {
    const { host, port } = new URL(app.main?.baseUrl ?? "")
    const path = `/v1/vaults/vault_a/transactions?limit=${reader.limit}`
    const whole = await app.get(path, key)
    expect(whole.text.length).toBeGreaterThan(reader.pageBytes)
    expect(whole.json.data).toHaveLength(reader.limit)
    const memory = () => Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${app.main?.child.pid}/status`, "utf8"))?.[1]) * 1_024
    const before = memory()
    const clients = Bun.spawn(
      [
        "python3",
        "-c",
        `
import socket, sys
statuses, open_sockets = [], []
for _ in range(${reader.clients}):
    one = socket.socket()
    ${reader.segment}
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(("127.0.0.1", ${port}))
    one.sendall(b"GET ${path} HTTP/1.1\\r\\nHost: ${host}\\r\\nAuthorization: Bearer ${key}\\r\\n\\r\\n")
    statuses.append(one.recv(12, socket.MSG_WAITALL)[9:12].decode())
    open_sockets.append(one)
print(" ".join(statuses), flush=True)
sys.stdin.read()
`
      ],
      { stdin: "pipe", stdout: "pipe", stderr: "inherit" }
    )
    const { value } = await clients.stdout.getReader().read()
    const statuses = new TextDecoder().decode(value).trim().split(" ")
    expect([statuses.length, new Set(statuses)]).toEqual([reader.clients, new Set(["200", "503"])])
    expect(statuses.filter((status) => status === "200").length).toBeLessThan(reader.most)
    expect(memory() - before).toBeLessThan(reader.memoryBytes)
    expect((await app.get("/v1/vaults", other)).status).toBe(200)
    clients.stdin.end()
    expect(await clients.exited).toBe(0)
    await until("the next page", async () => (await app.get(path, key)).status === 200)
  })
})
