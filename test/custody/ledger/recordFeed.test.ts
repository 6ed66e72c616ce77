/** The platform listener's record feed: access, formats, limits, and that a batch is applied whole or not at all. */
import { beforeAll, describe, expect, test } from "bun:test"
import pg from "pg"
import { type Answer, type Record, useApp } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { balance, hash, network, smallest, transaction, vault } from "../../support/records.ts"

const app = useApp()
let key = ""

beforeAll(async () => {
  await app.feed(smallest())
  key = (await app.key("user_a")).secret
})

const url = () => `${app.main?.platformUrl}/platform/v1/records`
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers field by field
const json = (response: Response): Promise<any> => response.json()
const outcome = ({ json, status }: Answer) => [status, json.code]
const lines = (records: ReadonlyArray<Record>) => records.map((record) => JSON.stringify(record)).join("\n")
const everything = async () => {
  const [{ state } = {}] =
    await app.sql(`SELECT concat_ws(' ', (SELECT count(*) FROM networks), (SELECT count(*) FROM vaults), (SELECT count(*) FROM transactions),
    (SELECT count(*) FROM balances), (SELECT count(*) FROM deposit_addresses), (SELECT count(*) FROM events),
    (SELECT md5(coalesce(string_agg(t::text, '' ORDER BY t.id), '')) FROM transactions t), (SELECT md5(coalesce(string_agg(v::text, '' ORDER BY v.id), '')) FROM vaults v)) AS state`)
  return state
}

describe("access to the record feed", () => {
  test("only the platform token is accepted, and with any other nothing is applied", async () => {
    const before = await everything()
    const token = app.env.PLATFORM_TOKEN ?? ""
    for (const authorization of [
      "",
      `Bearer ${token}x`,
      `Bearer ${token.slice(0, -1)}`,
      token,
      `Basic ${token}`,
      `Bearer ${key}`,
      `Bearer ${token}, Bearer ${token}`,
      "Bearer "
    ]) {
      const response = await fetch(url(), { method: "POST", body: lines([vault("vault_x", "entity_a")]), headers: { authorization } })
      const body: unknown = await response.json()
      expect([authorization.slice(0, 8), response.status]).toEqual([authorization.slice(0, 8), 401])
      expect(body).toMatchObject({ status: 401, code: "invalid_api_key", requestId: response.headers.get("x-request-id") })
      expect(response.headers.get("content-type")).toBe("application/problem+json")
      expect(JSON.stringify(body)).not.toContain(token)
    }
    expect(await everything()).toBe(before)
  })

  test("neither the feed nor the public API is on the other's port", async () => {
    const headers = { authorization: `Bearer ${app.env.PLATFORM_TOKEN}` }
    expect((await fetch(`${app.main?.baseUrl}/platform/v1/records`, { method: "POST", body: "", headers })).status).toBe(401)
    expect((await fetch(`${app.main?.platformUrl}/v1/vaults`, { headers: { authorization: `Bearer ${key}` } })).status).toBe(404)
  })
})

