/** What a preview costs, by the plans of its statements, and that it counts right however it has to search. C-7. */
import { beforeAll, expect, test } from "bun:test"
import { type EventRow, event, insertEvents } from "../../events/log/eventRows.ts"
import { expectWithin, explained } from "../../support/plans.ts"
import { entity, smallest, user, vault } from "../../support/records.ts"

const { app, costs } = explained()

/** More events of another entity than are searched, all of them newer than those that are asked for. */
const OTHERS = 21_000,
  /** More than are counted, and fewer. */
  CONFIRMED = 12_000,
  PENDING = 900
/** A statement searches the newest 20,000 events or finds at most 10,000, each with what shows that it is visible. */
const BOUNDS = { rows: 20_000 + 6 * 10_000, buffers: 200_000 }

const vaults = Array.from({ length: 40 }, (_, index) => `vault_${index}`)
const hourAgo = Date.now() - 3_600_000
const ago = (seconds: number) => new Date(hourAgo - seconds * 1_000).toISOString()
let key = ""

beforeAll(async () => {
  await app.feed(
    [
      ...smallest(),
      entity("entity_b", "org_a"),
      entity("entity_former", "org_a"),
      vault("vault_b", "entity_b"),
      ...vaults.map((id) => vault(id, "entity_a")),
      user("user_a", "org_a", ["vault_a", "vault_b", ...vaults], { organizationRole: "owner" })
    ],
    { "x-record-events": "none" }
  )
  key = (await app.key("user_a")).secret
  const of = (index: number) => vaults[index % vaults.length] ?? ""
  const rows: ReadonlyArray<EventRow> = [
    ...Array.from({ length: OTHERS }, () => event({ vaultId: "vault_b", entityId: "entity_b" })),
    ...Array.from({ length: CONFIRMED }, (_, index) => event({ vaultId: of(index), occurredAt: ago(index) })),
    ...Array.from({ length: PENDING }, (_, index) => event({ vaultId: of(index), kind: "transaction.pending", occurredAt: ago(index) })),
    ...Array.from({ length: 3 }, (_, index) => event({ vaultId: null, kind: "webhook.disabled", occurredAt: ago(index) })),
    // Of the time when a vault was of another entity.
    ...Array.from({ length: 7 }, (_, index) => event({ vaultId: "vault_a", entityId: "entity_former", occurredAt: ago(index) }))
  ]
  for (let from = 0; from < rows.length; from += 10_000) await insertEvents(app, rows.slice(from, from + 10_000))
  // What happened so far is no part of a preview.
  await costs()
})

const preview = async (body: { readonly [field: string]: unknown }) => {
  const answer = await app.request("POST", "/v1/webhooks/preview", { key, body })
  expect([answer.status, answer.text.slice(0, 300)]).toEqual([200, expect.any(String)])
  expectWithin(await costs(), BOUNDS, JSON.stringify(body))
  const { byKind, count, newest } = answer.json
  return { count, byKind, newest: newest.map(({ occurredAt }: { readonly occurredAt: string }) => occurredAt) }
}
/** The newest five of the log with these filters. */
const newestOf = async (query: string) =>
  (await app.get(`/v1/webhook-events?limit=5&${query}`, key)).json.data.map(({ occurredAt }: { readonly occurredAt: string }) => occurredAt)

test("a preview reads a bounded number of rows and counts up to 10,000", async () => {
  const confirmed = { entityIds: ["entity_a"], eventKinds: ["transaction.confirmed"] }
  expect(await preview(confirmed)).toEqual({
    count: 10_000,
    byKind: { "transaction.confirmed": 10_000 },
    newest: await newestOf("entityId=entity_a&kind=transaction.confirmed")
  })
  // Fewer than are counted: all of them, of vaults and without.
  const rare = await preview({ entityIds: ["entity_a"], eventKinds: ["transaction.pending", "webhook.disabled", "vault.created"] })
  expect([rare.count, rare.byKind]).toEqual([PENDING + 3, { "transaction.pending": PENDING, "webhook.disabled": 3, "vault.created": 0 }])
  expect(rare.newest[0]).toBe((await newestOf("entityId=entity_a&kind=transaction.pending"))[0])
  const one = await preview({ ...confirmed, vaultIds: ["vault_0"] })
  expect([one.count, one.newest]).toEqual([CONFIRMED / vaults.length, await newestOf("vaultId=vault_0&kind=transaction.confirmed")])
  expect((await preview({ ...confirmed, entityIds: ["entity_former"] })).count).toBe(7)
  expect((await preview({ entityIds: ["entity_a"], eventKinds: ["vault.created"] })).count).toBe(0)
  // Of the newest of the organization.
  expect((await preview({ ...confirmed, entityIds: ["entity_b"] })).count).toBe(10_000)
})

test("a preview looks at a bounded number of unseen events without a vault", async () => {
  await app.feed([user("user_member", "org_a", ["vault_a"])], { "x-record-events": "none" })
  key = (await app.key("user_member")).secret
  const disabled = { vaultId: null, kind: "webhook.disabled", audience: ["entity_a", "entity_b"] }
  for (let part = 0; part < 5; part++)
    await insertEvents(
      app,
      Array.from({ length: 9_000 }, (_, index) => event({ ...disabled, occurredAt: ago(index) }))
    )
  await costs()
  const answer = await app.request("POST", "/v1/webhooks/preview", {
    key,
    body: { entityIds: ["entity_a"], eventKinds: ["webhook.disabled"], vaultIds: ["vault_a"] }
  })
  // Three have no other audience.
  expect([answer.status, answer.json.count]).toEqual([200, 3])
  expectWithin(await costs(), { rows: 45_000, buffers: 60_000 }, "unseen events without a vault")
})
