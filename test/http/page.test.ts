import { beforeAll, describe, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import fc from "fast-check"
import { delivery, event, insertDeliveries, insertEvents } from "../events/log/eventRows.ts"
import { useApp } from "../support/app.ts"
import { address, asset, balance, entity, network, smallest, transaction, user, vault } from "../support/records.ts"
import { create } from "../support/webhookFixtures.ts"

const app = useApp()
let key = "",
  otherKey = ""

/** Asset ids of maximum length: the longest key that a cursor has to hold. */
const long = (number: number) => `ethereum/spl2022:${String(number).repeat(133)}`

/** Every paginated list; that of deliveries is added once there is a webhook. */
const lists = [
  "/v1/webhooks",
  "/v1/webhook-events",
  "/v1/vaults",
  "/v1/assets",
  "/v1/networks",
  "/v1/entities",
  "/v1/transactions",
  "/v1/balances",
  "/v1/vaults/vault_a/balances",
  "/v1/vaults/vault_a/transactions",
  "/v1/vaults/vault_a/addresses",
  "/v1/vaults/vault_a/statements",
  `/v1/vaults/vault_a/balance-history?asset=${encodeURIComponent(long(1))}`
]
/** A list's target, ready to take one more parameter. */
const open = (list: string) => `${list}${list.includes("?") ? "&" : "?"}`

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    network("bitcoin"),
    { type: "organization", id: "org_a", name: "A", networks: ["ethereum", "bitcoin"] },
    entity("entity_b", "org_a"),
    entity("entity_c", "org_a"),
    vault("vault_b", "entity_a"),
    user("user_a", "org_a", ["vault_a", "vault_b"], { organizationRole: "owner" }),
    ...[1, 2, 3, 4].map((number) => asset(long(number), { symbol: '"'.repeat(64), name: "Long" })),
    ...[1, 2, 3, 4].map((number) => balance("vault_a", long(number), "1")),
    ...[1, 2, 3, 4].map((number) => ({ ...balance("vault_a", long(1), String(number)), occurredAt: `2024-01-0${number}T00:00:00Z` })),
    ...[1, 2, 3].map((number) => address("vault_a", `address${number}`)),
    ...[1, 2, 3, 4].flatMap((number) => [transaction("vault_a", number), transaction("vault_b", number)])
  ])
  await app.sql("INSERT INTO statement_chains (vault_id, first_date, next_date) VALUES ('vault_a', '2024-01-01', '2024-01-04')")
  await app.sql(
    `INSERT INTO statements (vault_id, date, revision, sealed_at, hash, assets, jws)
     SELECT 'vault_a', date '2024-01-01' + n, 1, now(), repeat('0', 64), '[]', '' FROM generate_series(0, 2) n`
  )
  key = (await app.key("user_a")).secret
  otherKey = (await app.key("user_a", { scopes: ["vault:read", "webhook:read"] })).secret
  const { id: webhookId } = await create(app, key, { status: "DISABLED" })
  for (let count = 0; count < 2; count++) await create(app, key, { status: "DISABLED" })
  const sent = Array.from({ length: 3 }, () => event())
  await insertEvents(app, sent)
  await insertDeliveries(
    app,
    sent.map(({ id }) => delivery({ eventId: id, webhookId }))
  )
  lists.push(`/v1/webhooks/${webhookId}/deliveries`)
})

const cursorOf = async (target: string): Promise<string> => (await app.get(target, key)).json.pagination.nextCursor
const refused = async (target: string, code: string) => {
  const answer = await app.get(target, key)
  expect([target, answer.status, answer.json.code]).toEqual([target, 400, code])
  return answer
}

describe("the shape of list responses", () => {
  test("every paginated list has this shape and nothing else: no totals", async () => {
    expect(lists).toHaveLength(14)
    for (const list of lists) {
      const { headers, json } = await app.get(`${open(list)}limit=1`, key)
      expect([list, Object.keys(json), Object.keys(json.pagination)]).toEqual([list, ["data", "pagination"], ["limit", "nextCursor"]])
      expect([list, json.pagination]).toEqual([list, { limit: 1, nextCursor: expect.any(String) }])
      expect([list, json.data.length, headers.get("content-type")]).toEqual([list, 1, "application/json"])
    }
  })
})

