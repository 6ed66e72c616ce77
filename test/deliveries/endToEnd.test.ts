import { afterAll, beforeAll, expect, test } from "bun:test"
import { App, type Record } from "../support/app.ts"
import { Receiver, receiverEnv, until } from "../support/receiver.ts"

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
}, 60_000)
afterAll(async () => {
  await app.close()
  await receiver.close()
})

test("a record becomes a signed request at the receiver and a DELIVERED delivery in the API, whatever proxy variables are set (reliability T4)", async () => {
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
    { at: expect.any(String), result: "2xx", httpStatus: 200, latencyMs: expect.any(Number), bodySnippet: "ok" }
  ])
  expect(request.headers).toMatchObject({
    "webhook-id": event.id,
    "x-service-attempt": "1",
    "x-service-delivery-id": delivered.id,
    "x-service-event-kind": "transaction.confirmed"
  })
}, 30_000)

test("a delivery carries the headers of the contract and no others: no trace, no cookie, no authorization (reliability T22)", () => {
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
