/** What consumers can rely on, and the histories that they can read. Spec: Delivery contract; Webhook operations. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { App } from "../../support/app.ts"
import { Receiver, receiverEnv, until } from "../../support/receiver.ts"
import { transaction } from "../../support/records.ts"
import { create, useKeys } from "../../support/webhookFixtures.ts"
import { type DeliveryRow, delivery, type EventRow, event, insertDeliveries, insertEvents } from "./eventRows.ts"

const receiver = new Receiver()
const app = new App()

beforeAll(async () => {
  await receiver.open()
  await app.open(["api", "worker", "dispatcher"], { ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,3s,3s" })
})
afterAll(async () => {
  await app.close()
  await receiver.close()
})
const keys = useKeys(app)

const deliveriesOf = async (webhookId: string, query = "") =>
  (await app.get(`/v1/webhooks/${webhookId}/deliveries${query}`, keys.owner)).json.data

describe("Delivery contract", () => {
  test("delivery is at-least-once; consumers deduplicate on the event id", async () => {
    // The consumer accepts the first request, and the service is killed before it records that.
    const arrived = Promise.withResolvers<void>()
    const killed = Promise.withResolvers<void>()
    receiver.on("/twice", async (_, count) => {
      if (count > 1) return new Response("ok")
      arrived.resolve()
      await killed.promise
      return new Response("ok")
    })
    const webhook = await create(app, keys.owner, { url: receiver.url("/twice"), vaultIds: ["vault_a"] })
    await app.feed([transaction("vault_a", 1)])
    await arrived.promise
    await app.main?.end("SIGKILL")
    killed.resolve()
    app.main = await app.start(["api", "worker", "dispatcher"])
    const [first, second] = await until("a second request", () => (receiver.to("/twice").length > 1 ? receiver.to("/twice") : undefined))
    expect([second?.body, second?.headers["webhook-id"]]).toEqual([first?.body, first?.headers["webhook-id"]])
    const history = await until("the delivery", async () => (await deliveriesOf(webhook.id, "?status=DELIVERED"))[0])
    expect(history.attempts.map(({ result }: { result: string }) => result)).toEqual(["interrupted", "2xx"])
    expect(receiver.to("/twice").length).toBe(2)
    await app.request("DELETE", `/v1/webhooks/${webhook.id}`, { key: keys.owner })
  })

  test("delivery is unordered; consumers order by the event date, not by arrival", async () => {
    // The first event is refused until the second has arrived.
    let refused = ""
    const accepted = new Map<string, string>()
    receiver.on("/order", ({ body, headers }) => {
      const id = headers["webhook-id"] ?? ""
      refused ||= id
      if (id === refused && accepted.size === 0) return new Response("", { status: 500 })
      accepted.set(id, body)
      return new Response("")
    })
    await create(app, keys.owner, { url: receiver.url("/order"), vaultIds: ["vault_a2"], eventKinds: ["transaction.confirmed"] })
    await app.feed([transaction("vault_a2", 11)])
    await until("the first request", () => receiver.to("/order")[0])
    await app.feed([transaction("vault_a2", 12)])
    await until("both deliveries", () => accepted.size === 2)
    const dates = [...accepted.values()].map((body): string => JSON.parse(body).date)
    expect(new Set(dates).size).toBe(2)
    expect(dates).toEqual([...dates].sort().reverse())
    // The log is ordered by date, newest first, whatever the order of arrival.
    const log = await app.walk("/v1/webhook-events?vaultId=vault_a2", keys.owner)
    expect(log.map(({ occurredAt }) => occurredAt)).toEqual([...dates].sort().reverse())
  })
})

describe("GET /v1/webhooks/{webhookId}/deliveries: delivery history with per-attempt detail", () => {
  const statuses = ["PENDING", "RETRYING", "DELIVERED", "FAILED", "CANCELED"]
  const kinds = ["transaction.confirmed", "balance.updated", "vault.created"]
  let webhookId = ""
  let rows: ReadonlyArray<DeliveryRow> = []
  let events: ReadonlyArray<EventRow> = []

  beforeAll(async () => {
    // Nothing is sent: the webhook is disabled, and waiting deliveries are due in an hour.
    webhookId = (await create(app, keys.owner, { status: "DISABLED" })).id
    const start = Date.now() - 3_600_000
    events = Array.from({ length: 60 }, (_, index) => event({ at: start + index * 1_000, kind: kinds[index % 3] ?? "" }))
    rows = events.map(({ id, kind }, index) =>
      delivery({ at: start + Math.floor(index / 2) * 2_000, eventId: id, webhookId, kind, status: statuses[index % 5] ?? "" })
    )
    await insertEvents(app, events)
    await insertDeliveries(app, rows)
  })

  const expected = (keep: (row: DeliveryRow) => boolean) =>
    rows
      .filter(keep)
      .sort((a, b) => (a.createdAt === b.createdAt ? (a.id < b.id ? 1 : -1) : a.createdAt < b.createdAt ? 1 : -1))
      .map(({ id }) => id)
  const listed = async (query: string, limit: number) =>
    (await app.walk(`/v1/webhooks/${webhookId}/deliveries${query}`, keys.owner, limit)).map(({ id }) => id)

  test("newest first, with every filter and inclusive bounds, in pages of any length", async () => {
    const [after, before] = [rows[10]?.createdAt ?? "", rows[40]?.createdAt ?? ""]
    const cases: ReadonlyArray<readonly [string, (row: DeliveryRow) => boolean]> = [
      ["", () => true],
      ...statuses.map((status) => [`?status=${status}`, (row: DeliveryRow) => row.status === status] as const),
      ["?status=FAILED&status=CANCELED", ({ status }) => ["FAILED", "CANCELED"].includes(status)],
      ["?status=FAILED&status=FAILED", ({ status }) => status === "FAILED"],
      ...kinds.map((kind) => [`?kind=${kind}`, (row: DeliveryRow) => row.kind === kind] as const),
      [
        "?kind=vault.created&status=DELIVERED&status=PENDING",
        ({ kind, status }) => kind === "vault.created" && ["DELIVERED", "PENDING"].includes(status)
      ],
      ["?kind=transaction.reorged", () => false],
      [`?eventId=${rows[7]?.eventId}`, ({ eventId }) => eventId === rows[7]?.eventId],
      [`?eventId=${rows[7]?.eventId}&status=PENDING`, (row) => row === rows[7] && row.status === "PENDING"],
      ["?eventId=evt_absent", () => false],
      [`?createdAfter=${after}`, ({ createdAt }) => createdAt >= after],
      [`?createdBefore=${before}`, ({ createdAt }) => createdAt <= before],
      [
        `?createdAfter=${after}&createdBefore=${before}&status=DELIVERED`,
        ({ createdAt, status }) => createdAt >= after && createdAt <= before && status === "DELIVERED"
      ]
    ]
    for (const [query, keep] of cases) {
      for (const limit of [7, 500]) expect([query, limit, await listed(query, limit)]).toEqual([query, limit, expected(keep)])
    }
    expect(expected(cases[1]?.[1] ?? (() => false)).length).toBe(12)
  })

  test("invalid filters are refused, never ignored", async () => {
    for (const query of ["?status=SENT", "?kind=*", "?state=FAILED", "?createdAfter=yesterday", "?eventId=a&eventId=b"]) {
      const { json, status } = await app.get(`/v1/webhooks/${webhookId}/deliveries${query}`, keys.owner)
      expect([query, status, /^(invalid|unknown)_parameter$/.test(json.code)]).toEqual([query, 400, true])
    }
  })

  test("GET /v1/webhook-events/{eventId}/deliveries: in full, without pagination; empty for a dispatched event that no webhook matched", async () => {
    const [one] = rows
    const full = await app.get(`/v1/webhook-events/${one?.eventId}/deliveries`, keys.owner)
    expect(full.json).toEqual({ data: [expect.objectContaining({ id: one?.id, eventId: one?.eventId, webhookId })] })
    const lonely = event()
    await insertEvents(app, [lonely])
    expect((await app.get(`/v1/webhook-events/${lonely.id}/deliveries`, keys.owner)).json).toEqual({ data: [] })
    expect((await app.get(`/v1/webhook-events/${lonely.id}`, keys.owner)).json).toMatchObject({
      matchedCount: 0,
      dispatchedAt: expect.any(String)
    })
  })

  test("every delivery status says when the next attempt is due or how it ended", async () => {
    const shown = await deliveriesOf(webhookId, "?limit=500")
    for (const { deliveredAt, failureReason, nextAttemptAt, status } of shown) {
      const waits = status === "PENDING" || status === "RETRYING"
      expect([status, nextAttemptAt !== null, deliveredAt !== null, failureReason]).toEqual([
        status,
        waits,
        status === "DELIVERED",
        status === "FAILED" ? "EXHAUSTED" : status === "CANCELED" ? "WEBHOOK_DISABLED" : null
      ])
    }
    expect([...new Set(shown.map(({ status }: { status: string }) => status))].sort()).toEqual([...statuses].sort())
  })
})
