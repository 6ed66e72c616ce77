import { afterAll, beforeAll, expect, test } from "bun:test"
import { delivery, event, insertDeliveries, insertEvents, payloadOf } from "../../events/log/eventRows.ts"
import { App, type Record } from "../../support/app.ts"
import { codeOf } from "../../support/problem.ts"
import { Receiver, receiverEnv, until } from "../../support/receiver.ts"
import { transaction } from "../../support/records.ts"
import { create } from "../../support/webhookFixtures.ts"

const receiver = new Receiver()
const app = new App()
let key = ""

const base: ReadonlyArray<Record> = [
  { type: "network", name: "ethereum", kind: "mainnet" },
  { type: "asset", id: "ethereum/native", symbol: "ETH", name: "Ether", decimals: 18, network: "ethereum" },
  { type: "organization", id: "org_a", name: "A", networks: ["ethereum"] },
  { type: "entity", id: "entity_a", organizationId: "org_a", name: "A" },
  { type: "vault", id: "vault_a", entityId: "entity_a", label: "A", networks: ["ethereum"], createdAt: "2024-01-01T00:00:00Z" },
  {
    type: "user",
    id: "user_a",
    organizationId: "org_a",
    email: "a@example.com",
    name: "A",
    status: "active",
    organizationRole: "owner",
    vaultRoles: [{ vaultId: "vault_a", role: "developer" }]
  }
]

beforeAll(async () => {
  await receiver.open()
  // A proxy address without a server: a request through it would fail.
  const proxy = "http://127.0.0.1:9"
  await app.open(["api", "worker", "dispatcher"], { ...receiverEnv(receiver), HTTPS_PROXY: proxy, https_proxy: proxy, ALL_PROXY: proxy })
  await app.feed(base, { "x-record-events": "none" })
  key = (await app.key("user_a")).secret
})
afterAll(async () => {
  await app.close()
  await receiver.close()
})

test("a record becomes a signed request and a DELIVERED delivery, whatever proxy variables are set", async () => {
  const created = await app.request("POST", "/v1/webhooks", {
    key,
    body: { url: receiver.url("/hook"), entityIds: ["entity_a"], eventKinds: ["transaction.confirmed"], notificationEmail: "a@example.com" }
  })
  expect(created.status).toBe(201)
  await app.feed([
    {
      type: "transaction",
      vaultId: "vault_a",
      hash: "0xabc",
      network: "ethereum",
      status: "confirmed",
      direction: "inbound",
      asset: "ethereum/native",
      amount: "1.5",
      from: "0x1",
      to: "0x2",
      timestamp: "2024-02-01T00:00:00Z"
    }
  ])
  const request = await until("a request", () => receiver.to("/hook")[0])
  const delivered = await until("the delivery", async () => {
    const { json } = await app.get(`/v1/webhooks/${created.json.id}/deliveries`, key)
    return json.data[0]?.status === "DELIVERED" ? json.data[0] : undefined
  })
  const event = (await app.get(`/v1/webhook-events/${delivered.eventId}`, key)).json
  expect(JSON.parse(request.body)).toEqual(event.payload)
  expect(event).toMatchObject({
    kind: "transaction.confirmed",
    vaultIds: ["vault_a"],
    matchedCount: 1,
    deliveryCounts: { DELIVERED: 1, PENDING: 0 }
  })
  expect(delivered.attempts).toEqual([
    { at: expect.any(String), result: "2xx", httpStatus: 200, latencyMs: expect.any(Number), bodySnippet: "ok", detail: null }
  ])
  expect(request.headers).toMatchObject({
    "webhook-id": event.id,
    "x-service-attempt": "1",
    "x-service-delivery-id": delivered.id,
    "x-service-event-kind": "transaction.confirmed"
  })
})

