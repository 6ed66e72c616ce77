/** The event log over HTTP. Spec: Webhook event; List webhook events; Emission and log. Decisions D-2, D-9, D-28, D-31. */
import { beforeAll, describe, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { entity, transaction, vault } from "../../support/records.ts"
import { create, short, useKeys } from "../../support/webhookFixtures.ts"
import { delivery, type EventRow, event, insertDeliveries, insertEvents, payloadOf } from "./eventRows.ts"

const app = useApi()
const keys = useKeys(app)
const DAY = 86_400_000

/** The log's order: most recent first, ties by id. */
const newestFirst = (rows: ReadonlyArray<EventRow>) =>
  [...rows].sort((a, b) => (a.occurredAt === b.occurredAt ? (a.id < b.id ? 1 : -1) : a.occurredAt < b.occurredAt ? 1 : -1))
const ids = (rows: ReadonlyArray<{ readonly id: string }>) => rows.map(({ id }) => id)

describe("Emission and log", () => {
  test("every event is recorded, matched or not, with dispatchedAt null while dispatch is pending", async () => {
    // This app has no dispatcher: events that match a webhook stay pending, and the others have no deliveries to wait for.
    const webhook = await create(app, keys.owner)
    await app.feed([transaction("vault_a", 1), entity("entity_new", "org_a"), vault("vault_new", "entity_new")])
    await app.request("DELETE", `/v1/webhooks/${webhook.id}`, { key: keys.owner })
    const { json } = await app.get("/v1/webhook-events", keys.owner)
    const found = json.data.find(({ kind }: { kind: string }) => kind === "transaction.confirmed")
    // Nobody can see it yet, because nobody has a role on the new vault.
    const [unwanted] = await app.sql("SELECT dispatched_at FROM events WHERE kind = 'vault.created' AND vault_id = 'vault_new'")
    expect(Date.parse(String(unwanted?.["dispatched_at"]))).toBeGreaterThan(0)
    expect(found).toEqual({
      id: expect.stringMatching(/^evt_[0-9a-hjkmnp-tv-z]{26}$/),
      entityId: "entity_a",
      vaultIds: ["vault_a"],
      kind: "transaction.confirmed",
      schemaVersion: 1,
      payload: {
        id: found.id,
        kind: "transaction.confirmed",
        schemaVersion: 1,
        date: found.occurredAt,
        entityId: "entity_a",
        vaultIds: ["vault_a"],
        data: {
          vaultId: "vault_a",
          transaction: (await app.get("/v1/vaults/vault_a/transactions", keys.owner)).json.data[0],
          previous: null
        }
      },
      occurredAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      dispatchedAt: null,
      createdAt: expect.any(String)
    })
    const detail = await app.get(`/v1/webhook-events/${found.id}`, keys.owner)
    expect(detail.json).toEqual({
      ...found,
      matchedCount: 0,
      deliveryCounts: { PENDING: 0, RETRYING: 0, HELD: 0, DELIVERED: 0, FAILED: 0, CANCELED: 0 }
    })
    expect((await app.get(`/v1/webhook-events/${found.id}/deliveries`, keys.owner)).json).toEqual({ data: [] })
  })

  test("the log returns the recorded payload, key for key and digit for digit", async () => {
    const row = event({ vaultId: "vault_a2" })
    const odd = `{"id":"${row.id}","z":1.0,"a":{"b":[]},"n":10000000000000000000000001,"é":"\\u00e9 \\ud83d\\ude00","a":2}`
    await insertEvents(app, [row])
    await app.sql("UPDATE events SET payload = $2 WHERE id = $1", [row.id, odd])
    for (const target of [`/v1/webhook-events/${row.id}`, "/v1/webhook-events?vaultId=vault_a2"]) {
      expect((await app.get(target, keys.owner)).text).toContain(`"payload":${odd},"occurredAt"`)
    }
    await app.sql("UPDATE events SET payload = $2 WHERE id = $1", [row.id, payloadOf(row)])
  })

  test("GET /v1/webhook-events/{eventId}: event detail, including matchedCount and its deliveries by status", async () => {
    const [one, other] = [event(), event()]
    await insertEvents(app, [one, other])
    const webhook = await create(app, keys.owner)
    const hidden = await create(app, keys.owner, { entityIds: ["entity_a", "entity_b"] })
    const statuses = ["PENDING", "RETRYING", "RETRYING", "DELIVERED", "DELIVERED", "DELIVERED", "FAILED", "CANCELED"]
    await insertDeliveries(app, [
      ...statuses.map((status) => delivery({ eventId: one.id, webhookId: webhook.id, status })),
      delivery({ eventId: one.id, webhookId: hidden.id }),
      delivery({ eventId: other.id, webhookId: webhook.id })
    ])
    await app.sql("INSERT INTO event_dispatches (event_id, matched_count) VALUES ($1, 2)", [one.id])
    const { json } = await app.get(`/v1/webhook-events/${one.id}`, keys.owner)
    expect(json.matchedCount).toBe(2)
    expect(json.deliveryCounts).toEqual({ PENDING: 1, RETRYING: 2, HELD: 0, DELIVERED: 4, FAILED: 1, CANCELED: 1 })
    // A developer on one entity sees neither the webhook over two nor its deliveries.
    const seen = await app.get(`/v1/webhook-events/${one.id}`, keys.member)
    expect(seen.json.deliveryCounts).toEqual({ PENDING: 1, RETRYING: 2, HELD: 0, DELIVERED: 3, FAILED: 1, CANCELED: 1 })
    expect((await app.get(`/v1/webhook-events/${one.id}/deliveries`, keys.member)).json.data).toHaveLength(8)
  })
})

describe("GET /v1/webhook-events", () => {
  const kinds = ["transaction.confirmed", "transaction.failed", "vault.updated", "webhook.disabled"]
  const from = Date.parse("2030-01-01T00:00:00.000Z")
  const rows: ReadonlyArray<EventRow> = Array.from({ length: 300 }, (_, index) => {
    const kind = kinds[index % 4] ?? ""
    const vaultId = kind === "webhook.disabled" ? null : index % 5 === 0 ? "vault_b" : "vault_a"
    return event({
      kind,
      vaultId,
      entityId: vaultId === "vault_b" ? "entity_b" : "entity_a",
      // Two or more share a time, recorded in another order than they occurred.
      occurredAt: new Date(from + ((index * 37) % 100) * 60_000).toISOString()
    })
  })
  const at = (minutes: number, millis = 0) => new Date(from + minutes * 60_000 + millis).toISOString()
  /** Only these rows: events recorded by other tests occurred before. */
  const mine = `occurredAfter=${at(0)}`

  beforeAll(() => insertEvents(app, rows))

  test("most recent first, ties by id, in pages of any length", async () => {
    const expected = ids(newestFirst(rows))
    for (const limit of [7, 100, 299, 300, 301, 500, undefined]) {
      expect([limit, ids(await app.walk(`/v1/webhook-events?${mine}`, keys.owner, limit))]).toEqual([limit, expected])
    }
    const pages = await app.pages(`/v1/webhook-events?${mine}`, keys.owner, 100)
    expect(pages.map(({ pagination }) => [pagination.limit, pagination.nextCursor === null])).toEqual([
      [100, false],
      [100, false],
      [100, true]
    ])
    expect(ids(await app.walk(`/v1/webhook-events?${mine}&occurredBefore=${at(3)}`, keys.owner, 1))).toEqual(
      ids(newestFirst(rows.filter((row) => row.occurredAt <= at(3))))
    )
  })

  test("kind: exact event kind filter; vaultId: only vault-scoped events touching this vault; all filters together", async () => {
    const cases: ReadonlyArray<readonly [string, (row: EventRow) => boolean]> = [
      ...kinds.map((kind) => [`kind=${kind}`, (row: EventRow) => row.kind === kind] as const),
      ["kind=vault.created", () => false],
      ["vaultId=vault_a", (row) => row.vaultId === "vault_a"],
      ["vaultId=vault_b&kind=transaction.failed", (row) => row.vaultId === "vault_b" && row.kind === "transaction.failed"],
      ["vaultId=vault_a&kind=webhook.disabled", () => false],
      ["vaultId=vault_absent", () => false],
      ["vaultId=vault_z", () => false],
      ["vaultId=", () => false],
      ["vaultId=%00", () => false]
    ]
    for (const [query, fits] of cases) {
      for (const limit of [11, 500]) {
        expect([query, ids(await app.walk(`/v1/webhook-events?${mine}&${query}`, keys.owner, limit))]).toEqual([
          query,
          ids(newestFirst(rows.filter(fits)))
        ])
      }
    }
  })

  test("occurredAfter and occurredBefore: inclusive bounds on occurrence time, at both ends", async () => {
    const between = async (after: string, before: string, more = "") =>
      ids(
        await app.walk(
          `/v1/webhook-events?occurredAfter=${encodeURIComponent(after)}&occurredBefore=${encodeURIComponent(before)}${more}`,
          keys.owner,
          50
        )
      )
    const expected = (after: string, before: string) =>
      ids(newestFirst(rows.filter((row) => row.occurredAt >= after && row.occurredAt <= before)))
    for (const [after, before] of [
      [at(10), at(20)],
      [at(10), at(10)],
      [at(10, 1), at(20)],
      [at(10), at(20, -1)],
      [at(10, 1), at(11, -1)],
      [at(20), at(10)]
    ] as const) {
      expect([after, before, await between(after, before)]).toEqual([after, before, expected(after, before)])
    }
    expect(expected(at(10), at(10)).length).toBeGreaterThan(1)
    // Bounds finer than the stored precision: nothing earlier and nothing later is included.
    expect(await between(at(10).replace("Z", "001Z"), at(20))).toEqual(expected(at(10, 1), at(20)))
    expect(await between(at(10).replace("Z", "000Z"), at(20).replace("Z", "999Z"))).toEqual(expected(at(10), at(20)))
    // Any zone, with and without fractions.
    expect(await between("2030-01-01T02:10:00+02:00", "2029-12-31T19:20:00-05:00")).toEqual(expected(at(10), at(20)))
    expect(await between("2030-01-01T00:10:00Z", "2030-01-01T00:20:00Z", "&kind=transaction.failed")).toEqual(
      ids(newestFirst(rows.filter((row) => row.occurredAt >= at(10) && row.occurredAt <= at(20) && row.kind === "transaction.failed")))
    )
  })

  test("events recorded meanwhile do not shift pages", async () => {
    const first = await app.get(`/v1/webhook-events?${mine}&limit=50`, keys.owner)
    const late = [event({ occurredAt: at(500) }), event({ occurredAt: at(99) })]
    await insertEvents(app, late)
    const rest: Array<string> = []
    for (let cursor = first.json.pagination.nextCursor; cursor !== null; ) {
      const page = await app.get(`/v1/webhook-events?${mine}&limit=50&cursor=${cursor}`, keys.owner)
      rest.push(...ids(page.json.data))
      cursor = page.json.pagination.nextCursor
    }
    expect([...ids(first.json.data), ...rest]).toEqual(ids(newestFirst(rows)))
    await app.sql("DELETE FROM events WHERE id = ANY($1)", [ids(late)])
  })

  test("a cursor is bound to its filters and grants nothing to another key", async () => {
    const { json } = await app.get(`/v1/webhook-events?${mine}&limit=5`, keys.owner)
    const cursor = json.pagination.nextCursor
    for (const query of [
      "",
      `${mine}&kind=vault.updated`,
      `${mine}&vaultId=vault_a`,
      `occurredAfter=${at(1)}`,
      `${mine}&occurredBefore=${at(90)}`
    ])
      expect([query, short(await app.get(`/v1/webhook-events?${query}&cursor=${cursor}`, keys.owner))]).toEqual([
        query,
        "400 invalid_cursor"
      ])
    expect((await app.get(`/v1/webhook-events?${mine}&cursor=${cursor}`, keys.stranger)).json.data).toEqual([])
    const seen = (await app.get(`/v1/webhook-events?${mine}&cursor=${cursor}&limit=500`, keys.limited)).json.data
    expect(ids(seen)).toEqual(
      ids(newestFirst(rows).slice(5)).filter((id) => rows.some((row) => row.id === id && row.vaultId === "vault_a"))
    )
  })

  test("invalid filters are refused, never ignored", async () => {
    for (const [query, code] of [
      ["kind=x", "invalid_parameter"],
      ["kind=webhook.ping", "invalid_parameter"],
      ["kind=transaction.confirmed&kind=transaction.failed", "invalid_parameter"],
      ["kind=", "invalid_parameter"],
      ["occurredAfter=yesterday", "invalid_parameter"],
      ["occurredAfter=2030-01-01", "invalid_parameter"],
      ["occurredAfter=2030-01-01T00:00:00", "invalid_parameter"],
      ["occurredBefore=2030-02-30T00:00:00Z", "invalid_parameter"],
      ["occurredBefore=1893456000", "invalid_parameter"],
      ["vaultId=vault_a&vaultId=vault_b", "invalid_parameter"],
      ["occuredAfter=2030-01-01T00:00:00Z", "unknown_parameter"],
      ["eventId=x", "unknown_parameter"],
      ["limit=0", "invalid_parameter"],
      ["cursor=x", "invalid_cursor"]
    ] as const) {
      const answer = await app.get(`/v1/webhook-events?${query}`, keys.owner)
      expect([query, short(answer), answer.json.errors?.length]).toEqual([query, `400 ${code}`, 1])
    }
  })
})

describe("event log retention of 31 days", () => {
  test("events are visible for 31 days from recording, even if retention is late", async () => {
    const now = Date.now()
    const [inside, outside] = [event({ at: now - 31 * DAY + 60_000 }), event({ at: now - 31 * DAY - 1_000 })]
    // Recorded recently although it occurred long ago: the log shows it.
    const belated = event({ occurredAt: "2019-05-01T00:00:00.000Z" })
    await insertEvents(app, [inside, outside, belated])
    const { id: webhookId } = await create(app, keys.owner)
    const deliveries = [inside, outside].map((row, index) =>
      delivery({ eventId: row.id, webhookId, at: now - 31 * DAY + (index === 0 ? 60_000 : -1_000) })
    )
    await insertDeliveries(app, deliveries)
    const listed = ids(await app.walk(`/v1/webhook-events?occurredBefore=${new Date(now - DAY).toISOString()}`, keys.owner))
    expect(listed).toEqual([inside.id, belated.id])
    for (const path of ["", "/deliveries"]) {
      expect(short(await app.get(`/v1/webhook-events/${inside.id}${path}`, keys.owner))).toBe("200")
      expect(short(await app.get(`/v1/webhook-events/${outside.id}${path}`, keys.owner))).toBe("404 not_found")
    }
    expect(ids(await app.walk(`/v1/webhooks/${webhookId}/deliveries`, keys.owner))).toEqual([deliveries[0]?.id ?? ""])
    const redeliver = (index: number) =>
      app.request("POST", `/v1/webhook-deliveries/${deliveries[index]?.id}/redeliver`, { key: keys.owner })
    expect(short(await redeliver(1))).toBe("404 not_found")
    expect(short(await redeliver(0))).toBe("202")
  })
})

describe("a log of several days", () => {
  test("is paged across days: every page size returns every event once, newest first", async () => {
    const now = Date.now()
    const rows = Array.from({ length: 60 }, (_, index) => event({ at: now - index * 3 * 3_600_000, kind: "deposit_address.created" }))
    await insertEvents(app, rows)
    for (const limit of [1, 7, 8, 9, 20, 25, 500])
      expect([limit, ids(await app.walk("/v1/webhook-events?kind=deposit_address.created", keys.owner, limit))]).toEqual([
        limit,
        ids(newestFirst(rows))
      ])
    const before = new Date(now - 3 * DAY).toISOString()
    expect(ids(await app.walk(`/v1/webhook-events?kind=deposit_address.created&occurredBefore=${before}`, keys.owner, 7))).toEqual(
      ids(newestFirst(rows.filter(({ occurredAt }) => occurredAt <= before)))
    )
  })
})