describe("formats of the record feed", () => {
  test("NDJSON and a JSON array are equivalent", async () => {
    const records = [transaction("vault_a", 1), transaction("vault_a", 2)]
    const counts = { received: 2, changed: 2, unchanged: 0, stale: 0, staleLines: [], events: 2 }
    expect((await app.records(lines(records))).json).toEqual(counts)
    expect((await app.records(JSON.stringify(records), { "content-type": "application/json; charset=utf-8" })).json).toEqual({
      ...counts,
      changed: 0,
      unchanged: 2,
      events: 0
    })
    // Blank lines, Windows line ends and a missing final newline are not records.
    const text = `\n${JSON.stringify(transaction("vault_a", 3))}\r\n\r\n   \n${JSON.stringify(transaction("vault_a", 4))}`
    expect((await app.records(text)).json).toEqual(counts)
    expect((await app.records("")).json).toEqual({ received: 0, changed: 0, unchanged: 0, stale: 0, staleLines: [], events: 0 })
    expect((await app.records("[]", { "content-type": "application/json" })).json.received).toBe(0)
  })

  test("another content type or an encoding gets 415, and a malformed body gets 400", async () => {
    expect(outcome(await app.records("{}", { "content-encoding": "zstd" }))).toEqual([415, "unsupported_media_type"])
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/xml", "application/x-ndjson2"]) {
      expect([type, ...outcome(await app.records("{}", { "content-type": type }))]).toEqual([type, 415, "unsupported_media_type"])
    }
    expect(outcome(await app.records("[{", { "content-type": "application/json" }))).toEqual([400, "malformed_json"])
    expect(outcome(await app.records("{}", { "content-type": "application/json" }))).toEqual([400, "invalid_body"])
    const headers = { authorization: `Bearer ${app.env.PLATFORM_TOKEN}`, "content-type": "application/x-ndjson" }
    const bytes = await fetch(url(), { method: "POST", headers, body: Buffer.from('{"type":"network","name":"\xff"}', "latin1") })
    expect([bytes.status, (await json(bytes)).code]).toEqual([400, "malformed_json"])
  })

  test("X-Record-Events: none records no events, and any other value is refused", async () => {
    const before = await app.sql("SELECT count(*) AS events FROM events")
    expect((await app.records([transaction("vault_a", 50)], { "x-record-events": "none" })).json).toMatchObject({ changed: 1, events: 0 })
    expect(outcome(await app.records([transaction("vault_a", 51)], { "x-record-events": "off" }))).toEqual([400, "invalid_parameter"])
    expect(await app.sql("SELECT count(*) AS events FROM events")).toEqual(before)
    expect((await app.records([transaction("vault_a", 50)])).json).toMatchObject({ unchanged: 1, events: 0 })
  })
})

describe("limits of the record feed", () => {
  test("a batch has at most 1,000 records", async () => {
    const batch = (count: number) => Array.from({ length: count }, (_, index) => transaction("vault_a", 10_000 + index))
    const before = await everything()
    expect(outcome(await app.records(batch(1_001)))).toEqual([413, "payload_too_large"])
    expect(outcome(await app.records(JSON.stringify(batch(1_001)), { "content-type": "application/json" }))).toEqual([
      413,
      "payload_too_large"
    ])
    expect(await everything()).toBe(before)
    expect((await app.records(batch(1_000))).json).toMatchObject({ received: 1_000, changed: 1_000 })
  })

  test("a body has at most 4 MiB, to the byte, with or without Content-Length", async () => {
    const record = JSON.stringify(transaction("vault_a", 2))
    const of = (bytes: number) => `${record}\n${" ".repeat(bytes - record.length - 1)}`
    expect((await app.records(of(4 * 1024 * 1024))).json).toMatchObject({ received: 1, unchanged: 1 })
    expect(outcome(await app.records(of(4 * 1024 * 1024 + 1)))).toEqual([413, "payload_too_large"])
    const headers = { authorization: `Bearer ${app.env.PLATFORM_TOKEN}`, "content-type": "application/x-ndjson" }
    const chunked = (bytes: number) =>
      new ReadableStream({
        start(controller) {
          for (let sent = 0; sent < bytes; sent += 65_536) controller.enqueue(new Uint8Array(Math.min(65_536, bytes - sent)).fill(32))
          controller.close()
        }
      })
    for (const [body, expected] of [
      [chunked(4 * 1024 * 1024), [200, undefined]],
      [chunked(4 * 1024 * 1024 + 1), [413, "payload_too_large"]],
      [chunked(40 * 1024 * 1024), [413, "payload_too_large"]],
      [of(40 * 1024 * 1024), [413, "payload_too_large"]]
    ] as const) {
      const answer = await fetch(url(), { method: "POST", headers, body })
      expect([answer.status, (await json(answer)).code]).toEqual([...expected])
    }
  })
})

