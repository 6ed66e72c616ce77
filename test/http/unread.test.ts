/** Large responses that their clients do not read: bounded for each organization. */
import { beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import { unreadBodies } from "../../src/http/unread.ts"
import { useApp } from "../support/app.ts"
import { until } from "../support/receiver.ts"
import { entity, organization, smallest, user, vault } from "../support/records.ts"

describe("what clients have not read", () => {
  const body = new Uint8Array(200_000).map((_, at) => at % 251)

  test("is counted until its end, and the bytes are those of the response", async () => {
    const streamOf = unreadBodies(300_000)
    const first = streamOf("a", body)
    expect([streamOf("a", body), streamOf("b", body) instanceof ReadableStream]).toEqual([undefined, true])
    expect(new Uint8Array(await new Response(first).arrayBuffer())).toEqual(body)
    const second = streamOf("a", body)
    await second?.cancel()
    // One response is sent whatever its size.
    expect(streamOf("a", new Uint8Array(400_000))).toBeInstanceOf(ReadableStream)
  })

  test("breaks off without progress", async () => {
    const streamOf = unreadBodies(300_000, 20)
    const reader = streamOf("a", body)?.getReader()
    await reader?.read()
    await expect(reader?.closed).rejects.toThrow("does not read")
    expect(streamOf("a", body)).toBeInstanceOf(ReadableStream)
  })
})

const watches = process.platform === "linux" && Bun.which("python3") !== null

describe.skipIf(!watches)(`a client that reads no page${watches ? "" : " (skipped: it needs Linux and python3)"}`, () => {
  const app = useApp(["api"], { RATE_LIMIT: "off" })
  const path = "/v1/vaults/vault_a/transactions?limit=500"
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

  test("gets 503 while it has much to read, takes little memory, and disturbs nobody", async () => {
    const { host, port } = new URL(app.main?.baseUrl ?? "")
    const whole = await app.get(path, key)
    expect(whole.text.length).toBeGreaterThan(4_000_000)
    expect(whole.json.data).toHaveLength(500)
    const memory = () => Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${app.main?.child.pid}/status`, "utf8"))?.[1]) * 1_024
    const before = memory()
    const clients = Bun.spawn(
      [
        "python3",
        "-c",
        `
import socket, sys
statuses, open_sockets = [], []
for _ in range(150):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(("127.0.0.1", ${port}))
    one.sendall(b"GET ${path} HTTP/1.1\\r\\nHost: ${host}\\r\\nAuthorization: Bearer ${key}\\r\\n\\r\\n")
    statuses.append(one.recv(12)[9:12].decode())
    open_sockets.append(one)
print(" ".join(statuses), flush=True)
sys.stdin.read()
`
      ],
      { stdin: "pipe", stdout: "pipe", stderr: "inherit" }
    )
    const { value } = await clients.stdout.getReader().read()
    const statuses = new TextDecoder().decode(value).trim().split(" ")
    expect([statuses.length, new Set(statuses)]).toEqual([150, new Set(["200", "503"])])
    expect(statuses.filter((status) => status === "200").length).toBeLessThan(30)
    expect(memory() - before).toBeLessThan(450_000_000)
    expect((await app.get("/v1/vaults", other)).status).toBe(200)
    clients.stdin.end()
    expect(await clients.exited).toBe(0)
    await until("the next page", async () => (await app.get(path, key)).status === 200)
  })
})