describe("pages", () => {
  test("limit defaults to 100, and every integer from 1 to 500 is used as given", async () => {
    for (const list of lists) {
      expect((await app.get(list, key)).json.pagination.limit).toBe(100)
      for (const limit of [1, 2, 499, 500]) expect((await app.get(`${open(list)}limit=${limit}`, key)).json.pagination.limit).toBe(limit)
    }
  })

  test("any other limit gets 400 invalid_parameter, which names the field", async () => {
    for (const list of lists) {
      for (const bad of [
        "0",
        "-1",
        "501",
        "1e9",
        "1000000000",
        "abc",
        "",
        "1.5",
        "0x10",
        "%207",
        "7%20",
        "7%0A",
        "%00",
        "٣",
        "null",
        "9".repeat(400)
      ]) {
        const { json } = await refused(`${open(list)}limit=${bad}`, "invalid_parameter")
        expect(json.errors).toEqual([
          { in: "query", field: "limit", code: "invalid_parameter", detail: "must be a whole number from 1 to 500" }
        ])
      }
    }
  })

  test("a repeated parameter gets 400 invalid_parameter, even with equal values", async () => {
    for (const list of lists) {
      await refused(`${open(list)}limit=1&limit=1`, "invalid_parameter")
      await refused(`${open(list)}cursor=a&cursor=b`, "invalid_parameter")
    }
    const { json } = await refused("/v1/vaults/vault_a/transactions?status=pending&status=confirmed", "invalid_parameter")
    expect(json.errors).toEqual([{ in: "query", field: "status", code: "invalid_parameter", detail: "was given more than once" }])
  })

  test("a parameter outside the contract gets 400 unknown_parameter, whatever its name", async () => {
    const names = [
      "limt",
      "Limit",
      "offset",
      "page",
      "constructor",
      "__proto__",
      "__pro%74o__",
      "toString",
      "hasOwnProperty",
      "limit[]",
      "%ff",
      "",
      "é"
    ]
    for (const list of [...lists, "/v1/vaults/vault_a"]) {
      for (const name of names) {
        const { json } = await refused(`${open(list)}${name}=1`, "unknown_parameter")
        expect(json.errors).toHaveLength(1)
        expect(json.errors[0]).toMatchObject({ in: "query", code: "unknown_parameter" })
      }
      await refused(`${open(list)}limt=7&limit=7`, "unknown_parameter")
    }
    await refused("/v1/vaults/vault_a?limit=1", "unknown_parameter")
    await refused("/v1/vaults/vault_a/balances?status=pending", "unknown_parameter")
    await refused("/v1/networks?network=ethereum", "unknown_parameter")
  })

  test("every invalid parameter is named, each with a specific message", async () => {
    const { json } = await refused(
      "/v1/vaults/vault_a/transactions?status=done&direction=in&network=ETH&occurredAfter=today&hash=a%20b&asset=x",
      "invalid_parameter"
    )
    expect(Object.fromEntries(json.errors.map(({ detail, field }: { detail: string; field: string }) => [field, detail]))).toEqual({
      status: "must be one of pending, confirmed, failed, replaced, dropped",
      direction: "must be one of inbound, outbound",
      network: "must be a network name such as ethereum or bitcoin-testnet4",
      occurredAfter: "must be an ISO 8601 time with a zone, such as 2025-03-24T22:01:59Z",
      hash: "must be a transaction hash: 1 to 256 printable characters without spaces",
      asset: "must be an asset id such as ethereum/native or ethereum/erc20:0x…"
    })
  })

  test("nextCursor is null exactly on the last page, even if that page is full", async () => {
    for (const list of lists) {
      const total = (await app.walk(list, key)).length
      expect(total).toBeGreaterThan(1)
      for (let limit = 1; limit <= total + 1; limit++) {
        const pages = await app.pages(list, key, limit)
        expect([list, limit, pages.length]).toEqual([list, limit, Math.ceil(total / limit)])
        for (const page of pages.slice(0, -1)) expect(page.data).toHaveLength(limit)
      }
    }
  })
})

