/**
 * The cost of a page of the feed: the rows that its statements read are bounded by the page and by what is searched on
 * purpose, and do not increase with ten times as many events that the key cannot see. So neither the length of the log nor
 * response times reveal what happens elsewhere. C-1.
 */
import { beforeAll, expect, test } from "bun:test"
import { expectWithin, explained, planWithout, withoutAutovacuum } from "../../support/plans.ts"
import { entity, smallest, user, vault } from "../../support/records.ts"
import { event, insertEvents } from "../log/eventRows.ts"

const { app, pageOf } = explained()
const FEED = "/v1/event-feed"
/** Events, of which the member sees one vault's: one in a thousand. The first pages are of few. */
const FEW = 20,
  HIDDEN = 6_000,
  MORE_HIDDEN = 54_000,
  RARE = 1_000
const callers = { member: "", allowlist: "", owner: "" }

/** Events after the existing ones, in the order of recording. */
const insert = async (count: number) => {
  for (let from = 0; from < count; from += 6_000) {
    const rows = Array.from({ length: Math.min(6_000, count - from) }, (_, index) =>
      event({ vaultId: index % RARE === 0 ? "vault_rare" : "vault_a" })
    )
    await insertEvents(app, rows)
  }
  await app.sql(`UPDATE events e SET position = n.position
    FROM (SELECT id, row_number() OVER (ORDER BY id) AS position FROM events) n WHERE n.id = e.id AND e.position IS DISTINCT FROM n.position`)
  await app.sql("UPDATE event_streams SET position = (SELECT count(*) FROM events)")
}

beforeAll(async () => {
  await app.feed([...smallest(), vault("vault_rare", "entity_a"), user("user_member", "org_a", ["vault_rare"])], {
    "x-record-events": "none"
  })
  await app.feed([user("user_owner", "org_a", ["vault_a", "vault_rare"], { organizationRole: "owner" })], { "x-record-events": "none" })
  callers.member = (await app.key("user_member")).secret
  callers.owner = (await app.key("user_owner")).secret
  callers.allowlist = (await app.key("user_owner", { vaultIds: ["vault_rare"] })).secret
  await withoutAutovacuum(app)
  await insert(FEW)
  await app.sql("VACUUM ANALYZE")
  // Statements from the start of the service are not part of a page.
  await pageOf(FEED, {}, callers.owner)
})

/** A search with a filter reads 4,004 events on purpose, each with a visibility check. */
const BOUNDS = { rows: 20_000, buffers: 15_000 }
const filters = [{}, { vaultId: "vault_rare" }, { kind: "transaction.confirmed" }, { kind: "vault.created" }, { entityId: "entity_a" }]

/** Fails if a statement of the first three pages, by any key with any filter, read more. */
const readPages = async () => {
  for (const secret of Object.values(callers)) {
    for (const query of filters) {
      let cursor: string | null = null
      for (let page = 0; page < 3; page++) {
        const found = await pageOf(FEED, { limit: "5", ...query, ...(cursor === null ? {} : { after: cursor }) }, secret)
        expectWithin(found.costs, BOUNDS, JSON.stringify(query))
        cursor = found.cursor
        if (cursor === null) break
      }
    }
  }
}

test("a page reads a bounded number of rows, however many the key cannot see", async () => {
  for (const more of [HIDDEN, MORE_HIDDEN]) {
    // Planned for the rows so far.
    await readPages()
    await insert(more)
    await readPages()
    await app.sql("VACUUM ANALYZE")
  }
  await readPages()
  await planWithout(app, { events: "vault_id = 'vault_rare'" }, readPages)
  await readPages()
})

test("unseen events without a vault end a page early, and hide no other", async () => {
  const begun = new Date().toISOString()
  // Another reader has a thousand vaults.
  await app.feed([entity("entity_many", "org_a"), user("user_many", "org_a", ["vault_rare"])], { "x-record-events": "none" })
  await app.sql(`
    INSERT INTO vaults (id, entity_id, organization_id, label, networks, created_at)
    SELECT 'vault_many_' || n, 'entity_many', 'org_a', '', '{ethereum}', now() FROM generate_series(1, 1000) n`)
  await app.sql(`
    INSERT INTO vault_roles (user_id, vault_id, organization_id, role, vault_created_at, entity_id)
    SELECT 'user_many', id, organization_id, 'developer', created_at, entity_id FROM vaults WHERE entity_id = 'entity_many'`)
  const readers = [callers.member, (await app.key("user_many")).secret]
  const cursors = await Promise.all(readers.map(async (secret) => (await app.get(`${FEED}?from=now`, secret)).json.resumeCursor))
  const others = Array.from({ length: 99 }, (_, index) => `entity_${index}`)
  for (const fields of [
    { entityId: "entity_hidden" },
    // The key reaches this entity, but not the others of the audience.
    { entityId: "entity_a", audience: ["entity_a", ...others] }
  ]) {
    for (let part = 0; part < 4; part++)
      await insertEvents(
        app,
        Array.from({ length: 4_000 }, () => event({ vaultId: null, kind: "webhook.secret_rotated", ...fields }))
      )
    await insertEvents(app, [event({ vaultId: "vault_rare" })])
  }
  const walk = async (secret: string, list: string, query: { readonly [name: string]: string }, next: string) => {
    let rows = 0
    for (let page = await pageOf(list, query, secret); ; page = await pageOf(list, { ...query, [next]: page.cursor }, secret)) {
      // Each of a thousand vaults has an index of each day.
      expectWithin(page.costs, { rows: 20_000, buffers: 40_000 }, "a page of events without a vault")
      rows += page.rows
      if (page.cursor === null) return rows
    }
  }
  const log = (secret: string, filter: { readonly [name: string]: string }) =>
    walk(secret, "/v1/webhook-events", { limit: "5", occurredAfter: begun, ...filter }, "cursor")
  for (let plan = 0; plan < 2; plan++) {
    for (const [index, secret] of readers.entries()) {
      expect(await walk(secret, FEED, { limit: "5", after: cursors[index] }, "after")).toBe(2)
      expect([await log(secret, {}), await log(secret, { kind: "webhook.secret_rotated" })]).toEqual([2, 0])
      expect(await log(secret, { entityId: "entity_a" })).toBe(2)
    }
    await app.sql("VACUUM ANALYZE")
  }
})
