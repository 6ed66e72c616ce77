/**
 * A page of events, of the feed and of deliveries costs as little for a user with thousands of vaults: it looks up the access to its
 * own rows, not all of the user's roles. Decisions D-8, D-9.
 */
import { beforeAll, expect, test } from "bun:test"
import { expectWithin, explained, withoutAutovacuum } from "../../support/plans.ts"
import { smallest, user, vault } from "../../support/records.ts"
import { create } from "../../support/webhookFixtures.ts"
import { delivery, event, insertDeliveries, insertEvents } from "./eventRows.ts"

const { app, pageOf } = explained()
const VAULTS = 3_000,
  EVENTS = 500
const vaultIds = Array.from({ length: VAULTS }, (_, index) => `vault_${index}`)
const keys: Record<string, string> = {}
let webhookId = ""

beforeAll(async () => {
  const records = [
    ...smallest(),
    ...vaultIds.map((id) => vault(id, "entity_a")),
    user("user_owner", "org_a", ["vault_a", ...vaultIds], { organizationRole: "owner" }),
    user("user_member", "org_a", vaultIds)
  ]
  for (let from = 0; from < records.length; from += 1_000) await app.feed(records.slice(from, from + 1_000), { "x-record-events": "none" })
  for (const name of ["owner", "member"]) keys[name] = (await app.key(`user_${name}`)).secret
  webhookId = (await create(app, keys["owner"] ?? "")).id
  await withoutAutovacuum(app)
  const rows = Array.from({ length: EVENTS }, (_, index) => event({ vaultId: vaultIds[index] ?? null }))
  await insertEvents(app, rows)
  await insertDeliveries(
    app,
    rows.map(({ id, vaultId }) => delivery({ eventId: id, webhookId, vaultId }))
  )
  await app.sql("ANALYZE")
  // Statements from the start of the service are not part of a page.
  await pageOf("/v1/webhook-events", {}, keys["owner"] ?? "")
})

for (const name of ["owner", "member"]) {
  test(`a page reads few rows for a user with thousands of vaults: ${name}`, async () => {
    for (const list of ["/v1/webhook-events", "/v1/event-feed", `/v1/webhooks/${webhookId}/deliveries`]) {
      const { costs, rows } = await pageOf(list, { limit: "20" }, keys[name] ?? "")
      expect([list, rows]).toEqual([list, 20])
      expectWithin(costs, { rows: 500, buffers: 3_000 }, list)
    }
  })
}
