/**
 * Which webhooks get an event, what the log shows of it, and what a delivery shows: with the real dispatcher, over every
 * combination of entity, kind, vault filter and status. Spec: Webhook; Delivery; Emission and log; List event
 * deliveries. Decisions D-19, D-22, D-28.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import * as Id from "../../../src/values/Id.ts"
import { type Answer, useApp } from "../../support/app.ts"
import { deliveryWhen, feedOrganization } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { balance, entity, organization, transaction, user, vault } from "../../support/records.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1s" }))
let key = ""

interface Hook {
  readonly path: string
  readonly entityIds: ReadonlyArray<string>
  readonly eventKinds: ReadonlyArray<string>
  readonly vaultIds: ReadonlyArray<string> | null
  readonly end?: "disabled" | "deleted"
  id: string
}
const kinds = ["transaction.confirmed", "balance.updated", "webhook.secret_rotated"]
const hook = (path: string, entities: ReadonlyArray<number>, more: Partial<Hook> = {}): Hook => ({
  path,
  entityIds: entities.map((number) => `entity_${number}`),
  eventKinds: kinds,
  vaultIds: null,
  id: "",
  ...more
})
/** `vault_0` and `vault_2` belong to `entity_0`, `vault_1` to `entity_1`. */
const hooks: ReadonlyArray<Hook> = [
  hook("/whole-entity", [0]),
  hook("/one-vault", [0], { vaultIds: ["vault_0"] }),
  hook("/other-vault", [0], { vaultIds: ["vault_2"] }),
  hook("/both-vaults", [0], { vaultIds: ["vault_0", "vault_2"] }),
  hook("/one-kind", [0], { eventKinds: ["transaction.confirmed"] }),
  hook("/other-kind", [0], { eventKinds: ["transaction.failed"] }),
  hook("/other-entity", [1]),
  hook("/two-entities", [0, 1]),
  hook("/two-entities-one-vault", [0, 1], { vaultIds: ["vault_1"] }),
  hook("/disabled", [0], { end: "disabled" }),
  hook("/deleted", [0], { end: "deleted" })
]

/** The events that a webhook should receive, by the specification and D-28. */
const matches = (one: Hook, event: Answer["json"]): boolean =>
  one.end === undefined &&
  one.entityIds.includes(event.entityId) &&
  one.eventKinds.includes(event.kind) &&
  (one.vaultIds === null || event.vaultIds === null || event.vaultIds.some((id: string) => one.vaultIds?.includes(id)))

let events: ReadonlyArray<Answer["json"]> = []

beforeAll(async () => {
  key = await feedOrganization(app, 3)
  await app.feed(
    [vault("vault_2", "entity_0"), user("user_a", "org_a", ["vault_0", "vault_1", "vault_2"], { organizationRole: "owner" })],
    { "x-record-events": "none" }
  )
  for (const one of hooks) {
    const { end: _, id: __, path, ...settings } = one
    const answer = await app.request("POST", "/v1/webhooks", {
      key,
      body: { ...settings, url: receiver.url(path), notificationEmail: "ops@example.com" }
    })
    if (answer.status !== 201) throw new Error(`the webhook ${path} was refused: ${answer.text}`)
    one.id = answer.json.id
  }
  for (const { end, id } of hooks) {
    if (end === "disabled") await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "DISABLED" } })
    if (end === "deleted") await app.request("DELETE", `/v1/webhooks/${id}`, { key })
  }
  const vaults = ["vault_0", "vault_1", "vault_2"]
  await app.feed([
    ...vaults.flatMap((id, index) => [
      transaction(id, 100 + index),
      transaction(id, 200 + index, { status: "failed" }),
      transaction(id, 300 + index, { status: "pending" }),
      balance(id, "ethereum/native", "1")
    ])
  ])
  await app.request("POST", `/v1/webhooks/${hooks[0]?.id}/rotate-secret`, { key })
  await app.request("POST", `/v1/webhooks/${hooks[6]?.id}/rotate-secret`, { key })
  events = await until("the dispatch of every event and the end of every delivery", async () => {
    const all = await app.walk("/v1/webhook-events", key)
    // Read after the events: before, the deliveries of one that is dispatched meanwhile would be missing.
    const [row] = await app.sql("SELECT count(*) AS waiting FROM deliveries WHERE status IN ('PENDING', 'RETRYING', 'HELD')")
    return all.length === 14 && all.every(({ dispatchedAt }) => dispatchedAt !== null) && Number(row?.["waiting"]) === 0 && all
  })
})

const received = (path: string) => receiver.to(path).map(({ headers }) => headers["webhook-id"] ?? "")
const deliveriesOf = async (eventId: string): Promise<ReadonlyArray<Answer["json"]>> =>
  (await app.get(`/v1/webhook-events/${eventId}/deliveries`, key)).json.data

