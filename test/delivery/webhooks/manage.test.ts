/** Reading and deleting webhooks. Spec: Webhook operations. Decisions D-5, D-8, D-19, D-22. */
import { describe, expect, test } from "bun:test"
import * as Id from "../../../src/values/Id.ts"
import { useApi } from "../../support/api.ts"
import { entity, organization, transaction, user, vault } from "../../support/records.ts"
import { create, patch, short, useKeys } from "../../support/webhookFixtures.ts"

const app = useApi()
const keys = useKeys(app)

describe("GET /v1/webhooks", () => {
  test("list webhooks across accessible entities, newest first, in pages, by entity and status", async () => {
    await app.feed([
      organization("org_l", ["ethereum"]),
      entity("entity_l1", "org_l"),
      entity("entity_l2", "org_l"),
      vault("vault_l1", "entity_l1"),
      vault("vault_l2", "entity_l2"),
      user("user_l", "org_l", ["vault_l1", "vault_l2"], { organizationRole: "owner" }),
      user("user_l1", "org_l", ["vault_l1"])
    ])
    const key = (await app.key("user_l")).secret
    const one = (await app.key("user_l1")).secret
    const made: Array<{ id: string; entityIds: ReadonlyArray<string>; status: string }> = []
    for (let index = 0; index < 24; index++) {
      const entityIds = index % 3 === 2 ? ["entity_l1", "entity_l2"] : [`entity_l${(index % 3) + 1}`]
      made.push(await create(app, key, { entityIds, status: index % 2 === 0 ? "ACTIVE" : "DISABLED" }))
    }
    const newest = [...made].reverse()
    const ids = (list: ReadonlyArray<{ readonly id: string }>) => list.map(({ id }) => id)
    for (const limit of [1, 7, 24, undefined]) expect(ids(await app.walk("/v1/webhooks", key, limit))).toEqual(ids(newest))
    for (const [query, fits] of [
      ["entityId=entity_l1", (_) => _.entityIds.includes("entity_l1")],
      ["status=DISABLED", (_) => _.status === "DISABLED"],
      ["status=ACTIVE&entityId=entity_l2", (_) => _.status === "ACTIVE" && _.entityIds.includes("entity_l2")],
      ["entityId=entity_absent", () => false],
      ["entityId=entity_a", () => false],
      ["entityId=%00", () => false]
    ] as ReadonlyArray<readonly [string, (one: (typeof made)[number]) => boolean]>) {
      expect([query, ids(await app.walk(`/v1/webhooks?${query}`, key, 5))]).toEqual([query, ids(newest.filter(fits))])
    }
    // A developer on a vault of one entity sees the webhooks that cover only that entity.
    expect(ids(await app.walk("/v1/webhooks", one, 5))).toEqual(ids(newest.filter((_) => _.entityIds.join() === "entity_l1")))
  })

  test("the list is data and pagination only, and takes no unknown filter", async () => {
    for (let count = 0; count < 3; count++) await create(app, keys.owner, { status: "DISABLED" })
    expect(Object.keys((await app.get("/v1/webhooks?limit=2", keys.owner)).json)).toEqual(["data", "pagination"])
    expect((await app.get("/v1/webhooks?limit=2", keys.owner)).json.pagination).toEqual({ limit: 2, nextCursor: expect.any(String) })
    expect(short(await app.get("/v1/webhooks?entity=entity_a", keys.owner))).toBe("400 unknown_parameter")
    expect(short(await app.get("/v1/webhooks?status=x", keys.owner))).toBe("400 invalid_parameter")
    expect(short(await app.get("/v1/webhooks?status=ACTIVE&status=DISABLED", keys.owner))).toBe("400 invalid_parameter")
  })
})

