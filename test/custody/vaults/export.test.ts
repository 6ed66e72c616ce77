/** Exports: every row once, of one moment, in bounded memory, whatever the client does. C-6. */
import { beforeAll, describe, expect, test } from "bun:test"
import * as net from "node:net"
import { createClient } from "../../../src/client/index.ts"
import { fileOf } from "../../../src/custody/vaults/exportFile.ts"
import { csvCell } from "../../../src/values/csv.ts"
import { useApp } from "../../support/app.ts"
import { BIG, fillVault } from "../../support/bigVault.ts"
import { until } from "../../support/receiver.ts"
import { entity, organization, smallest, transaction, user, vault } from "../../support/records.ts"

const ROWS = 5_000
const app = useApp(["api"], { EXPORT_MAX_ROWS: String(BIG) })
let key = ""

beforeAll(async () => {
  await app.feed(
    [
      ...smallest(),
      vault("vault_big", "entity_a"),
      user("user_a", "org_a", ["vault_a", "vault_big"], { organizationRole: "owner" }),
      organization("org_other", ["ethereum"]),
      entity("entity_other", "org_other"),
      vault("vault_other", "entity_other"),
      vault("vault_other_big", "entity_other"),
      user("user_other", "org_other", ["vault_other", "vault_other_big"]),
      organization("org_third", ["ethereum"]),
      entity("entity_third", "org_third"),
      vault("vault_third", "entity_third"),
      user("user_third", "org_third", ["vault_third"]),
      ...Array.from({ length: ROWS }, (_, index) =>
        transaction("vault_a", index, {
          amount: index === 0 ? `${"9".repeat(60)}.123456789012345678` : String(index),
          direction: index % 2 === 0 ? "inbound" : "outbound",
          timestamp: new Date(Date.UTC(2024, 0, 1) + Math.floor(index / 3) * 1_000).toISOString()
        })
      )
    ],
    { "x-record-events": "none" }
  )
  // Rows as the ledger writes them, in one statement: more than fits into a connection's buffers.
  await fillVault(app, "vault_big")
  await fillVault(app, "vault_other_big", "org_other")
  key = (await app.key("user_a")).secret
})

const fetchFile = async (query: string, secret = key, id = "vault_a", headers: { readonly [name: string]: string } = {}) =>
  fetch(`${app.main?.baseUrl}/v1/vaults/${id}/transactions/export?${query}`, { headers: { authorization: `Bearer ${secret}`, ...headers } })
const file = async (query: string) => (await fetchFile(query)).text()
/** Connections of the export pool that are in a transaction. */
const held = async () =>
  Number(
    (
      await app.sql(
        "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'custody-export' AND datname = current_database() AND state <> 'idle'"
      )
    )[0]?.["n"]
  )
/** In less time than a stalled export may take. */
const released = () => until("the release", async () => (await held()) === 0, 30)
/** A client that reads the head of a file and then nothing more. */
const stalled = (secret: string, id = "vault_big") =>
  new Promise<{ readonly socket: net.Socket; readonly head: string }>((resolve, reject) => {
    const { hostname, port } = new URL(app.main?.baseUrl ?? "")
    const socket = net.connect(Number(port), hostname, () =>
      socket.write(`GET /v1/vaults/${id}/transactions/export?format=ndjson HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\n\r\n`)
    )
    socket.once("error", reject)
    socket.once("data", (data) => {
      socket.pause()
      if (String(data).startsWith("HTTP/1.1 200")) resolve({ socket, head: data.toString("latin1") })
      else reject(new Error(String(data)))
    })
  })

