/**
 * The cost of a page of the log, of a webhook's deliveries and of an event's deliveries: rows read and memory pages touched
 * are bounded by the page and by what is scanned on purpose, whatever the length of the log and the filters, and however
 * little of it the caller sees. In the data, two filters that each match half of the rows match none together.
 * Decisions D-1, D-2, D-9.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import { statuses } from "../../../src/delivery/deliveries/Delivery.ts"
import { expectWithin, explained, type Filters, planWithout, withoutAutovacuum } from "../../support/plans.ts"
import { entity, smallest, user, vault } from "../../support/records.ts"
import { create } from "../../support/webhookFixtures.ts"
import { type DeliveryRow, delivery, type EventRow, event, insertDeliveries, insertEvents } from "./eventRows.ts"

const { app, expectBounded, pageOf, plan } = explained()

/** The number of events and deliveries, and of the organization's events without a vault. */
const MANY = 48_000,
  OF_ENTITIES = 40_000
/**
 * The newest 3,000 rows are scanned on purpose before the caller's vaults are read, each with a visibility check, or the
 * newest 3,000 of every status. Each day of the log is a partition, and a page queries the index of every one.
 */
const BOUNDS = { rows: 6 * 3_000, buffers: 15_000 }

const HALF_TIME = Date.now() - 3_600_000
const at = (index: number) => new Date(HALF_TIME + (index % 2 === 0 ? -1 : 1) * index * 10).toISOString()

/** The two halves differ in every field with a filter; the vault of the newest events belonged to another entity before. */
const events: ReadonlyArray<EventRow> = [
  ...Array.from({ length: MANY }, (_, index) =>
    event({
      vaultId: index % 2 === 0 ? "vault_a" : "vault_b",
      entityId: index % 2 === 0 ? "entity_a" : index < 0.7 * MANY ? "entity_c" : "entity_b",
      kind: index % 2 === 0 ? "transaction.confirmed" : "balance.updated",
      occurredAt: at(index)
    })
  ),
  ...Array.from({ length: OF_ENTITIES }, (_, index) =>
    event({
      vaultId: null,
      entityId: index % 2 === 0 ? "entity_a" : "entity_b",
      kind: index % 2 === 0 ? "webhook.secret_rotated" : "webhook.disabled",
      occurredAt: at(index)
    })
  )
]

const callers: Record<string, string> = {}
let webhookId = ""

const [early, half, late] = [-2 * MANY * 10, 0, 2 * MANY * 10].map((more) => new Date(HALF_TIME + more).toISOString())
const ofEvents: Filters = {
  kind: ["transaction.confirmed", "balance.updated", "webhook.disabled", "vault.created"],
  vaultId: ["vault_a", "vault_b", "vault_0", "none"],
  entityId: ["entity_a", "entity_b", "entity_c", "entity_d", "none"],
  occurredAfter: [early ?? "", half ?? "", late ?? ""],
  occurredBefore: [half ?? "", early ?? ""]
}
const [oneEvent = "", otherEvent = ""] = events.map(({ id }) => id)
const ofDeliveries: Filters = {
  status: [...statuses],
  kind: ["transaction.confirmed", "balance.updated", "vault.created"],
  eventId: [oneEvent, otherEvent, "none"],
  sequence: ["1", "1000000"],
  createdAfter: [early ?? "", half ?? "", late ?? ""],
  createdBefore: [half ?? "", early ?? ""]
}

const ofEventsTo = ["owner", "none", "b", "half", "quiet", "others", "limited"],
  ofDeliveriesTo = ["owner", "none", "half", "quiet"]
/** Callers with whom pairs of filters are tried in every run: with all, half and nothing of what is listed. */
const pairwise = (caller: string) => ["owner", "half", "quiet"].includes(caller)

/** Plans every statement of the lists by the present statistics. */
const planAll = async () => {
  for (const caller of ofEventsTo) await plan("/v1/webhook-events", ofEvents, callers[caller] ?? "", pairwise(caller))
  for (const caller of ofDeliveriesTo)
    await plan(`/v1/webhooks/${webhookId}/deliveries`, ofDeliveries, callers[caller] ?? "", pairwise(caller))
}