describe("all or nothing, with a reason", () => {
  test("one invalid record among many: nothing is applied, and line, field and reason are named", async () => {
    const before = await everything()
    const batch = [
      ...Array.from({ length: 20 }, (_, index) => transaction("vault_a", 20_000 + index)),
      transaction("vault_a", 20_020, { amount: "1.0000000000000000001" }),
      balance("vault_a", "ethereum/native", "5")
    ]
    const answer = await app.records(batch)
    expect(answer.status).toBe(400)
    expect(answer.json).toMatchObject({
      code: "invalid_body",
      errors: [
        {
          in: "body",
          field: "amount",
          code: "invalid_record",
          line: 21,
          reason: "has more fraction digits than the asset's 18 decimals",
          detail: "line 21: amount has more fraction digits than the asset's 18 decimals"
        }
      ]
    })
    expect(await everything()).toBe(before)
  })

  test("every invalid record is named in line order, without those that refer to it", async () => {
    const answer = await app.records([
      network("Ethereum Classic"),
      vault("vault_bad", "entity_nowhere"),
      transaction("vault_bad", 1),
      transaction("vault_a", 1, { amount: "-1", from: "", extra: 1 }),
      balance("vault_unknown", "ethereum/native", "1"),
      transaction("vault_a", 30_000)
    ])
    expect(
      answer.json.errors.map(({ field, line, reason }: { field: string; line: number; reason: string }) => `${line} ${field}: ${reason}`)
    ).toEqual([
      "1 name: must be a network name such as ethereum or bitcoin-testnet4",
      "2 entityId: refers to entity_nowhere, which was not recorded before",
      "4 extra: is not a field of this type",
      "4 amount: must be a decimal string: digits, at most 78 before and 78 after the point",
      "4 from: must be an address: 1 to 256 printable characters without spaces",
      "5 vaultId: refers to vault_unknown, which was not recorded before"
    ])
  })

  test("line numbers are those of the body, including blank and invalid lines", async () => {
    const answer = await app.records(`\n\n${JSON.stringify(transaction("vault_a", 1))}\n\n{"type":\n[]\n"text"\nnull\n12`)
    expect(answer.json.errors.map(({ line, reason }: { line: number; reason: string }) => [line, reason])).toEqual([
      [5, "is not JSON"],
      [6, "must be a JSON object"],
      [7, "must be a JSON object"],
      [8, "must be a JSON object"],
      [9, "must be a JSON object"]
    ])
  })

  test("an endlessly nested record is refused by its line number, in both formats", async () => {
    const before = await everything()
    const deep = `{"type":"network","name":${"[".repeat(30_000)}${"]".repeat(30_000)},"kind":"mainnet"}`
    for (const answer of [await app.records(`\n${deep}`), await app.records(`[[],${deep}]`, { "content-type": "application/json" })]) {
      expect(outcome(answer)).toEqual([400, "invalid_body"])
      expect(answer.json.errors.at(-1)).toMatchObject({ line: 2, field: "", reason: "is nested too deeply" })
    }
    expect(await everything()).toBe(before)
  })

  test("a batch that fails in the database leaves neither rows nor events", async () => {
    // A constraint that only this test adds makes the last write fail, after all others were made.
    await app.sql("ALTER TABLE events ADD CONSTRAINT broken CHECK (payload NOT LIKE '%31337%') NOT VALID")
    const before = await everything()
    try {
      const answer = await app.records([
        network("tron"),
        vault("vault_half", "entity_a"),
        transaction("vault_a", 31_000, { amount: "31337" }),
        transaction("vault_a", 1, { status: "pending" })
      ])
      expect(outcome(answer)).toEqual([500, "internal_error"])
      expect(answer.text).not.toMatch(/constraint|events|sql/i)
      expect(await everything()).toBe(before)
    } finally {
      await app.sql("ALTER TABLE events DROP CONSTRAINT broken")
    }
    expect((await app.records([transaction("vault_a", 31_000, { amount: "31337" })])).json).toMatchObject({ changed: 1, events: 1 })
  })

  test("a batch that Postgres aborts to break a deadlock is retried and answered as usual", async () => {
    await app.feed([vault("vault_circle", "entity_a"), balance("vault_circle", "ethereum/native", "1")])
    const other = new pg.Client({ connectionString: app.databaseUrl })
    await other.connect()
    /** The batch has the vault and waits for the balance; then the other has the balance and waits for the vault. Whether it got it. */
    const circle = async () => {
      await other.query("BEGIN")
      await other.query("UPDATE balances SET amount = 2 WHERE vault_id = 'vault_circle'")
      const sending = app.records([
        vault("vault_circle", "entity_a", { label: "changed" }),
        balance("vault_circle", "ethereum/native", "3")
      ])
      await until("the batch waits", async () => {
        const rows = await app.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
        return rows.length === 1
      })
      const got = await other.query("UPDATE vaults SET label = 'other' WHERE id = 'vault_circle'").then(
        () => true,
        () => false
      )
      await other.query("COMMIT")
      const { json } = await sending
      return got ? json : undefined
    }
    try {
      // Postgres aborts the one that began to wait first, unless the other was a second late.
      let answer = await circle()
      for (let again = 0; answer === undefined && again < 10; again++) {
        await app.feed([vault("vault_circle", "entity_a"), balance("vault_circle", "ethereum/native", "1")])
        answer = await circle()
      }
      expect(answer).toEqual({ received: 2, changed: 2, unchanged: 0, stale: 0, staleLines: [], events: 2 })
    } finally {
      await other.end()
    }
    const [row] = await app.sql(
      "SELECT v.label, b.amount::text AS amount FROM vaults v JOIN balances b ON b.vault_id = v.id WHERE v.id = 'vault_circle'"
    )
    expect(row).toEqual({ label: "changed", amount: "3" })
  })

  test("a connection lost in the middle of a batch leaves all of it or nothing", async () => {
    const counts = `SELECT (SELECT count(*)::int FROM transactions WHERE hash >= $1 AND hash < $2) AS rows,
      (SELECT count(*)::int FROM events WHERE kind = 'transaction.confirmed' AND payload::json -> 'data' -> 'transaction' ->> 'hash' >= $1
        AND payload::json -> 'data' -> 'transaction' ->> 'hash' < $2) AS events`
    const writing = "FROM pg_stat_activity WHERE application_name = 'custody-ledger' AND datname = current_database() AND state <> 'idle'"
    const seen = new Set<number>()
    // Both outcomes must occur, or the test proves nothing: the connection is lost later in each round.
    for (let round = 0; round < 12 || (seen.size < 2 && round < 60); round++) {
      const first = 1_000_000 + round * 1_000
      const batch = Array.from({ length: 1_000 }, (_, index) => transaction("vault_a", first + index))
      let answered = false
      const sending = app.records(batch).finally(() => {
        answered = true
      })
      await until("the first statement", async () => answered || (await app.sql(`SELECT 1 ${writing}`)).length > 0)
      await Bun.sleep(round * 12)
      await app.sql(`SELECT pg_terminate_backend(pid) ${writing}`)
      const { status } = await sending
      expect([200, 503]).toContain(status)
      const [{ events, rows } = {}] = await app.sql(counts, [hash(first), hash(first + 1_000)])
      // One whose connection is lost between the commit and its answer is 503, too, and fed.
      const whole = status === 200 || rows !== 0
      expect([status, rows, events]).toEqual(whole ? [status, 1_000, 1_000] : [503, 0, 0])
      seen.add(status)
    }
    expect(seen).toEqual(new Set([200, 503]))
  })
})