describe("cursors", () => {
  test("a cursor is base64url of at most 256 characters, even for the longest ids", async () => {
    for (const list of lists) {
      for (const page of await app.pages(list, key, 1)) {
        if (page.pagination.nextCursor !== null) expect(page.pagination.nextCursor).toMatch(/^[A-Za-z0-9_-]{1,256}$/)
      }
    }
  })

  test("a cursor reveals nothing of its row", async () => {
    const cursor = await cursorOf("/v1/vaults?limit=1")
    const bytes = Buffer.from(cursor, "base64url").toString("latin1")
    for (const word of ["vault", "2024"]) expect(bytes).not.toContain(word)
    expect(await cursorOf("/v1/vaults?limit=1")).not.toBe(cursor)
  })

  test("a cursor works repeatedly, with another limit and with another key", async () => {
    for (const list of lists) {
      const rows = await app.walk(list, key)
      const cursor = await cursorOf(`${open(list)}limit=1`)
      for (const [limit, secret] of [
        [1, key],
        [2, key],
        [500, otherKey],
        [1, key]
      ] as const) {
        const answer = await app.get(`${open(list)}limit=${limit}&cursor=${cursor}`, secret)
        expect(answer.json.data).toEqual(rows.slice(1, 1 + limit))
      }
    }
  })

  test("a malformed cursor gets 400 invalid_cursor, which names the field", async () => {
    const garbage = [
      "",
      "a",
      "null",
      "AAAA",
      "....",
      "%00",
      "%ff",
      "é",
      "' OR 1=1",
      "A".repeat(256),
      "A".repeat(257),
      "A".repeat(7_000),
      randomBytes(60).toString("base64url")
    ]
    for (const list of lists) {
      for (const bad of garbage) {
        const { json } = await refused(`${open(list)}cursor=${bad}`, "invalid_cursor")
        expect(json.errors).toMatchObject([{ in: "query", field: "cursor", code: "invalid_cursor" }])
      }
    }
  })

  test("a cursor with any bit flipped, cut or lengthened gets 400 invalid_cursor", async () => {
    const cursor = await cursorOf("/v1/vaults/vault_a/transactions?limit=1")
    const bytes = Buffer.from(cursor, "base64url")
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 0, max: 7 }), async (at, bit) => {
        const flipped = Buffer.from(bytes)
        flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << bit), at)
        await refused(`/v1/vaults/vault_a/transactions?cursor=${flipped.toString("base64url")}`, "invalid_cursor")
      }),
      { numRuns: 60 }
    )
    await refused(`/v1/vaults/vault_a/transactions?cursor=${cursor.slice(0, -4)}`, "invalid_cursor")
    await refused(`/v1/vaults/vault_a/transactions?cursor=${cursor}AAAA`, "invalid_cursor")
  })

  test("only the exact text that was issued is a cursor, on every list", async () => {
    const { paths } = (await app.get("/v1/openapi.json")).json
    const paged = Object.keys(paths).filter((path) =>
      paths[path].get?.parameters?.some((one: { readonly name: string }) => one.name === "cursor")
    )
    const webhookId = /whs_\w+/.exec(lists.join())?.[0] ?? ""
    await app.sql(
      `INSERT INTO recoveries (id, webhook_id, organization_id, status, since, until, include, position, last_position, completed_at)
       SELECT 'rcv_' || n, $1, 'org_a', 'COMPLETED', now(), now(), '{MISSED}', 0, 0, now() FROM generate_series(1, 2) n`,
      [webhookId]
    )
    await app.sql(
      `INSERT INTO event_checkpoints (entity_id, at, count, hash, position)
       SELECT 'entity_a', date_trunc('hour', now()) - n * interval '1 hour', 0, decode(repeat('00', 32), 'hex'), 0 FROM generate_series(1, 2) n`
    )
    // Those with tests of their own, too: the audit log has the webhooks that were created.
    const all = [...lists, "/v1/audit-log", "/v1/event-checkpoints?entityId=entity_a", `/v1/webhooks/${webhookId}/recoveries`]
    const patterns = all.map((list) =>
      list
        .replace("vault_a", "{vaultId}")
        .replace(/\?.*/, "")
        .replace(/whs_\w+/, "{webhookId}")
    )
    expect(patterns.sort()).toEqual(paged.sort())
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for (const list of all) {
      const cursor = await cursorOf(`${open(list)}limit=1`)
      const others = [
        ...[...alphabet, "=", "%3D%3D", "%2B", ".", "%20"].map((more) => `${cursor}${more}`),
        ...[...alphabet].map((last) => `${cursor.slice(0, -1)}${last}`).filter((other) => other !== cursor)
      ]
      await Promise.all(others.map((other) => refused(`${open(list)}cursor=${other}`, "invalid_cursor")))
      expect((await app.get(`${open(list)}cursor=${cursor}`, key)).status).toBe(200)
    }
  })

  test("a cursor of another list, vault or filter gets 400 invalid_cursor", async () => {
    const cursors = await Promise.all(lists.map((list) => cursorOf(`${open(list)}limit=1`)))
    for (const [index, list] of lists.entries()) {
      for (const [other, cursor] of cursors.entries()) {
        const { status } = await app.get(`${open(list)}cursor=${cursor}`, key)
        expect([list, lists[other], status]).toEqual([list, lists[other], index === other ? 200 : 400])
      }
    }
    const cursor = await cursorOf("/v1/vaults/vault_a/transactions?limit=1")
    await refused(`/v1/vaults/vault_b/transactions?cursor=${cursor}`, "invalid_cursor")
    await refused(`/v1/vaults/vault_a/transactions?status=confirmed&cursor=${cursor}`, "invalid_cursor")
    const filtered = await cursorOf("/v1/vaults/vault_a/transactions?status=confirmed&network=ethereum&limit=1")
    await refused(`/v1/vaults/vault_a/transactions?cursor=${filtered}`, "invalid_cursor")
    await refused(`/v1/vaults/vault_a/transactions?status=pending&network=ethereum&cursor=${filtered}`, "invalid_cursor")
    // Neither the order of parameters nor the letter case of an EVM contract is part of the filter.
    expect((await app.get(`/v1/vaults/vault_a/transactions?network=ethereum&cursor=${filtered}&status=confirmed`, key)).status).toBe(200)
  })

  test("a cursor grants nothing: a key that cannot see the vault gets 404", async () => {
    const cursor = await cursorOf("/v1/vaults/vault_a/transactions?limit=1")
    const { secret } = await app.key("user_a", { vaultIds: ["vault_b"] })
    expect((await app.get(`/v1/vaults/vault_a/transactions?cursor=${cursor}`, secret)).status).toBe(404)
    expect((await app.get(`/v1/vaults?cursor=${await cursorOf("/v1/vaults?limit=1")}`, secret)).json.data).toEqual([])
  })

  test("a cursor works in every process, and after the master key was rotated", async () => {
    const cursor = await cursorOf("/v1/vaults/vault_a/transactions?limit=1")
    const rotatedKey = randomBytes(32).toString("base64")
    const rotated = await app.start(["api"], { MASTER_KEY: rotatedKey, MASTER_KEY_PREVIOUS: app.env.MASTER_KEY ?? "" })
    const target = `/v1/vaults/vault_a/transactions?limit=2&cursor=${cursor}`
    const answer = await fetch(`${rotated.baseUrl}${target}`, { headers: { authorization: `Bearer ${key}` } })
    expect(await answer.json()).toMatchObject({ data: (await app.get(target, key)).json.data })
    // Without the previous key.
    const later = await app.start(["api"], { MASTER_KEY: rotatedKey })
    expect((await fetch(`${later.baseUrl}${target}`, { headers: { authorization: `Bearer ${key}` } })).status).toBe(400)
  })
})