beforeAll(async () => {
  await app.feed(
    [
      ...smallest(),
      ...["entity_b", "entity_c", "entity_d"].map((id) => entity(id, "org_a")),
      vault("vault_a", "entity_a"),
      vault("vault_b", "entity_b"),
      vault("vault_quiet_a", "entity_a"),
      vault("vault_quiet_b", "entity_b"),
      ...Array.from({ length: 40 }, (_, index) => vault(`vault_${index}`, index % 2 === 0 ? "entity_c" : "entity_d")),
      user("user_owner", "org_a", ["vault_a", "vault_b", "vault_quiet_a", "vault_quiet_b"], { organizationRole: "owner" }),
      user("user_none", "org_a", [], { organizationRole: "owner" }),
      user("user_b", "org_a", ["vault_b"]),
      user("user_half", "org_a", ["vault_a", "vault_quiet_b"]),
      user("user_quiet", "org_a", ["vault_quiet_a", "vault_quiet_b"]),
      user(
        "user_others",
        "org_a",
        Array.from({ length: 40 }, (_, index) => `vault_${index}`)
      )
    ],
    { "x-record-events": "none" }
  )
  for (const id of ["owner", "none", "b", "half", "quiet", "others"]) callers[id] = (await app.key(`user_${id}`)).secret
  callers["limited"] = (await app.key("user_owner", { vaultIds: ["vault_b"] })).secret
  webhookId = (await create(app, callers["owner"] ?? "", { entityIds: ["entity_a", "entity_b"] })).id
  await withoutAutovacuum(app)
  await planAll()
  for (let from = 0; from < events.length; from += 10_000) await insertEvents(app, events.slice(from, from + 10_000))
  // Like the events, except that a vault has half of the statuses, with some deliveries of each.
  const rows: ReadonlyArray<DeliveryRow> = events.slice(0, MANY).map((row, index) =>
    delivery({
      eventId: row.id,
      webhookId,
      vaultId: row.vaultId,
      kind: row.kind,
      status: (index % 2 === 0 ? ["DELIVERED", "PENDING"] : ["FAILED", "CANCELED", "RETRYING"])[index % (2 + (index % 2))] ?? "",
      createdAt: row.occurredAt
    })
  )
  for (let from = 0; from < rows.length; from += 10_000) await insertDeliveries(app, rows.slice(from, from + 10_000))
})

const when = {
  "by plans that were made for empty tables": async () => {},
  "once the tables are analyzed": () => app.sql("ANALYZE"),
  "by plans that were made when all was of one kind": () =>
    planWithout(
      app,
      {
        events: "kind <> 'transaction.confirmed'",
        deliveries: "kind <> 'transaction.confirmed' OR status <> 'DELIVERED'"
      },
      planAll
    ),
  "by plans that were made for few rows": () => planWithout(app, { events: "position > 40", deliveries: "sequence > 40" }, planAll)
}
for (const [analyzed, prepare] of Object.entries(when)) {
  describe(`the cost of a page does not depend on the log's length, ${analyzed}`, () => {
    beforeAll(async () => {
      await prepare()
    })
    for (const caller of ofEventsTo) {
      test(`events: ${caller}`, () => expectBounded("/v1/webhook-events", ofEvents, callers[caller] ?? "", BOUNDS, pairwise(caller)))
    }
    for (const caller of ofDeliveriesTo) {
      test(`deliveries of a webhook: ${caller}`, () =>
        expectBounded(`/v1/webhooks/${webhookId}/deliveries`, ofDeliveries, callers[caller] ?? "", BOUNDS, pairwise(caller)))
    }
    test("deliveries of an event", async () => {
      const { costs } = await pageOf(`/v1/webhook-events/${oneEvent}/deliveries`, {}, callers["owner"] ?? "")
      expectWithin(costs, { rows: 100, buffers: 600 }, oneEvent)
    })
  })
}

test("each half of the test data is visible, and pairs of filters match nothing", async () => {
  const count = async (list: string, query: { readonly [name: string]: string }, caller = "owner") =>
    (await pageOf(list, query, callers[caller] ?? "")).rows
  expect(await count("/v1/webhook-events", { kind: "transaction.confirmed", limit: "5" })).toBe(5)
  expect(await count("/v1/webhook-events", { kind: "transaction.confirmed", vaultId: "vault_b" })).toBe(0)
  expect(await count(`/v1/webhooks/${webhookId}/deliveries`, { status: "FAILED", kind: "transaction.confirmed" })).toBe(0)
})
