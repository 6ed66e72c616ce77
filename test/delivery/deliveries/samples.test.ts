/** Sample events that a ping sends: signed and valid as real ones, and outside of everything that counts. C-12. */
import { beforeAll, expect, test } from "bun:test"
import { verifySignature } from "../../../src/client/index.ts"
import { names } from "../../../src/events/log/Kind.ts"
import { useApp } from "../../support/app.ts"
import { feedOrganization, webhookOf } from "../../support/deliveryFixtures.ts"
import { misfits, node } from "../../support/jsonSchema.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { short } from "../../support/webhookFixtures.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), RATE_LIMIT: "off" }))
let key = ""
beforeAll(async () => {
  key = await feedOrganization(app, 2)
})

const ping = (id: string, body: unknown) => app.request("POST", `/v1/webhooks/${id}/ping`, { key, body })

test("a sample of every kind arrives signed, marked, and as its published schema says", async () => {
  const webhook = await webhookOf(app, key, 0, receiver.url("/samples"))
  const document = (await app.get("/v1/openapi.json")).json
  await until("a worker", async () => (await ping(webhook.id, {})).json.success === true)
  for (const kind of names) {
    const { json, status } = await ping(webhook.id, { eventKind: kind })
    expect([kind, status, json]).toEqual([kind, 200, expect.objectContaining({ success: true, result: "2xx" })])
    const { body, headers } = await until("the sample", () => receiver.to("/samples").at(-1))
    const event = JSON.parse(body)
    expect([event.id, event.kind, event.data.test]).toEqual([json.eventId, kind, true])
    expect(headers).toMatchObject({ "x-service-test": "true", "x-service-event-kind": kind, "webhook-id": json.eventId })
    expect(headers["webhook-sequence"]).toBeUndefined()
    expect(String((await verifySignature(body, headers, webhook.secret)).kind)).toBe(kind)
    const { schema } = node(node(node(node(document.webhooks[kind].post).requestBody).content)["application/json"])
    expect([kind, misfits(schema ?? {}, event, document)]).toEqual([kind, []])
  }
})

test("a ping without a kind is a webhook.ping, which has no mark of a sample", async () => {
  const { id } = await webhookOf(app, key, 1, receiver.url("/plain"), { status: "DISABLED" })
  for (const body of [undefined, {}]) expect((await ping(id, body)).json.success).toBe(true)
  for (const { body, headers } of receiver.to("/plain")) {
    expect(JSON.parse(body)).toMatchObject({ kind: "webhook.ping", data: { webhookId: id } })
    expect(headers["x-service-test"]).toBeUndefined()
  }
  expect(receiver.to("/plain")).toHaveLength(2)
})

test("an unknown kind is rejected, and nothing is sent", async () => {
  const { id } = await webhookOf(app, key, 1, receiver.url("/unsent"), { status: "DISABLED" })
  for (const eventKind of ["webhook.ping", "transaction.unheard", "", null, ["vault.created"]])
    expect([eventKind, short(await ping(id, { eventKind }))]).toEqual([eventKind, "400 invalid_body"])
  expect(short(await ping(id, { kind: "vault.created" }))).toBe("400 invalid_body")
  expect(receiver.to("/unsent")).toHaveLength(0)
})

test("a sample is in no log, chain, delivery or counter, and does not affect health", async () => {
  receiver.on("/failing", () => new Response("", { status: 500 }))
  const { id } = await webhookOf(app, key, 1, receiver.url("/failing"))
  const state = async () => [
    await app.sql(`SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM deliveries) AS deliveries,
      (SELECT count(*) FROM webhook_counters) AS counters, (SELECT count(*) FROM webhook_sequences) AS sequences`),
    (await app.get(`/v1/webhooks/${id}`, key)).json,
    (await app.get("/v1/event-checkpoints/latest?entityId=entity_1", key)).json.hash
  ]
  const before = await state()
  const { json } = await ping(id, { eventKind: "transaction.confirmed" })
  expect(json).toMatchObject({ success: false, result: "5xx" })
  expect(await state()).toEqual(before)
  expect(short(await app.get(`/v1/webhook-events/${json.eventId}`, key))).toBe("404 not_found")
  const [entry] = (await app.get("/v1/audit-log?action=webhook.pinged", key)).json.data
  expect(entry).toMatchObject({ target: { id }, changes: { eventKind: { old: null, new: "transaction.confirmed" } } })
})
