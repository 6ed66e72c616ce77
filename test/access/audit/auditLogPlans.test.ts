/**
 * The cost of a page of the audit log is bounded by the page, whatever the length of the log and the filters. In the data,
 * two filters that each match half of the rows match none together. Decisions D-2, D-50.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import { explained, type Filters, LIMIT, planWithout, withoutAutovacuum } from "../../support/plans.ts"
import { smallest, user } from "../../support/records.ts"

const { app, expectBounded, pageOf, plan } = explained()
const MANY = 50_000
let key = ""

const HALF_TIME = Date.now() - 30 * 86_400_000
const [early, half, late] = [-MANY, 0, MANY].map((seconds) => new Date(HALF_TIME + seconds * 1_000).toISOString())

const filters: Filters = {
  actor: ["key_0", "key_1", "user_0", "user_1", "none"],
  action: ["webhook.created", "webhook.updated", "webhook.deleted"],
  target: ["whs_0", "whs_1", "none"],
  occurredAfter: [early ?? "", half ?? "", late ?? ""],
  occurredBefore: [half ?? "", early ?? ""]
}

beforeAll(async () => {
  await app.feed([...smallest(), user("user_a", "org_a", ["vault_a"], { organizationRole: "owner" })])
  key = (await app.key("user_a")).secret
  // The entries are older than the organization, whose log does not begin before it.
  await app.sql("UPDATE organizations SET recorded_at = '-infinity'")
  await withoutAutovacuum(app)
  await plan("/v1/audit-log", filters, key)
  await app.sql(
    `INSERT INTO audit_log (id, organization_id, at, actor_type, actor_id, user_id, action, target_type, target_id, changes)
     SELECT 'aud_' || lpad(n::text, 10, '0'), 'org_a', $1::timestamptz + (CASE WHEN half = 0 THEN -1 ELSE 1 END) * n * interval '1 second',
       'key', 'key_' || half, 'user_' || half, CASE WHEN half = 0 THEN 'webhook.created' ELSE 'webhook.updated' END, 'webhook', 'whs_' || half, '{}'
     FROM generate_series(1, ${MANY}) n, LATERAL (SELECT n % 2 AS half) x`,
    [half]
  )
})

const planAll = () => plan("/v1/audit-log", filters, key)
const when = {
  "by plans that were made for empty tables": async () => {},
  "once the table is analyzed": () => app.sql("ANALYZE"),
  "by plans that were made when all was of one kind": () => planWithout(app, { audit_log: "actor_id = 'key_0'" }, planAll),
  "by plans that were made for few rows": () => planWithout(app, { audit_log: "id > 'aud_0000000040'" }, planAll)
}
for (const [analyzed, prepare] of Object.entries(when)) {
  describe(`the cost of a page does not depend on the audit log's length, ${analyzed}`, () => {
    beforeAll(async () => {
      await prepare()
    })
    test("audit log", () => expectBounded("/v1/audit-log", filters, key, { rows: 4 * (LIMIT + 1), buffers: 200 }))
  })
}

test("each half of the test data is visible, and a filter pair matches nothing", async () => {
  const count = async (query: { readonly [name: string]: string }) => (await pageOf("/v1/audit-log", { limit: "5", ...query }, key)).rows
  for (const query of [{ actor: "key_0" }, { actor: "user_1" }, { action: "webhook.created" }, { target: "whs_1" }])
    expect([query, await count(query)]).toEqual([query, 5])
  for (const query of [
    { actor: "key_0", action: "webhook.updated" },
    { target: "whs_0", actor: "user_1" },
    { target: "whs_0", action: "webhook.updated" }
  ])
    expect([query, await count(query)]).toEqual([query, 0])
})
