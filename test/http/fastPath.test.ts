/**
 * The fast paths of hot reads are faster and behave the same: each request is sent once in the plain form that they accept,
 * and once in an equivalent form that the framework handles.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import fc from "fast-check"
import { type Answer, useApp } from "../support/app.ts"
import { organization, smallest, transaction, user } from "../support/records.ts"
import { create } from "../support/webhookFixtures.ts"

const app = useApp()
const keys: { [who: string]: string | undefined } = {}

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    organization("org_z", ["ethereum"]),
    user("user_z", "org_z", []),
    ...Array.from({ length: 60 }, (_, index) =>
      transaction("vault_a", index, {
        direction: index % 2 === 0 ? "inbound" : "outbound",
        status: index % 3 === 0 ? "pending" : "confirmed",
        timestamp: `2024-03-01T10:00:${String(Math.floor(index / 3)).padStart(2, "0")}.000Z`
      })
    )
  ])
  keys["owner"] = (await app.key("user_a")).secret
  keys["stranger"] = (await app.key("user_z")).secret
  keys["without the scope"] = (await app.key("user_a", { scopes: ["webhook:read"] })).secret
  keys["only vaults"] = (await app.key("user_a", { scopes: ["vault:read"] })).secret
  keys["unknown"] = `${keys["owner"]?.slice(0, -4)}aaaa`
})

/** The same id with its last letter escaped, which only the framework's router accepts. */
const escaped = (id: string) => `${id.slice(0, -1)}%${id.charCodeAt(id.length - 1).toString(16)}`

/** The parts of a response that do not differ between requests. */
const comparable = ({ headers, status, text }: Answer) => ({
  status,
  headers: [...headers.keys()].sort(),
  type: headers.get("content-type"),
  cache: headers.get("cache-control"),
  // A cursor is encrypted anew in each response, and each request has its own id.
  text: text.replace(/"nextCursor":"[^"]*"/, '"nextCursor":"…"').replace(/"requestId":"[^"]*"/, '"requestId":"…"')
})

describe("the fast path of a vault's transactions", () => {
  test("responds as the framework does, for every key and every query", async () => {
    const first = await app.get("/v1/vaults/vault_a/transactions?limit=7", keys["owner"])
    const cursor = String(first.json.pagination.nextCursor)
    const parameter = fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom("limit=1", "limit=20", "limit=500", "status=pending", "status=confirmed", "status=failed") },
      { weight: 4, arbitrary: fc.constantFrom("direction=inbound", "direction=outbound", "network=ethereum", "network=solana") },
      { weight: 3, arbitrary: fc.constantFrom("asset=ethereum", `hash=0x${"0".repeat(63)}5`, "occurredAfter=2024-03-01T10:00:05Z") },
      { weight: 2, arbitrary: fc.constantFrom(`cursor=${cursor}`, `cursor=${cursor.slice(0, -1)}`, "cursor=abc") },
      { weight: 2, arbitrary: fc.constantFrom("limit=0", "limit=501", "limit=x", "status=done", "unknown=1", "occurredBefore=yesterday") }
    )
    const request = fc.record({
      who: fc.constantFrom("owner", "owner", "owner", "stranger", "without the scope", "unknown", "nobody"),
      vault: fc.constantFrom("vault_a", "vault_a", "vault_a", "vault_missing", "a"),
      query: fc.array(parameter, { maxLength: 4 })
    })
    const seen = new Set<number>()
    await fc.assert(
      fc.asyncProperty(request, async ({ query, vault, who }) => {
        const asked = query.length === 0 ? "" : `?${query.join("&")}`
        const [plain, other] = await Promise.all(
          [vault, escaped(vault)].map((id) => app.get(`/v1/vaults/${id}/transactions${asked}`, keys[who]))
        )
        if (plain === undefined || other === undefined) throw new Error("there is no answer")
        expect(comparable(plain)).toEqual(comparable(other))
        seen.add(plain.status)
      }),
      { numRuns: 300 }
    )
    expect([...seen].sort()).toEqual([200, 400, 401, 404])
  })

  test("continues from the framework's cursors, and the framework from its own", async () => {
    const walk = async (ids: ReadonlyArray<string>) => {
      const rows: Array<unknown> = []
      let cursor: string | null = null
      for (let page = 0; page === 0 || cursor !== null; page++) {
        const from: string = cursor === null ? "" : `&cursor=${cursor}`
        const { json, status } = await app.get(`/v1/vaults/${ids[page % ids.length]}/transactions?limit=7${from}`, keys["owner"])
        expect([status, json]).toMatchObject([200, {}])
        rows.push(...json.data)
        cursor = json.pagination.nextCursor
      }
      return rows
    }
    const rows = await walk(["vault_a"])
    expect(rows).toHaveLength(60)
    expect(await walk([escaped("vault_a")])).toEqual(rows)
    expect(await walk(["vault_a", escaped("vault_a")])).toEqual(rows)
  })
})