describe("an export", () => {
  test("as NDJSON is the list's rows, each once and in order, with the list's filters", async () => {
    for (const filter of [
      "",
      "&direction=inbound",
      "&occurredAfter=2024-01-01T00:10:00Z&occurredBefore=2024-01-01T00:20:00Z",
      "&status=pending"
    ]) {
      const rows = (await file(`format=ndjson${filter}`)).split("\n").slice(0, -1)
      const listed = await app.walk(`/v1/vaults/vault_a/transactions?${filter.slice(1)}`, key, 500)
      expect(rows.map((row) => JSON.parse(row))).toEqual([...listed])
    }
  })

  test("as CSV has a header, the API's order, CRLF, and an apostrophe before each amount", async () => {
    const answer = await fetchFile("format=csv", key, "vault_a", { accept: "text/csv" })
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/csv; charset=utf-8"])
    const lines = (await answer.text()).split("\r\n")
    expect(lines[0]).toStartWith("hash,network,status,direction,asset,amount,from,to,timestamp,symbol,id,")
    expect([lines.length, lines.at(-1)]).toEqual([ROWS + 2, ""])
    const listed = await app.walk("/v1/vaults/vault_a/transactions", key, 500)
    expect(lines.slice(1, -1).map((line) => line.split(",").slice(0, 9))).toEqual(
      listed.map((row) => [row.hash, row.network, row.status, row.direction, row.asset, `'${row.amount}`, row.from, row.to, row.timestamp])
    )
    expect(lines.at(-2)).toContain(",2024-01-01T00:00:00.000Z")
  })

  test("escapes a cell that begins like a formula, and quotes what RFC 4180 requires", () => {
    const cells = ["=1+1", "+1", "-1", "@a", "'a", "\ta", "\ra", "\n=1", "＝1", 'a"b', "a,b", "a\nb", "plain", ""].map((cell) =>
      csvCell(cell)
    )
    expect(cells).toEqual([
      "'=1+1",
      "'+1",
      "'-1",
      "'@a",
      "''a",
      "'\ta",
      '"\'\ra"',
      `"'\n'=1"`,
      "'＝1",
      '"a""b"',
      '"a,b"',
      '"a\nb"',
      "plain",
      ""
    ])
    expect(csvCell("1.5", true)).toBe("'1.5")
  })

  test("escapes what is a formula where a spreadsheet splits at semicolons or tabs", () => {
    const cells = ["pay;=40+2;", "a\t@b", "a;+1;-1", "a\n=1;b", 'a;"=1;b', ";=1", "a; =1;b-c", "0xa=b+c@d"].map((cell) => csvCell(cell))
    expect(cells).toEqual(["pay;'=40+2;", "a\t'@b", "a;'+1;'-1", `"a\n'=1;b"`, `"a;'""=1;b"`, ";'=1", "a; =1;b-c", "0xa=b+c@d"])
  })

  test("reads rows only as fast as its client does, in memory independent of size", async () => {
    const { socket } = await stalled((await app.key("user_a")).secret)
    // Another client reads the same file twice: time enough to read it once for the client that accepts nothing.
    for (let time = 0; time < 2; time++) {
      let bytes = 0
      for await (const chunk of (await fetchFile("format=ndjson", key, "vault_big")).body ?? []) bytes += chunk.length
      expect(bytes).toBeGreaterThan(36_000_000)
    }
    await until("only the stalled one", async () => (await held()) === 1)
    socket.destroy()
    await released()
  })

  test("of more rows than EXPORT_MAX_ROWS gets 422 too_many_rows before the first byte", async () => {
    await app.sql(
      `INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
       SELECT gen_random_uuid(), 'vault_big', 'org_a', 'ethereum', 'more' || n, 0, 'inbound', 'pending', 'ethereum/native', 1, 'a', 'b', '2024-01-02', '{"hash":""}' FROM generate_series(1, 5) n`
    )
    const answer = await fetchFile("format=csv", key, "vault_big")
    const { code, detail } = (await answer.json()) as { readonly code: string; readonly detail: string }
    expect([answer.status, code, detail.includes("60000")]).toEqual([422, "too_many_rows", true])
    expect((await fetchFile("format=csv&status=pending", key, "vault_big")).status).toBe(200)
    await app.sql("DELETE FROM transactions WHERE hash LIKE 'more%'")
    await released()
  })

  test("runs at most twice at a time per key, and one more gets 429", async () => {
    const { secret } = await app.key("user_a")
    const sockets = [await stalled(secret), await stalled(secret)]
    const refused = await fetchFile("format=csv", secret)
    expect([refused.status, ((await refused.json()) as { readonly code: string }).code, refused.headers.get("retry-after")]).toEqual([
      429,
      "too_many_exports",
      "5"
    ])
    const other = await fetchFile("format=csv", key)
    expect([other.status, (await other.text()).length > 0]).toEqual([200, true])
    // A client that disconnects frees its connection and its slot at once, long before the limit of a stalled export.
    const begun = performance.now()
    for (const { socket } of sockets) socket.destroy()
    await released()
    expect(performance.now() - begun).toBeLessThan(30_000)
    const next = await fetchFile("format=csv", secret)
    expect([next.status, (await next.text()).length > 0]).toEqual([200, true])
    await released()
  })

  const limit = "At most 3 exports can run at a time for an organization, 1 while many others run."
  test("runs at most three times at a time per organization, across all keys", async () => {
    const [one, two] = [(await app.key("user_a")).secret, (await app.key("user_a")).secret]
    const sockets = [await stalled(one), await stalled(one), await stalled(two)]
    const refused = await fetchFile("format=csv", two)
    const { code, detail } = (await refused.json()) as { readonly code: string; readonly detail: string }
    expect([refused.status, code, detail]).toEqual([429, "too_many_exports", limit])
    expect((await fetchFile("format=csv", (await app.key("user_other")).secret, "vault_other")).status).toBe(200)
    for (const { socket } of sockets) socket.destroy()
    await released()
  })

  test("runs once per organization while more than half of the connections are taken", async () => {
    const [one, two, other] = [(await app.key("user_a")).secret, (await app.key("user_a")).secret, (await app.key("user_other")).secret]
    const sockets = [await stalled(one), await stalled(one), await stalled(two), await stalled(other, "vault_other_big")]
    const refused = await fetchFile("format=csv", other, "vault_other")
    const { code, detail } = (await refused.json()) as { readonly code: string; readonly detail: string }
    expect([refused.status, code, detail]).toEqual([429, "too_many_exports", limit])
    expect((await fetchFile("format=csv", (await app.key("user_third")).secret, "vault_third")).status).toBe(200)
    for (const { socket } of sockets) socket.destroy()
    await released()
  })

  test("that takes too long is cut off, and its snapshot is released", async () => {
    let closed = 0
    const close = async () => {
      closed++
    }
    const next = async () => ({ text: "{}\n".repeat(100), isLast: false })
    const reader = fileOf({ next, close, stalledSeconds: 60, longest: 300 }).getReader()
    const begun = performance.now()
    const readOn = async (): Promise<never> => {
      for (;;) {
        if ((await reader.read()).done) throw new Error("the file ended")
        await Bun.sleep(10)
      }
    }
    await expect(readOn()).rejects.toThrow("the export took too long")
    expect(performance.now() - begun).toBeGreaterThanOrEqual(300)
    expect(closed).toBe(1)
  })

  test("answers HEAD, 404 and 406 without a file, and then holds no connection", async () => {
    const head = await fetch(`${app.main?.baseUrl}/v1/vaults/vault_a/transactions/export?format=csv`, {
      method: "HEAD",
      headers: { authorization: `Bearer ${key}` }
    })
    expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/csv; charset=utf-8"])
    // The length of the file is unknown, and not 0.
    expect(head.headers.get("content-length")).toBeNull()
    expect(head.headers.get("content-disposition")).toMatch(/^attachment; filename="vault_a-transactions-to-[\d-]+\.csv"$/)
    expect((await fetchFile("format=csv", key, "vault_absent")).status).toBe(404)
    expect((await fetchFile("format=csv", key, "vault_a", { accept: "text/html" })).status).toBe(406)
    for (const query of ["", "format=xml", "format=csv&limit=1", "format=csv&nonsense=1"]) expect((await fetchFile(query)).status).toBe(400)
    await released()
  })

  test("is a byte stream in the client", async () => {
    const client = createClient({ baseUrl: app.main?.baseUrl ?? "", apiKey: key })
    const text = await new Response(await client.exportTransactions("vault_a", { format: "ndjson", status: "confirmed" })).text()
    expect(text.split("\n")).toHaveLength(ROWS + 1)
  })
})