describe("the same record fed many times at once", () => {
  test("creates one row and one event", async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, () =>
        app.records([transaction("vault_a", 40_000, { status: "pending" }), balance("vault_a", "ethereum/native", "123.5")])
      )
    )
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    const sum = (name: string) => answers.reduce((total, { json }) => total + json[name], 0)
    expect([sum("received"), sum("changed"), sum("unchanged"), sum("events")]).toEqual([100, 2, 98, 2])
    expect(await app.sql("SELECT count(*)::int AS rows FROM transactions WHERE hash = $1", [hash(40_000)])).toEqual([{ rows: 1 }])
    expect(await app.sql("SELECT count(*)::int AS events FROM events WHERE payload LIKE $1", [`%${hash(40_000)}%`])).toEqual([
      { events: 1 }
    ])
  })

  test("a batch sent again with the same Idempotency-Key is applied once", async () => {
    const batch = [
      transaction("vault_a", 42_000, { status: "pending" }),
      transaction("vault_a", 42_000),
      transaction("vault_a", 42_001, { status: "pending" }),
      transaction("vault_a", 42_001, { status: "failed" }),
      balance("vault_a", "ethereum/native", "42.1"),
      balance("vault_a", "ethereum/native", "42.2")
    ]
    const send = (id: string, records = batch, more = {}) => app.records(records, { "idempotency-key": id, ...more })
    const count = async () => (await app.sql("SELECT count(*)::int AS events FROM events"))[0]?.["events"]
    const first = await send("batch-42")
    expect([first.status, first.json]).toEqual([200, { received: 6, changed: 6, unchanged: 0, stale: 0, staleLines: [], events: 6 }])
    const [before, events] = [await everything(), await count()]
    const again = await Promise.all(Array.from({ length: 5 }, () => send("batch-42")))
    for (const answer of again) expect(["200", "409 idempotency_in_progress"]).toContain([answer.status, answer.json.code].join(" ").trim())
    const last = await send("batch-42")
    expect([last.status, last.json]).toEqual([200, first.json])
    expect([await everything(), await count()]).toEqual([before, events])
    // Another batch, or the same without events, is another request under this key.
    for (const other of [await send("batch-42", batch.slice(1)), await send("batch-42", batch, { "x-record-events": "none" })]) {
      expect(outcome(other)).toEqual([422, "idempotency_key_reused"])
    }
    expect(outcome(await send("two words"))).toEqual([400, "invalid_parameter"])
    // A refusal is not stored: the corrected batch is applied under the same key.
    expect((await send("batch-43", [balance("vault_absent", "ethereum/native", "1")])).status).toBe(400)
    expect((await send("batch-43", [balance("vault_a", "ethereum/native", "43")])).json.events).toBe(1)
    expect(await everything()).not.toBe(before)
  })

  test("different transitions of one transaction fed at once apply one after the other", async () => {
    await app.feed([transaction("vault_a", 41_000, { status: "pending" })])
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        app.records([transaction("vault_a", 41_000, { status: index % 2 === 0 ? "confirmed" : "pending" })])
      )
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const events = await app.sql("SELECT kind FROM events WHERE payload LIKE $1 ORDER BY id", [`%${hash(41_000)}%`])
    const kinds = events.map(({ kind }) => kind)
    expect(kinds[0]).toBe("transaction.pending")
    // Confirmed and reorged alternate, in whatever order the twenty were applied.
    kinds.slice(1).forEach((kind, index) => {
      expect(kind).toBe(index % 2 === 0 ? "transaction.confirmed" : "transaction.reorged")
    })
    const changed = answers.reduce((total, { json }) => total + json.changed, 0)
    expect(kinds).toHaveLength(changed + 1)
  })
})