describe("GET /v1/webhooks/{webhookId}", () => {
  test("one webhook with its health counters, before anything was sent", async () => {
    const { id } = await create(app, keys.owner, { status: "DISABLED" })
    const { json } = await app.get(`/v1/webhooks/${id}`, keys.reader)
    expect(json.health).toEqual({
      state: "HEALTHY",
      consecutiveFailures: 0,
      failingSince: null,
      lastSuccessAt: null,
      lastFailureAt: null,
      lastResult: null,
      pendingDeliveries: 0,
      heldDeliveries: 0,
      nextProbeAt: null,
      delivered24h: 0,
      failed24h: 0
    })
  })

  test("a webhook outside the credential's access returns 404, never 403, on every path", async () => {
    const hidden = await create(app, keys.stranger, { entityIds: ["entity_z"], status: "DISABLED" })
    const ids = [hidden.id, "whs_01jz0000000000000000000000", "evt_01jz0000000000000000000000", "x", "%00", "..%2f", "a".repeat(3_000)]
    const paths: ReadonlyArray<readonly [string, string]> = [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/rotate-secret"],
      ["POST", "/ping"],
      ["GET", "/deliveries"]
    ]
    for (const key of [keys.owner, keys.reader, keys.member, keys.limited, keys.manager]) {
      for (const [method, path] of paths) {
        const answers = await Promise.all(
          ids.map((id) => app.request(method, `/v1/webhooks/${id}${path}`, { key, ...(method === "PATCH" ? { body: {} } : {}) }))
        )
        const bodies = answers.map(({ json: { requestId: _, ...body } }) => JSON.stringify(body))
        expect([method, path, answers.map(short)]).toEqual([method, path, ids.map(() => "404 not_found")])
        expect(new Set(bodies).size).toBe(1)
      }
    }
    expect(short(await app.get(`/v1/webhooks/${hidden.id}`, keys.stranger))).toBe("200")
  })
})

