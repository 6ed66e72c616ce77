/** The event feed: every event once, in the order of recording, after a cursor that reveals nothing of what others see. C-1. */
import { beforeAll, describe, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import type { Answer } from "../../support/app.ts"
import { codeOf } from "../../support/problem.ts"
import { asset, entity, network, organization, transaction, user, vault } from "../../support/records.ts"

const app = useApi()
const keys = { owner: "", one: "", member: "", other: "" }
const FEED = "/v1/event-feed"

beforeAll(async () => {
  await app.feed(
    [
      network("ethereum"),
      asset("ethereum/native"),
      organization("org_a", ["ethereum"]),
      entity("entity_a", "org_a"),
      entity("entity_b", "org_a"),
      vault("vault_a", "entity_a"),
      vault("vault_b", "entity_b"),
      vault("vault_c", "entity_b"),
      user("user_owner", "org_a", ["vault_a", "vault_b", "vault_c"], { organizationRole: "owner" }),
      user("user_member", "org_a", ["vault_a"]),
      organization("org_b", ["ethereum"]),
      entity("entity_c", "org_b"),
      vault("vault_d", "entity_c"),
      user("user_other", "org_b", ["vault_d"], { organizationRole: "owner" })
    ],
    { "x-record-events": "none" }
  )
  keys.owner = (await app.key("user_owner")).secret
  keys.one = (await app.key("user_owner", { vaultIds: ["vault_b"] })).secret
  keys.member = (await app.key("user_member")).secret
  keys.other = (await app.key("user_other")).secret
})

let counter = 0
/** Records transactions in vaults, an event each, in one batch; returns their hashes. */
const record = async (...vaultIds: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const made = vaultIds.map((vaultId) => transaction(vaultId, ++counter))
  await app.feed(made)
  return made.map(({ hash }) => String(hash))
}
const hashesOf = ({ json }: Answer): ReadonlyArray<string> =>
  json.data.map((one: { payload: { data: { transaction?: { hash: string } } } }) => one.payload.data.transaction?.hash ?? "")
const now = async (key: string): Promise<string> => (await app.get(`${FEED}?from=now`, key)).json.resumeCursor

describe("the event feed", () => {
  test("returns events after a cursor, oldest first, each once", async () => {
    const cursor = await now(keys.owner)
    const first = await record("vault_b", "vault_a", "vault_c", "vault_a")
    const second = await record("vault_a")
    const page = await app.get(`${FEED}?after=${cursor}`, keys.owner)
    expect([page.status, hashesOf(page)]).toEqual([200, [...first, ...second]])
    expect(page.json.pagination).toEqual({ limit: 100, nextCursor: null })
    const rest = await app.get(`${FEED}?after=${page.json.resumeCursor}`, keys.owner)
    expect([hashesOf(rest), rest.json.pagination.nextCursor]).toEqual([[], null])
    // Page by page the result is the same.
    let after = cursor
    const walked: Array<string> = []
    for (let left = 5; left > 0; left--) {
      const one = await app.get(`${FEED}?limit=1&after=${after}`, keys.owner)
      walked.push(...hashesOf(one))
      expect(one.json.pagination.nextCursor).toBe(left > 1 ? one.json.resumeCursor : null)
      after = one.json.resumeCursor
    }
    expect(walked).toEqual([...first, ...second])
  })

  test("shows events as the log does, with the payload byte for byte", async () => {
    const cursor = await now(keys.owner)
    await record("vault_a")
    const page = await app.get(`${FEED}?after=${cursor}`, keys.owner)
    const [event] = page.json.data
    const { deliveryCounts, matchedCount, ...logged } = (await app.get(`/v1/webhook-events/${event.id}`, keys.owner)).json
    expect([event, matchedCount]).toEqual([logged, 0])
    const [row] = await app.sql("SELECT payload FROM events WHERE id = $1", [event.id])
    expect(page.text).toContain(`"payload":${row?.payload},`)
    expect(JSON.stringify(event.payload)).toBe(String(row?.payload))
    expect(deliveryCounts.DELIVERED).toBe(0)
  })

  test("begins without a cursor at the oldest stored event", async () => {
    const pages = []
    for (let after = ""; ; ) {
      const { json } = await app.get(`${FEED}?limit=3${after}`, keys.owner)
      pages.push(json)
      if (json.pagination.nextCursor === null) break
      after = `&after=${json.pagination.nextCursor}`
    }
    const walked = pages.flatMap(({ data }) => data.map(({ id }: { id: string }) => id))
    const logged = (await app.walk("/v1/webhook-events", keys.owner)).map(({ id }) => id)
    expect([...walked].sort()).toEqual([...logged].sort())
    expect(walked).toEqual([...walked].sort())
  })

  test("shows a key what it may see and nothing else, whichever key got the cursor", async () => {
    const cursor = await now(keys.owner)
    const hashes = await record("vault_a", "vault_b", "vault_c", "vault_b", "vault_a")
    const [a, b, , d, e] = hashes
    expect(hashesOf(await app.get(`${FEED}?after=${cursor}`, keys.one))).toEqual([b ?? "", d ?? ""])
    expect(hashesOf(await app.get(`${FEED}?after=${cursor}`, keys.member))).toEqual([a ?? "", e ?? ""])
    expect(codeOf(await app.get(`${FEED}?after=${cursor}`, keys.other))).toBe("invalid_cursor")
  })

  test("shows a vault's events to who sees it, also after it moved to another entity", async () => {
    const cursor = await now(keys.member)
    const before = await record("vault_a", "vault_b", "vault_a")
    const moving = transaction("vault_a", ++counter)
    await app.feed([moving, vault("vault_a", "entity_b")])
    const [after = ""] = await record("vault_a")
    // The move is an event of both entities.
    const all = [before[0] ?? "", before[2] ?? "", String(moving["hash"]), "", "", after]
    expect(hashesOf(await app.get(`${FEED}?after=${cursor}`, keys.member))).toEqual(all)
    expect(hashesOf(await app.get(`${FEED}?after=${cursor}&vaultId=vault_a`, keys.member))).toEqual(all)
    const logged = await app.get("/v1/webhook-events?vaultId=vault_a&limit=6", keys.member)
    expect(hashesOf(logged).toSorted()).toEqual(all.toSorted())
    await app.feed([vault("vault_a", "entity_a")], { "x-record-events": "none" })
  })

  test("accepts filters, each repeatedly, and moves past events that they exclude", async () => {
    const cursor = await now(keys.owner)
    const [a, b, c] = await record("vault_a", "vault_b", "vault_c")
    const of = async (query: string, key = keys.owner) => hashesOf(await app.get(`${FEED}?after=${cursor}&${query}`, key))
    expect(await of("vaultId=vault_a")).toEqual([a ?? ""])
    expect(await of("vaultId=vault_c&vaultId=vault_a")).toEqual([a ?? "", c ?? ""])
    expect(await of("entityId=entity_b")).toEqual([b ?? "", c ?? ""])
    expect(await of("entityId=entity_b&entityId=entity_a&vaultId=vault_b")).toEqual([b ?? ""])
    expect(await of("kind=transaction.confirmed&kind=vault.created")).toEqual([a ?? "", b ?? "", c ?? ""])
    for (const query of ["kind=vault.created", "vaultId=vault_absent", "vaultId=%00", "entityId=entity_absent", "entityId=%00"])
      expect([query, await of(query)]).toEqual([query, []])
    expect(await of("vaultId=vault_b", keys.member)).toEqual([])
    const page = await app.get(`${FEED}?after=${cursor}&limit=1&kind=transaction.confirmed`, keys.owner)
    expect([hashesOf(page), page.json.pagination.nextCursor]).toEqual([[a ?? ""], page.json.resumeCursor])
    const last = await app.get(`${FEED}?after=${cursor}&limit=3&kind=transaction.confirmed`, keys.owner)
    expect([hashesOf(last).length, last.json.pagination.nextCursor]).toEqual([3, null])
  })

  test("cursors have one length, and are refused unless they are the feed's", async () => {
    const cursors = await Promise.all(Array.from({ length: 20 }, () => now(keys.one)))
    await record("vault_b")
    cursors.push(await now(keys.owner), (await app.get(FEED, keys.owner)).json.resumeCursor)
    expect(new Set(cursors).size).toBe(22)
    expect([...new Set(cursors.map(({ length }) => length))]).toEqual([cursors[0]?.length ?? 0])
    expect(cursors[0]?.length).toBeLessThanOrEqual(256)
    const list = await app.get("/v1/webhook-events?limit=1", keys.owner)
    for (const cursor of [
      "nonsense",
      "",
      `${cursors[0]}A`,
      `${cursors[0]?.startsWith("A") ? "B" : "A"}${cursors[0]?.slice(1)}`,
      list.json.pagination.nextCursor,
      "A".repeat(300)
    ]) {
      expect([cursor, codeOf(await app.get(`${FEED}?after=${cursor}`, keys.owner))]).toEqual([cursor, "invalid_cursor"])
    }
  })

  test("refuses unknown, invalid and contradictory parameters", async () => {
    const cursor = await now(keys.owner)
    for (const [query, code] of [
      ["limit=0", "invalid_parameter"],
      ["limit=501", "invalid_parameter"],
      ["limit=1&limit=2", "invalid_parameter"],
      ["kind=transaction.confirmd", "invalid_parameter"],
      ["kind=vault.created&kind=never.was", "invalid_parameter"],
      ["wait=31", "invalid_parameter"],
      ["wait=-1", "invalid_parameter"],
      ["wait=x", "invalid_parameter"],
      ["from=then", "invalid_parameter"],
      [`from=now&after=${cursor}`, "invalid_parameter"],
      [`after=${cursor}&after=${cursor}`, "invalid_parameter"],
      ["cursor=x", "unknown_parameter"],
      ["entity=x", "unknown_parameter"]
    ] as const) {
      expect([query, codeOf(await app.get(`${FEED}?${query}`, keys.owner))]).toEqual([query, code])
    }
  })

  test("a cursor older than the log gets 410, which names the oldest usable cursor", async () => {
    const cursor = await now(keys.owner)
    const [hash] = await record("vault_a")
    const old = await import("../../../src/events/feed/cursor.ts")
    const { sealing } = await import("../../../src/runtime/crypto/MasterKey.ts")
    const master = sealing(Buffer.from(app.env.MASTER_KEY ?? "", "base64"), undefined)
    const place = old.open(master, "org_a", cursor)
    const expired = old.seal(master, "org_a", { position: place?.position ?? 0, at: Date.now() - 31 * 86_400_000 - 1_000, id: null })
    for (const path of [FEED, `${FEED}/stream`]) {
      const answer = await app.get(`${path}?after=${expired}`, keys.owner)
      expect([path, answer.status, codeOf(answer)]).toEqual([path, 410, "cursor_expired"])
      const from = await app.get(`${FEED}?limit=500&after=${answer.json.oldestCursor}`, keys.owner)
      expect(hashesOf(from)).toContain(hash ?? "")
      expect(from.json.data.length).toBe((await app.walk("/v1/webhook-events", keys.owner)).length)
    }
  })
})

describe("waiting for events", () => {
  test("delays the response until there is an event that the key may see", async () => {
    const cursor = await now(keys.member)
    const startedAt = performance.now()
    const held = app.get(`${FEED}?after=${cursor}&wait=30`, keys.member)
    // An event that the key cannot see does not end the wait: it continues until a visible one is recorded.
    await record("vault_b", "vault_c")
    await record("vault_b")
    expect(await Promise.race([held, Bun.sleep(600).then(() => "held")])).toBe("held")
    const [hash] = await record("vault_a")
    expect(hashesOf(await held)).toEqual([hash ?? ""])
    expect(performance.now() - startedAt).toBeLessThan(25_000)
  })

  test("responds after the time is over with an empty page and an advanced cursor", async () => {
    const cursor = await now(keys.member)
    await record("vault_b")
    const startedAt = performance.now()
    const answer = await app.get(`${FEED}?after=${cursor}&wait=1`, keys.member)
    expect([answer.status, answer.json.data, answer.json.pagination.nextCursor]).toEqual([200, [], null])
    expect(performance.now() - startedAt).toBeGreaterThan(950)
  })

  test("a key that is revoked during the wait is refused within 5 seconds", async () => {
    const { key, secret } = await app.key("user_owner")
    const held = app.get(`${FEED}?from=now&wait=30`, secret)
    await Bun.sleep(300)
    const startedAt = performance.now()
    await app.sql("UPDATE api_keys SET revoked_at = now(), revoked_reason = 'revoked' WHERE id = $1", [key.id])
    expect(codeOf(await held)).toBe("revoked_api_key")
    expect(performance.now() - startedAt).toBeLessThan(25_000)
  })
})
