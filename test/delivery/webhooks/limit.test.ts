/** The limits of webhooks that cover an entity. Spec: Delivery contract 6; Limits. Decision D-29; reliability T18. */
import { afterEach, describe, expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { create, patch, short, tryCreate, useKeys } from "../../support/webhookFixtures.ts"

const app = useApp()
const keys = useKeys(app)

/** Active webhooks that cover an entity, as the API lists them. */
const active = async (entityId: string) => (await app.walk(`/v1/webhooks?status=ACTIVE&entityId=${entityId}`, keys.owner)).length
const tally = (answers: ReadonlyArray<string>) =>
  Object.fromEntries([...Map.groupBy(answers, (one) => one)].map(([code, all]) => [code, all.length]))

/** Each test begins without webhooks. */
afterEach(async () => {
  for (const { id } of await app.walk("/v1/webhooks", keys.owner)) await app.request("DELETE", `/v1/webhooks/${id}`, { key: keys.owner })
})

describe("webhooks of any status", () => {
  const disabled = { status: "DISABLED" }

  test("at most 100 that are not deleted cover an entity", async () => {
    const made = []
    for (let count = 0; count < 99; count++) made.push(await create(app, keys.owner, disabled))
    const answers = await Promise.all(Array.from({ length: 5 }, () => tryCreate(app, keys.owner, disabled)))
    expect(tally(answers.map(short))).toEqual({ "201": 1, "409 webhook_limit_reached": 4 })
    expect(short(await tryCreate(app, keys.owner, { ...disabled, entityIds: ["entity_b", "entity_a"] }))).toBe("409 webhook_limit_reached")
    expect(short(await tryCreate(app, keys.owner, { ...disabled, entityIds: ["entity_b"] }))).toBe("201")
    // One that exists can be enabled.
    expect(short(await patch(app, keys.owner, made[0].id, { status: "ACTIVE" }))).toBe("200")
    await app.request("DELETE", `/v1/webhooks/${made[1].id}`, { key: keys.owner })
    expect(short(await tryCreate(app, keys.owner, disabled))).toBe("201")
  })

  test("at most 1,000 deleted ones cover an entity", async () => {
    await app.sql(`INSERT INTO webhooks (id, organization_id, url, description, status, disabled_reason, disabled_at, event_kinds, notification_email, deleted_at)
      SELECT 'whs_deleted_' || n, 'org_a', 'https://hooks.example.com/', '', 'DISABLED', 'MANUAL', now(), '{vault.created}', 'ops@example.com', now()
      FROM generate_series(1, 1000) n`)
    await app.sql(`INSERT INTO webhook_entities (webhook_id, entity_id, organization_id, created_at)
      SELECT id, 'entity_a', organization_id, created_at FROM webhooks WHERE id LIKE 'whs_deleted_%'`)
    expect(short(await tryCreate(app, keys.owner))).toBe("409 webhook_limit_reached")
    await app.sql("DELETE FROM webhook_entities WHERE webhook_id LIKE 'whs_deleted_%'")
    await app.sql("DELETE FROM webhooks WHERE id LIKE 'whs_deleted_%'")
    expect(short(await tryCreate(app, keys.owner))).toBe("201")
  })

  test("one that is deleted without deliveries leaves no row", async () => {
    const tables = [
      "webhooks",
      ...["entities", "secrets", "health", "counters", "sequences", "queues"].map((name) => `webhook_${name}`),
      "pings"
    ]
    const rows = async (id: string) => {
      const found = await Promise.all(
        tables.map(async (table) => {
          const [row] = await app.sql(`SELECT 1 FROM ${table} WHERE ${table === "webhooks" ? "id" : "webhook_id"} = $1 LIMIT 1`, [id])
          return row === undefined ? [] : [table]
        })
      )
      return found.flat()
    }
    const { id } = await create(app, keys.owner, { entityIds: ["entity_a", "entity_b"], status: "PAUSED" })
    expect(await rows(id)).toEqual(["webhooks", "webhook_entities", "webhook_secrets", "webhook_queues"])
    expect((await app.request("DELETE", `/v1/webhooks/${id}`, { key: keys.owner })).status).toBe(204)
    expect(await rows(id)).toEqual([])
    expect((await app.get("/v1/audit-log?limit=1", keys.owner)).json.data[0]).toMatchObject({ action: "webhook.deleted" })
  })
})

describe("at most 20 active webhooks for an entity", () => {
  test("in sequence: the 21st is refused, and a disabled one is not counted", async () => {
    for (let count = 0; count < 20; count++) await create(app, keys.owner)
    const refused = await tryCreate(app, keys.owner)
    expect([refused.status, refused.json.code, refused.headers.get("content-type")]).toEqual([
      409,
      "webhook_limit_reached",
      "application/problem+json"
    ])
    for (let count = 0; count < 5; count++) await create(app, keys.owner, { status: "DISABLED" })
    expect(await active("entity_a")).toBe(20)
    // Another entity has its own limit.
    expect(short(await tryCreate(app, keys.owner, { entityIds: ["entity_b"] }))).toBe("201")
  })

  test("30 concurrent creations leave exactly 20 active", async () => {
    const answers = await Promise.all(Array.from({ length: 30 }, () => tryCreate(app, keys.owner)))
    expect(tally(answers.map(short))).toEqual({ "201": 20, "409 webhook_limit_reached": 10 })
    expect(await active("entity_a")).toBe(20)
  })

  test("disabling or deleting one makes room for another", async () => {
    const made = []
    for (let count = 0; count < 20; count++) made.push(await create(app, keys.owner))
    await patch(app, keys.owner, made[0].id, { status: "DISABLED" })
    expect((await Promise.all([tryCreate(app, keys.owner), tryCreate(app, keys.owner)])).map(short).sort()).toEqual([
      "201",
      "409 webhook_limit_reached"
    ])
    await app.request("DELETE", `/v1/webhooks/${made[1].id}`, { key: keys.owner })
    expect(short(await tryCreate(app, keys.owner))).toBe("201")
    expect(await active("entity_a")).toBe(20)
  })

  test("enabling a disabled one counts, even if many are enabled at once", async () => {
    const disabled = []
    for (let count = 0; count < 8; count++) disabled.push(await create(app, keys.owner, { status: "DISABLED" }))
    for (let count = 0; count < 15; count++) await create(app, keys.owner)
    const answers = await Promise.all(disabled.map(({ id }) => patch(app, keys.owner, id, { status: "ACTIVE" })))
    expect(tally(answers.map(short))).toEqual({ "200": 5, "409 webhook_limit_reached": 3 })
    expect(await active("entity_a")).toBe(20)
    // A refused webhook stays unchanged, and enabling an active one needs no further room.
    const refused = disabled[answers.findIndex(({ status }) => status === 409)]
    expect((await app.get(`/v1/webhooks/${refused.id}`, keys.owner)).json).toMatchObject({ status: "DISABLED", disabledReason: "MANUAL" })
    const enabled = disabled[answers.findIndex(({ status }) => status === 200)]
    expect(short(await patch(app, keys.owner, enabled.id, { status: "ACTIVE", description: "x" }))).toBe("200")
  })

  test("a webhook over several entities counts for each of them", async () => {
    for (let count = 0; count < 19; count++) await create(app, keys.owner, { entityIds: ["entity_b"] })
    expect(short(await tryCreate(app, keys.owner, { entityIds: ["entity_a", "entity_b"] }))).toBe("201")
    expect(short(await tryCreate(app, keys.owner, { entityIds: ["entity_a", "entity_b"] }))).toBe("409 webhook_limit_reached")
    expect([await active("entity_a"), await active("entity_b")]).toEqual([1, 20])
    // A webhook refused for one entity takes no room of the other.
    for (let count = 0; count < 19; count++) await create(app, keys.owner)
    expect(short(await tryCreate(app, keys.owner))).toBe("409 webhook_limit_reached")
  })

  test("webhooks over {a,b} and {b,a} that are created, enabled and disabled at once never deadlock", async () => {
    const orders = [
      ["entity_a", "entity_b"],
      ["entity_b", "entity_a"]
    ]
    const disabled = []
    for (let count = 0; count < 10; count++) {
      disabled.push(await create(app, keys.owner, { entityIds: orders[count % 2], status: "DISABLED" }))
    }
    const deadlocks = async () =>
      (await app.sql("SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()"))[0]?.["deadlocks"]
    const before = await deadlocks()
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all([
        ...Array.from({ length: 10 }, (_, count) => tryCreate(app, keys.owner, { entityIds: orders[(count + round) % 2] })),
        ...disabled.map(({ id }) => patch(app, keys.owner, id, { status: round % 2 === 0 ? "ACTIVE" : "DISABLED" }))
      ])
      const codes = tally(answers.map(short))
      // Whatever the outcome of each, none was a failure of the service.
      expect(Object.keys(codes).filter((code) => !["200", "201", "409 webhook_limit_reached"].includes(code))).toEqual([])
      for (const entityId of ["entity_a", "entity_b"]) expect(await active(entityId)).toBeLessThanOrEqual(20)
    }
    expect(await active("entity_a")).toBe(20)
    // Postgres' sessions count what they saw at their end at the latest.
    await app.main?.end()
    app.main = await app.start(["api"])
    expect(await deadlocks()).toBe(before)
  })
})