describe("the fast path of the event feed", () => {
  /** The same query with a letter of a name escaped. */
  const slow = (query: string) => query.replace("limit", "l%69mit").replace("after", "%61fter")
  const shown = ({ headers, status, text }: Answer) => ({
    ...comparable({ headers, status, text } as Answer),
    text: text
      .replace(/"(nextCursor|resumeCursor)":"[^"]*"/g, (_, name) => `"${name}":"…"`)
      .replace(/"requestId":"[^"]*"/, '"requestId":"…"')
  })

  test("responds as the framework does, for every key and every query", async () => {
    const { resumeCursor } = (await app.get("/v1/event-feed?limit=7", keys["owner"])).json
    const queries = [
      "limit=7",
      "limit=500",
      `after=${resumeCursor}`,
      `after=${resumeCursor}&limit=2`,
      `limit=2&after=${resumeCursor.slice(0, -1)}`,
      "after=abc",
      "limit=0",
      "limit=501",
      "limit=x",
      "limit=1&limit=2",
      "limit=5&unknown=1",
      "limit=5&kind=transaction.confirmed",
      "limit=5&wait=0",
      `from=now&after=${resumeCursor}`
    ]
    const seen = new Set<number>()
    for (const who of ["owner", "stranger", "without the scope", "only vaults", "unknown", "nobody"]) {
      for (const query of queries) {
        const [plain, other] = [
          await app.get(`/v1/event-feed?${query}`, keys[who]),
          await app.get(`/v1/event-feed?${slow(query)}`, keys[who])
        ]
        expect([who, query, shown(plain)]).toEqual([who, query, shown(other)])
        seen.add(plain.status)
      }
    }
    expect([...seen].sort()).toEqual([200, 400, 401, 403])
  })
})

describe("the fast paths of the event log and of webhooks", () => {
  test("respond as the framework does, for every key and every query", async () => {
    const { id: webhookId } = await create(app, keys["owner"] ?? "")
    await app.feed(Array.from({ length: 8 }, (_, index) => transaction("vault_a", 100 + index)))
    await app.sql(
      `WITH sent AS (
         INSERT INTO deliveries (id, event_id, webhook_id, organization_id, sequence, vault_id, kind, status, delivered_at)
         SELECT 'del_' || substr(id, 5), id, $1, organization_id, row_number() OVER (ORDER BY id), vault_id, kind, 'DELIVERED', now() FROM events WHERE kind = 'transaction.confirmed'
         RETURNING id, organization_id)
       INSERT INTO delivery_attempts (delivery_id, number, at, result, http_status, latency_ms, body_snippet, organization_id, webhook_id, process_id)
       SELECT id, 1, now(), '2xx', 200, 12, 'ok', organization_id, $1, '' FROM sent`,
      [webhookId]
    )
    const { data, pagination } = (await app.get("/v1/webhook-events?limit=3", keys["owner"])).json
    const sent = (await app.get(`/v1/webhooks/${webhookId}/deliveries?limit=3`, keys["owner"])).json
    expect([data.length, sent.data.length]).toEqual([3, 3])
    const lists = (path: string, cursor: string) => [
      path,
      `${path}?limit=2`,
      `${path}?limit=3&cursor=${cursor}`,
      `${path}?limit=3&cursor=${cursor.slice(0, -1)}`,
      `${path}?limit=2&kind=transaction.confirmed`,
      `${path}?limit=2&kind=unknown`,
      `${path}?limit=501`,
      `${path}?limit=2&limit=3`,
      `${path}?unknown=1`
    ]
    const targets = [
      ...lists("/v1/webhook-events", pagination.nextCursor),
      "/v1/webhook-events?vaultId=vault_a&limit=2",
      "/v1/webhook-events?occurredBefore=2030-01-01T00:00:00Z&limit=2",
      ...[data[0].id, "evt_missing"].flatMap((id) => [`/v1/webhook-events/${id}`, `/v1/webhook-events/${id}?unknown=1`]),
      ...[webhookId, "whs_missing"].flatMap((id) => [
        `/v1/webhooks/${id}`,
        `/v1/webhooks/${id}?limit=1`,
        ...lists(`/v1/webhooks/${id}/deliveries`, sent.pagination.nextCursor),
        `/v1/webhooks/${id}/deliveries?status=DELIVERED`,
        `/v1/webhooks/${id}/deliveries?sequence=2`,
        `/v1/webhooks/${id}/deliveries?eventId=${data[0].id}`
      ])
    ]
    const statuses = new Set<number>()
    for (const who of ["owner", "stranger", "without the scope", "only vaults", "unknown", "nobody"]) {
      for (const target of targets) {
        const [path = "", query] = target.split("?")
        const slow = `${escaped(path)}${query === undefined ? "" : `?${query}`}`
        const [plain, other] = await Promise.all([app.get(target, keys[who]), app.get(slow, keys[who])])
        expect([who, target, comparable(plain)]).toEqual([who, target, comparable(other)])
        statuses.add(plain.status)
      }
    }
    expect([...statuses].sort()).toEqual([200, 400, 401, 403, 404])
  })
})