test("a delivery carries the headers of the contract and no others", () => {
  const sent = Object.keys(receiver.to("/hook")[0]?.headers ?? {})
  expect(sent.sort()).toEqual([
    "connection",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "webhook-id",
    "webhook-sequence",
    "webhook-signature",
    "webhook-timestamp",
    "x-service-attempt",
    "x-service-delivery-id",
    "x-service-event-kind",
    "x-service-signature"
  ])
})

test("deliveries and redeliveries of a webhook are numbered without gaps, and pings are not", async () => {
  const first = await create(app, key, { url: receiver.url("/first") })
  const second = await create(app, key, { url: receiver.url("/second") })
  await app.feed([transaction("vault_a", 1), transaction("vault_a", 2), transaction("vault_a", 3)])
  await until("the deliveries", () => receiver.to("/first").length === 3 && receiver.to("/second").length === 3)
  const list = async (id: string) => app.walk(`/v1/webhooks/${id}/deliveries`, key)
  const [newest] = await list(first.id)
  expect((await app.request("POST", `/v1/webhooks/${first.id}/ping`, { key })).json.success).toBe(true)
  const again = await app.request("POST", `/v1/webhook-deliveries/${newest.id}/redeliver`, { key })
  expect([again.status, again.json.sequence]).toEqual([202, 4])
  await app.feed([transaction("vault_a", 4)])
  await until("the rest", () => receiver.to("/first").length === 6 && receiver.to("/second").length === 4)
  const numbers = async (id: string) => (await list(id)).map(({ sequence }) => sequence).sort()
  expect([await numbers(first.id), await numbers(second.id)]).toEqual([
    [1, 2, 3, 4, 5],
    [1, 2, 3, 4]
  ])
  // Every request names the number of its delivery; the ping has none.
  const byId = new Map((await list(first.id)).map(({ id, sequence }) => [id, sequence]))
  for (const { headers } of receiver.to("/first")) {
    const ping = headers["x-service-event-kind"] === "webhook.ping"
    expect(headers["webhook-sequence"]).toBe(ping ? undefined : String(byId.get(headers["x-service-delivery-id"])))
  }
  const found = await app.get(`/v1/webhooks/${first.id}/deliveries?sequence=4`, key)
  expect(found.json.data.map(({ id }: { id: string }) => id)).toEqual([again.json.id])
  for (const query of ["sequence=99", "sequence=4&status=CANCELED", "sequence=4&eventId=evt_x"])
    expect([query, (await app.get(`/v1/webhooks/${first.id}/deliveries?${query}`, key)).json.data]).toEqual([query, []])
  for (const sequence of ["0", "-1", "1.5", "x", "", "1e3", "9999999999999999"])
    expect([sequence, codeOf(await app.get(`/v1/webhooks/${first.id}/deliveries?sequence=${sequence}`, key))]).toEqual([
      sequence,
      "invalid_parameter"
    ])
})

test("an overdue delivery of an earlier day is sent and redelivered with its payload", async () => {
  const { id: webhookId } = await create(app, key, { url: receiver.url("/earlier") })
  const at = Date.now() - 3 * 86_400_000
  const old = event({ at })
  await insertEvents(app, [old])
  const overdue = delivery({ at, eventId: old.id, webhookId, status: "RETRYING" })
  await insertDeliveries(app, [overdue])
  const again = await app.request("POST", `/v1/webhook-deliveries/${overdue.id}/redeliver`, { key })
  expect(again.status).toBe(202)
  // The next sweep finds the overdue one.
  const delivered = () => app.walk(`/v1/webhooks/${webhookId}/deliveries?status=DELIVERED`, key)
  await until("both deliveries", async () => (await delivered()).length === 2)
  const sent = receiver.to("/earlier").map(({ body, headers }) => [headers["x-service-delivery-id"], headers["webhook-id"], body])
  expect(sent.sort()).toEqual([overdue.id, again.json.id].sort().map((id) => [id, old.id, payloadOf(old)]))
  for (const { attempts } of await delivered()) expect(attempts).toMatchObject([{ result: "2xx", httpStatus: 200 }])
})