describe("Webhook: entities, event types and the vault filter", () => {
  test("each active webhook receives the events of its entities, kinds and vaults once", () => {
    for (const one of hooks) {
      const wanted = events.filter((event) => matches(one, event)).map(({ id }) => id)
      expect([one.path, received(one.path).sort()]).toEqual([one.path, wanted.sort()])
    }
    // Events without a vault pass every filter, and each of the others is excluded by one.
    expect(receiver.to("/other-vault").map(({ headers }) => headers["x-service-event-kind"])).toContain("webhook.secret_rotated")
    expect(hooks.filter(({ path }) => received(path).length === 0).map(({ path }) => path)).toEqual(["/disabled", "/deleted"])
  })

  test("events from before a webhook was enabled are not sent to it afterwards", async () => {
    const one = hooks.find(({ path }) => path === "/disabled")
    const before = events.length
    await app.request("PATCH", `/v1/webhooks/${one?.id}`, { key, body: { status: "ACTIVE" } })
    await app.feed([transaction("vault_0", 900)])
    const delivery = await deliveryWhen(app, key, one?.id ?? "", ({ status }) => status === "DELIVERED")
    expect(received("/disabled")).toEqual([delivery.eventId])
    expect(events.some(({ id }) => id === delivery.eventId)).toBe(false)
    expect(await app.walk("/v1/webhook-events", key)).toHaveLength(before + 1)
  })
})

describe("Emission and log", () => {
  test("an event that no webhook matched is recorded and dispatched with matchedCount 0", async () => {
    const lonely = events.filter((event) => !hooks.some((one) => matches(one, event)))
    const pending = Array.from({ length: 3 }, () => "transaction.pending")
    expect(lonely.map(({ kind }) => kind).sort()).toEqual(["transaction.failed", ...pending])
    for (const { id } of lonely) {
      const { json } = await app.get(`/v1/webhook-events/${id}`, key)
      expect([json.matchedCount, await deliveriesOf(id)]).toEqual([0, []])
      expect(Date.parse(json.dispatchedAt)).toBeGreaterThanOrEqual(Date.parse(json.createdAt))
    }
  })

  test("matchedCount is how many webhooks matched at dispatch, whatever happens later", async () => {
    for (const event of events) {
      const wanted = hooks.filter((one) => matches(one, event)).map(({ id }) => id)
      const { json } = await app.get(`/v1/webhook-events/${event.id}`, key)
      expect([event.kind, json.matchedCount, json.deliveryCounts.DELIVERED]).toEqual([event.kind, wanted.length, wanted.length])
      const deliveries = await deliveriesOf(event.id)
      expect(deliveries.map(({ webhookId }) => webhookId).sort()).toEqual(wanted.sort())
      // Decision D-33: dispatching the event again derives the same ids, which the primary key rejects.
      for (const { id, webhookId } of deliveries) expect(id).toBe(Id.derivedFrom("del", event.id, webhookId))
    }
    const [event] = events.filter((one) => one.kind === "transaction.confirmed" && one.vaultIds[0] === "vault_1")
    const [first] = await deliveriesOf(event.id)
    await app.request("POST", `/v1/webhook-deliveries/${first.id}/redeliver`, { key })
    await until("the redelivery", async () => (await deliveriesOf(event.id)).every(({ status }) => status === "DELIVERED"))
    await app.request("DELETE", `/v1/webhooks/${hooks.find(({ path }) => path === "/other-entity")?.id}`, { key })
    const { json } = await app.get(`/v1/webhook-events/${event.id}`, key)
    expect([json.matchedCount, json.deliveryCounts.DELIVERED]).toEqual([3, 4])
  })

  test("payload and every sent body are the same bytes", async () => {
    for (const { id, occurredAt } of events) {
      const { text } = await app.get(`/v1/webhook-events/${id}`, key)
      const bodies = receiver.requests.filter(({ headers }) => headers["webhook-id"] === id).map(({ body }) => body)
      for (const body of bodies) {
        expect([id, text.includes(`"payload":${body},"occurredAt":"${occurredAt}"`)]).toEqual([id, true])
        expect(JSON.parse(body)).toMatchObject({ id, date: occurredAt, kind: expect.any(String), schemaVersion: 1 })
      }
    }
  })
})

