/** What pages of deliveries and webhooks cost, by the plans of their statements, with much that the key cannot see. Decisions D-8, D-9. */
import { beforeAll, expect, test } from "bun:test"
import { delivery, event, insertDeliveries, insertEvents } from "../../events/log/eventRows.ts"
import { expectWithin, explained } from "../../support/plans.ts"
import { entity, smallest, user, vault } from "../../support/records.ts"
import { create } from "../../support/webhookFixtures.ts"

const { app, costs, pageOf } = explained()
/** Events of vaults, and events of an audience that the member does not reach, which are more than a page searches. */
const ORDINARY = 20_000,
  UNSEEN = 12_000
/** Vaults of an entity of which the member sees the last, and of another of which the member sees all. */
const VAULTS = 2_000
const keys = { owner: "", member: "" }
let webhookId = ""

const parts = async (count: number, insert: (count: number) => Promise<void>) => {
  for (let left = count; left > 0; left -= 6_000) await insert(Math.min(left, 6_000))
}
const unseen = (count: number) =>
  Array.from({ length: count }, () => event({ vaultId: null, kind: "webhook.disabled", audience: ["entity_a", "entity_b"] }))
const deliver = (rows: ReturnType<typeof unseen>) =>
  insertDeliveries(
    app,
    rows.map(({ id, kind, vaultId }) => delivery({ eventId: id, webhookId, kind, vaultId }))
  )

beforeAll(async () => {
  await app.feed(
    [
      ...smallest(),
      ...["entity_b", "entity_big", "entity_other"].map((id) => entity(id, "org_a")),
      ...["vault_rare", "vault_b", "vault_zz"].map((id) =>
        vault(id, id === "vault_b" ? "entity_b" : id === "vault_zz" ? "entity_big" : "entity_a")
      ),
      user("user_owner", "org_a", ["vault_a", "vault_b", "vault_rare", "vault_zz"], { organizationRole: "owner" }),
      user("user_member", "org_a", ["vault_rare", "vault_zz"])
    ],
    { "x-record-events": "none" }
  )
  await app.sql(
    `WITH made AS (
       INSERT INTO vaults (id, entity_id, organization_id, label, networks, created_at)
       SELECT 'vault_' || e || '_' || n, 'entity_' || e, 'org_a', '', '{ethereum}', now()
       FROM unnest('{big,other}'::text[]) e, generate_series(1, $1::int) n RETURNING id, entity_id, created_at)
     INSERT INTO vault_roles (user_id, vault_id, organization_id, role, vault_created_at, entity_id)
     SELECT u, id, 'org_a', 'developer', created_at, entity_id FROM made, unnest('{user_owner,user_member}'::text[]) u
     WHERE u = 'user_owner' OR entity_id = 'entity_other'`,
    [VAULTS]
  )
  keys.owner = (await app.key("user_owner")).secret
  keys.member = (await app.key("user_member")).secret
  webhookId = (await create(app, keys.owner, { entityIds: ["entity_a"], eventKinds: ["transaction.confirmed", "webhook.disabled"] })).id
  await parts(ORDINARY, async (count) => {
    const rows = Array.from({ length: count }, () => event())
    await insertEvents(app, rows)
    await deliver(rows)
  })
  await app.sql("VACUUM ANALYZE")
  // Statements from the start of the service are not part of a page.
  await pageOf("/v1/vaults", {}, keys.owner)
})

test("a delivery of an event without a vault costs one look at that event", async () => {
  const rows = [event({ vaultId: null, kind: "webhook.disabled" }), ...Array.from({ length: 30 }, () => event())]
  await insertEvents(app, rows)
  await deliver(rows)
  for (let time = 0; time < 2; time++) {
    const page = await pageOf(`/v1/webhooks/${webhookId}/deliveries`, { limit: "50" }, keys.owner)
    expect(page.rows).toBe(50)
    expectWithin(page.costs, { rows: 8_000, buffers: 2_000 }, "deliveries")
    await app.sql("VACUUM ANALYZE")
  }
})

test("deliveries of unseen events without a vault end a page early, and hide no other", async () => {
  const seen = event({ vaultId: "vault_rare" })
  await insertEvents(app, [seen])
  await deliver([seen])
  await parts(UNSEEN, async (count) => {
    const rows = unseen(count)
    await insertEvents(app, rows)
    await deliver(rows)
  })
  const walk = async (query: { readonly [name: string]: string }) => {
    const list = `/v1/webhooks/${webhookId}/deliveries`
    let rows = 0
    for (let page = await pageOf(list, query, keys.member); ; page = await pageOf(list, { ...query, cursor: page.cursor }, keys.member)) {
      expectWithin(page.costs, { rows: 25_000, buffers: 60_000 }, "deliveries of events without a vault")
      rows += page.rows
      if (page.cursor === null) return rows
    }
  }
  for (let time = 0; time < 2; time++) {
    // The other one is that of an event of the webhook's entity alone.
    expect(await walk({ limit: "5" })).toBe(2)
    expect(await walk({ limit: "5", kind: "webhook.disabled", status: "DELIVERED" })).toBe(1)
    await app.sql("VACUUM ANALYZE")
  }
})

test("a list of webhooks costs the same, however many vaults their entities have", async () => {
  for (let count = 0; count < 20; count++) await create(app, keys.owner, { entityIds: ["entity_big"], url: `https://example.com/${count}` })
  await costs()
  for (let time = 0; time < 2; time++) {
    const page = await pageOf("/v1/webhooks", { limit: "100" }, keys.member)
    expect(page.rows).toBe(21)
    expectWithin(page.costs, { rows: 3_000, buffers: 4_000 }, "webhooks")
    await app.sql("VACUUM ANALYZE")
  }
})