describe("DELETE /v1/webhooks/{webhookId}", () => {
  test("delete a webhook: 204, afterwards 404 on every path; its history is retained", async () => {
    const { id } = await create(app, keys.owner)
    const [event] = await recorded(701)
    // Written as a dispatcher would; nothing is sent in this test.
    await app.sql(
      `INSERT INTO deliveries (id, event_id, webhook_id, organization_id, sequence, kind, status, delivered_at)
       VALUES ($1, $2, $3, 'org_a', 1, 'transaction.confirmed', 'DELIVERED', now())`,
      [event.id.replace("evt_", "del_"), event.id, id]
    )
    const gone = await app.request("DELETE", `/v1/webhooks/${id}`, { key: keys.owner })
    expect([gone.status, gone.text]).toEqual([204, ""])
    for (const [method, path] of [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/rotate-secret"],
      ["POST", "/ping"],
      ["GET", "/deliveries"]
    ] as const) {
      const answer = await app.request(method, `/v1/webhooks/${id}${path}`, {
        key: keys.owner,
        ...(method === "PATCH" ? { body: {} } : {})
      })
      expect([method, path, short(answer)]).toEqual([method, path, "404 not_found"])
    }
    expect((await app.walk("/v1/webhooks", keys.owner)).some((one) => one.id === id)).toBe(false)
    const { json } = await app.get(`/v1/webhook-events/${event.id}/deliveries`, keys.owner)
    expect(json.data).toEqual([expect.objectContaining({ webhookId: id, eventId: event.id, status: "DELIVERED" })])
    expect((await app.get(`/v1/webhook-events/${event.id}`, keys.owner)).json.deliveryCounts.DELIVERED).toBe(1)
    expect(short(await app.request("POST", `/v1/webhook-deliveries/${json.data[0].id}/redeliver`, { key: keys.owner }))).toBe(
      "404 not_found"
    )
  })

  test("deleting and disabling cancel waiting deliveries, with the reason", async () => {
    for (const [verb, reason] of [
      ["delete", "WEBHOOK_DELETED"],
      ["disable", "WEBHOOK_DISABLED"]
    ] as const) {
      const { id } = await create(app, keys.owner)
      const [first, second] = [...(await recorded(verb === "delete" ? 801 : 811)), ...(await recorded(verb === "delete" ? 802 : 812))]
      for (const [event, status] of [
        [first, "PENDING"],
        [second, "RETRYING"]
      ] as const) {
        await app.sql(
          `INSERT INTO deliveries (id, event_id, webhook_id, organization_id, sequence, kind, status, next_attempt_at)
           VALUES ($1, $2, $3, 'org_a', 1, 'transaction.confirmed', $4, now())`,
          [event.id.replace("evt_", "del_"), event.id, id, status]
        )
      }
      await app.sql("INSERT INTO webhook_sequences VALUES ($1, 1)", [id])
      expect((await app.get(`/v1/webhooks/${id}`, keys.owner)).json.health.pendingDeliveries).toBe(2)
      const answer = await (verb === "delete"
        ? app.request("DELETE", `/v1/webhooks/${id}`, { key: keys.owner })
        : patch(app, keys.owner, id, { status: "DISABLED" }))
      expect(answer.status).toBeLessThan(300)
      for (const event of [first, second]) {
        const { json } = await app.get(`/v1/webhook-events/${event.id}/deliveries`, keys.owner)
        expect(json.data.filter((one: { webhookId: string }) => one.webhookId === id)).toEqual([
          expect.objectContaining({ status: "CANCELED", failureReason: reason, nextAttemptAt: null })
        ])
      }
    }
  })

  test("if more deliveries wait than one request can cancel, the change applies at once", async () => {
    const { id } = await create(app, keys.owner)
    const [event] = await recorded(821)
    const ids = Array.from({ length: 4_400 }, () => Id.make("del"))
    await app.sql(
      `INSERT INTO deliveries (id, event_id, webhook_id, organization_id, sequence, kind, status, next_attempt_at)
       SELECT d.id, $2, $3, 'org_a', d.n, 'transaction.confirmed', 'RETRYING', now() + interval '1 hour'
       FROM unnest($1::text[]) WITH ORDINALITY AS d (id, n)`,
      [ids, event.id, id]
    )
    await app.sql("INSERT INTO webhook_sequences VALUES ($1, $2)", [id, ids.length])
    // Each second row costs a millisecond or more: in sum more than the API's statement timeout.
    await app.sql("CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.001); RETURN NEW; END'")
    await app.sql(
      "CREATE TRIGGER take_time BEFORE UPDATE ON deliveries FOR EACH ROW WHEN (hashtext(NEW.id) % 2 = 0) EXECUTE FUNCTION take_time()"
    )
    const answer = await patch(app, keys.owner, id, { status: "DISABLED" })
    await app.sql("DROP TRIGGER take_time ON deliveries")
    expect(short(answer)).toBe("200")
    expect(
      await app.sql("SELECT status, count(*)::int AS count FROM deliveries WHERE webhook_id = $1 GROUP BY status ORDER BY status", [id])
    ).toEqual([
      { status: "CANCELED", count: 400 },
      { status: "RETRYING", count: 4_000 }
    ])
    expect(await app.sql("SELECT cancel_reason AS reason FROM webhook_queues WHERE webhook_id = $1", [id])).toEqual([
      { reason: "WEBHOOK_DISABLED" }
    ])
    expect(await app.sql("SELECT count(*)::int AS count FROM commands WHERE key = ANY($1)", [ids])).toEqual([{ count: 400 }])
  })

  test("a deleted webhook's signing secrets are deleted from the database", async () => {
    const { id } = await create(app, keys.owner)
    await app.request("DELETE", `/v1/webhooks/${id}`, { key: keys.owner })
    expect(await app.sql("SELECT 1 FROM webhook_secrets WHERE webhook_id = $1", [id])).toEqual([])
  })
})

/** The events recorded by one more confirmed transaction in `vault_a`. */
const recorded = async (number: number) => {
  await app.feed([transaction("vault_a", number)])
  const events = await app.walk("/v1/webhook-events?kind=transaction.confirmed", keys.owner)
  return events.filter(({ payload }) => payload.data.transaction.hash.endsWith(number.toString(16).padStart(8, "0")))
}