describe("Delivery", () => {
  test("exactly the fields of a delivery, each attempt with its detail", async () => {
    const [delivery] = await deliveriesOf(events.find(({ kind }) => kind === "balance.updated").id)
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(delivery).toEqual({
      id: expect.stringMatching(/^del_[0-9a-hjkmnp-tv-z]{26}$/),
      eventId: expect.stringMatching(/^evt_/),
      webhookId: expect.stringMatching(/^whs_/),
      kind: "balance.updated",
      status: "DELIVERED",
      attempts: [{ at: time, result: "2xx", httpStatus: 200, latencyMs: expect.any(Number), bodySnippet: "ok", detail: null }],
      nextAttemptAt: null,
      failureReason: null,
      heldBecause: null,
      replayedFromDeliveryId: null,
      recoveryId: null,
      sequence: expect.any(Number),
      deliveredAt: time,
      createdAt: time
    })
    for (const value of [delivery.attempts[0].latencyMs, delivery.attempts[0].httpStatus]) expect(Number.isInteger(value)).toBe(true)
  })

  test("FAILED when the schedule is exhausted, with every attempt shown and counted", async () => {
    let status = 200
    receiver.on("/counts", () => new Response("", { status }))
    const { json } = await app.request("POST", "/v1/webhooks", {
      key,
      body: {
        url: receiver.url("/counts"),
        entityIds: ["entity_2"],
        eventKinds: ["vault.updated"],
        notificationEmail: "ops@example.com"
      }
    })
    const relabel = async (label: string) => app.feed([vault("vault_3", "entity_2", { label })])
    const vaults = Array.from({ length: 4 }, (_, number) => `vault_${number}`)
    await app.feed([vault("vault_3", "entity_2"), user("user_a", "org_a", vaults, { organizationRole: "owner" })], {
      "x-record-events": "none"
    })
    const begun = Date.now()
    for (const label of ["first", "second"]) await relabel(label)
    await until("two deliveries", async () => (await app.get(`/v1/webhooks/${json.id}`, key)).json.health.delivered24h === 2)
    status = 500
    await relabel("third")
    const failed = await deliveryWhen(app, key, json.id, (one) => one.status === "FAILED")
    expect(failed).toMatchObject({ failureReason: "EXHAUSTED", nextAttemptAt: null, deliveredAt: null })
    expect(failed.attempts.map(({ result }: Answer["json"]) => result)).toEqual(["5xx", "5xx"])
    const { health } = (await app.get(`/v1/webhooks/${json.id}`, key)).json
    expect(health).toMatchObject({
      state: "DEGRADED",
      consecutiveFailures: 2,
      lastResult: "5xx",
      pendingDeliveries: 0,
      delivered24h: 2,
      failed24h: 1
    })
    const [success, since, failure] = [health.lastSuccessAt, health.failingSince, health.lastFailureAt].map((at: string) => Date.parse(at))
    expect([begun, success, since, failure]).toEqual([begun, success, since, failure].sort((a = 0, b = 0) => a - b))
    expect(failure).toBeGreaterThan(since ?? Number.NaN)
  })
})

describe("GET /v1/webhook-events/{eventId}/deliveries", () => {
  test("returned in full with no pagination, however many webhooks matched", async () => {
    // An event of an organization whose webhooks cover thirty entities, written as the dispatcher would.
    await app.feed([organization("org_many", ["ethereum"]), entity("entity_many", "org_many"), vault("vault_many", "entity_many")])
    await app.feed([user("user_many", "org_many", ["vault_many"], { organizationRole: "owner" })])
    const own = (await app.key("user_many")).secret
    const { json } = await app.request("POST", "/v1/webhooks", {
      key: own,
      body: { url: receiver.url("/many"), entityIds: ["entity_many"], eventKinds: ["vault.created"], notificationEmail: "ops@example.com" }
    })
    const [event] = await app.walk("/v1/webhook-events?vaultId=vault_many", own)
    await app.sql(
      `INSERT INTO deliveries (id, event_id, webhook_id, organization_id, sequence, kind, status, delivered_at)
       SELECT substr($1::text, 1, length($1::text) - 4) || lpad(n::text, 4, '0'), $2, $3, 'org_many', n, 'vault.created', 'DELIVERED', now() FROM generate_series(1, 700) n`,
      [event.id.replace("evt_", "del_"), event.id, json.id]
    )
    const answer = await app.get(`/v1/webhook-events/${event.id}/deliveries`, own)
    expect([Object.keys(answer.json), answer.json.data.length]).toEqual([["data"], 700])
    expect(new Set(answer.json.data.map(({ id }: { id: string }) => id)).size).toBe(700)
    for (const query of ["limit=1", "cursor=x"])
      expect((await app.get(`/v1/webhook-events/${event.id}/deliveries?${query}`, own)).json.code).toBe("unknown_parameter")
  })
})

test("a vault's move to another entity is sent to the webhooks of both", async () => {
  const made = [hook("/left", [0], { vaultIds: ["vault_2"] }), hook("/joined", [1])]
  for (const { entityIds, path, vaultIds } of made) {
    const { status } = await app.request("POST", "/v1/webhooks", {
      key,
      body: {
        entityIds,
        vaultIds,
        url: receiver.url(path),
        eventKinds: ["vault.updated", "vault.created"],
        notificationEmail: "ops@example.com"
      }
    })
    expect(status).toBe(201)
  }
  await app.feed([vault("vault_2", "entity_1"), vault("vault_2", "entity_1", { label: "Joined" })])
  const sent = (path: string) =>
    receiver
      .to(path)
      .map(({ body }) => JSON.parse(String(body)))
      .sort((a, b) => a.id.localeCompare(b.id))
  await until("the deliveries", () => sent("/joined").length === 2)
  await until("the delivery to the former entity", () => sent("/left").length === 1)
  expect([...sent("/left"), ...sent("/joined")].map(({ data, entityId }) => [entityId, data.vault.entityId, data.vault.label])).toEqual([
    ["entity_0", "entity_1", "vault_2"],
    ["entity_1", "entity_1", "vault_2"],
    ["entity_1", "entity_1", "Joined"]
  ])
})