describe("observability of the record feed", () => {
  test("each request is one line of the log, and applied records are counted once", async () => {
    const counted = async (sample: string) => {
      const text = await (await fetch(`${app.main?.platformUrl}/metrics`)).text()
      return Number(
        text
          .split("\n")
          .find((line) => line.startsWith(`${sample} `))
          ?.split(" ")[1] ?? 0
      )
    }
    const samples = [
      'custody_feed_records_total{outcome="changed"}',
      'custody_feed_records_total{outcome="unchanged"}',
      "custody_feed_events_total"
    ]
    const counts = () => Promise.all(samples.map(counted))
    const before = await counts()
    const send = (id: string, records: ReadonlyArray<Record>, more = {}) => app.records(records, { "x-request-id": id, ...more })
    const batch = [transaction("vault_a", 43_000), network("ethereum")]
    for (const id of ["feed-first", "feed-again"]) expect((await send(id, batch, { "idempotency-key": "seen" })).status).toBe(200)
    expect((await send("feed-refused", [{ type: "nonsense" }])).status).toBe(400)
    expect((await send("feed-denied", batch, { authorization: "Bearer somebody-else" })).status).toBe(401)
    expect((await counts()).map((count, index) => count - (before[index] ?? 0))).toEqual([1, 1, 1])
    const seen = await until("the log", () => {
      const lines = (app.main?.output() ?? "").split("\n").filter((line) => line.includes('"feed-'))
      return lines.length === 4 ? lines.map((line) => JSON.parse(line)) : undefined
    })
    expect(seen.map(({ message, method, path, requestId, status }) => [message, method, path, requestId, status])).toEqual(
      [
        ["feed-first", 200],
        ["feed-again", 200],
        ["feed-refused", 400],
        ["feed-denied", 401]
      ].map(([id, status]) => ["request", "POST", "/platform/v1/records", id, status])
    )
  })
})
