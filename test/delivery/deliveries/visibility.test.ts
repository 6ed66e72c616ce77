/**
 * A webhook's deliveries as seen by callers who do not see every vault that it covers: through the newest deliveries and
 * along the indexes of vaults, the list shows what a model selects from all rows. Decisions D-8, D-9.
 */
import { beforeAll, expect, test } from "bun:test"
import { type DeliveryRow, delivery, type EventRow, event, insertDeliveries, insertEvents } from "../../events/log/eventRows.ts"
import { useApi } from "../../support/api.ts"
import { smallest, user, vault } from "../../support/records.ts"
import { create } from "../../support/webhookFixtures.ts"

const app = useApi()
const DAY = 86_400_000
const from = Date.now() - 5 * DAY
const statuses = ["DELIVERED", "FAILED", "PENDING", "CANCELED", "RETRYING"]
const kinds = ["transaction.confirmed", "vault.updated", "balance.updated"]

/** Vaults of the webhook. `vault_a` and `vault_b` are the member's; `vault_loud` has by far the most and newest deliveries. */
const vaults = ["vault_a", "vault_b", "vault_c", "vault_loud"]
const member = ["vault_a", "vault_b"]

interface Sent {
  readonly row: DeliveryRow
  readonly event: EventRow
}
let sent: ReadonlyArray<Sent> = []
let webhookId = ""
let events: ReadonlyArray<EventRow> = []

const newestFirst = (a: Sent, b: Sent) =>
  a.row.createdAt === b.row.createdAt ? (a.row.id < b.row.id ? 1 : -1) : a.row.createdAt < b.row.createdAt ? 1 : -1

beforeAll(async () => {
  await app.feed(
    [
      ...smallest(),
      ...vaults.map((id) => vault(id, "entity_a")),
      user("user_a", "org_a", vaults, { organizationRole: "owner" }),
      user("user_m", "org_a", member),
      user("user_n", "org_a", ["vault_c"])
    ],
    { "x-record-events": "none" }
  )
  webhookId = (await create(app, (await app.key("user_a")).secret, { status: "DISABLED" })).id
  const quiet = Array.from({ length: 360 }, (_, index) =>
    event({ at: from + (index % 120), vaultId: index % 9 === 8 ? null : (vaults[index % 3] ?? ""), kind: kinds[index % 3] ?? "" })
  )
  const loud = Array.from({ length: 3_300 }, (_, index) =>
    event({ at: from + DAY + index, vaultId: "vault_loud", kind: kinds[index % 3] ?? "" })
  )
  events = [...quiet, ...loud]
  await insertEvents(app, events)
  sent = events.map((one, index) => ({
    event: one,
    // Every fifth row is like those from before deliveries had a vault.
    row: delivery({
      at: Date.parse(one.occurredAt),
      eventId: one.id,
      webhookId,
      kind: one.kind,
      status: statuses[index % 5] ?? "",
      vaultId: index % 5 === 0 ? null : one.vaultId
    })
  }))
  await insertDeliveries(
    app,
    sent.map(({ row }) => row)
  )
})

const queries: ReadonlyArray<readonly [string, (one: Sent) => boolean]> = [
  ["", () => true],
  ["status=FAILED", ({ row }) => row.status === "FAILED"],
  ["status=PENDING&status=CANCELED", ({ row }) => ["PENDING", "CANCELED"].includes(row.status)],
  ["kind=vault.updated", ({ row }) => row.kind === "vault.updated"],
  ["status=DELIVERED&kind=balance.updated", ({ row }) => row.status === "DELIVERED" && row.kind === "balance.updated"],
  [`createdBefore=${new Date(from + DAY / 2).toISOString()}`, ({ row }) => Date.parse(row.createdAt) <= from + DAY / 2],
  [`createdAfter=${new Date(from + 60).toISOString()}`, ({ row }) => Date.parse(row.createdAt) >= from + 60]
]

const callers = [
  { name: "a member of two of the vaults", user: "user_m", allowlist: null, sees: [...member, null] },
  { name: "a member of another vault", user: "user_n", allowlist: null, sees: ["vault_c", null] },
  { name: "the owner", user: "user_a", allowlist: null, sees: [...vaults, null] }
] as const

for (const { allowlist, name, sees, user } of callers) {
  test(`${name} sees exactly the deliveries whose events are visible, with every filter`, async () => {
    const { secret } = await app.key(user, { vaultIds: allowlist })
    const visible = sent.filter(({ event }) => sees.some((id) => id === event.vaultId)).sort(newestFirst)
    for (const [query, fits] of queries) {
      const expected = visible.filter(fits).map(({ row }) => row.id)
      for (const limit of expected.length > 500 ? [500] : [13, 100]) {
        const shown = (await app.walk(`/v1/webhooks/${webhookId}/deliveries?${query}`, secret, limit)).map(({ id }) => id)
        expect([query, limit, shown.length, shown]).toEqual([query, limit, expected.length, expected])
      }
    }
  })
}

test("filtering a webhook's deliveries by event id finds them only where the event is visible", async () => {
  const key = (await app.key("user_m")).secret
  for (const one of [events[0], events[1], events[2], events[8], events[400]]) {
    const shown = await app.walk(`/v1/webhooks/${webhookId}/deliveries?eventId=${one?.id}`, key)
    const seen = one?.vaultId === null || member.includes(one?.vaultId ?? "")
    expect([one?.vaultId, shown.length]).toEqual([one?.vaultId, seen ? 1 : 0])
  }
})

test("a key does not see what was sent for other vaults before the webhook narrowed", async () => {
  const owner = (await app.key("user_a")).secret
  const key = (await app.key("user_a", { vaultIds: ["vault_c"] })).secret
  expect((await app.get(`/v1/webhooks/${webhookId}/deliveries`, key)).status).toBe(404)
  await app.request("PATCH", `/v1/webhooks/${webhookId}`, { key: owner, body: { vaultIds: ["vault_c"] } })
  const shown = (await app.walk(`/v1/webhooks/${webhookId}/deliveries`, key, 50)).map(({ id }) => id)
  const expected = sent.filter(({ event }) => event.vaultId === "vault_c").sort(newestFirst)
  expect(shown).toEqual(expected.map(({ row }) => row.id))
  expect(shown.length).toBeGreaterThan(50)
  await app.request("PATCH", `/v1/webhooks/${webhookId}`, { key: owner, body: { vaultIds: null } })
})
