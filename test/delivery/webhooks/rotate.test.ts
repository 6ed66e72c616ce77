/** Rotating signing secrets. Spec: rotate-secret; Delivery contract 5; Limits. Decision D-25. */
import { describe, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { create, patch, short, useKeys } from "../../support/webhookFixtures.ts"

const app = useApi()
const keys = useKeys(app)
const HOUR = 3_600_000

const rotate = (id: string, key = keys.owner) => app.request("POST", `/v1/webhooks/${id}/rotate-secret`, { key })
const retire = (id: string, body: unknown = { expirePrevious: "now" }) =>
  app.request("POST", `/v1/webhooks/${id}/rotate-secret`, { key: keys.owner, body })
const secretsOf = (id: string) => app.sql("SELECT expires_at FROM webhook_secrets WHERE webhook_id = $1", [id])
/** Makes every secret in its grace window expire now. */
const expire = (id: string) =>
  app.sql("UPDATE webhook_secrets SET expires_at = now() - interval '1 second' WHERE webhook_id = $1 AND expires_at IS NOT NULL", [id])

describe("POST /v1/webhooks/{webhookId}/rotate-secret", () => {
  test("issue a new secret, returned once; a 24-hour grace window applies", async () => {
    const { id, secret } = await create(app, keys.owner)
    const before = Date.now()
    const { json, status } = await rotate(id)
    expect(status).toBe(200)
    expect(json).toEqual({ id, secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/), previousSecretExpiresAt: expect.any(String) })
    expect(json.secret).not.toBe(secret)
    const until = Date.parse(json.previousSecretExpiresAt)
    expect(until).toBeGreaterThanOrEqual(before + 24 * HOUR - 1_000)
    expect(until).toBeLessThanOrEqual(Date.now() + 24 * HOUR + 1_000)
    const read = await app.get(`/v1/webhooks/${id}`, keys.owner)
    expect(read.json.previousSecretExpiresAt).toBe(json.previousSecretExpiresAt)
    expect(read.text).not.toContain("whsec_")
  })

  test("at most three secrets are valid, then 409, until one expires", async () => {
    const { id } = await create(app, keys.owner)
    expect([short(await rotate(id)), short(await rotate(id))]).toEqual(["200", "200"])
    expect(short(await rotate(id))).toBe("409 rotation_limit_reached")
    await expire(id)
    expect((await app.get(`/v1/webhooks/${id}`, keys.owner)).json.previousSecretExpiresAt).toBeNull()
    expect([short(await rotate(id)), short(await rotate(id)), short(await rotate(id))]).toEqual([
      "200",
      "200",
      "409 rotation_limit_reached"
    ])
  })

  test("all earlier secrets can be expired at once, however many there are", async () => {
    const { id } = await create(app, keys.owner)
    for (const earlier of [0, 1, 2]) {
      for (let count = 0; count < earlier; count++) await rotate(id)
      expect((await secretsOf(id)).length).toBe(earlier + 1)
      const { json, status } = await retire(id)
      expect([status, json.previousSecretExpiresAt]).toEqual([200, null])
      expect(await secretsOf(id)).toEqual([{ expires_at: null }])
      expect((await app.get(`/v1/webhooks/${id}`, keys.owner)).json.previousSecretExpiresAt).toBeNull()
    }
    const [entry] = (await app.get("/v1/audit-log?action=webhook.secret_rotated", keys.owner)).json.data
    expect(entry).toMatchObject({ target: { id }, changes: { expirePrevious: { old: null, new: "now" } } })
    const [{ payload }] = (await app.get("/v1/webhook-events?kind=webhook.secret_rotated&limit=1", keys.owner)).json.data
    expect(payload.data.webhook).toEqual({ id, previousSecretExpiresAt: payload.date })
  })

  test("another value than now, or another field, is rejected and expires nothing", async () => {
    const { id } = await create(app, keys.owner)
    for (const [body, issue] of [
      [{ expirePrevious: "later" }, "expirePrevious must be now."],
      [{ expirePrevious: null }, "expirePrevious must be now."],
      [{ expirePrevious: "now", at: 1 }, "at is not a field of this body."],
      [["now"], "The body must be an object."],
      [null, "The body must be an object."]
    ] as const) {
      const { json, status } = await retire(id, body)
      expect([status, json.code, json.detail]).toEqual([400, "invalid_body", issue])
    }
    expect((await secretsOf(id)).length).toBe(1)
  })

  test("concurrent rotations leave at most three, one of them current", async () => {
    const { id } = await create(app, keys.owner)
    const answers = await Promise.all(Array.from({ length: 10 }, () => rotate(id)))
    expect(answers.map(short).sort()).toEqual(["200", "200", ...Array.from({ length: 8 }, () => "409 rotation_limit_reached")])
    const rows = await app.sql("SELECT expires_at FROM webhook_secrets WHERE webhook_id = $1", [id])
    expect([rows.length, rows.filter((row) => row["expires_at"] === null).length]).toEqual([3, 1])
  })

  test("the event webhook.secret_rotated is recorded for each of its entities, and contains no secret", async () => {
    const { id } = await create(app, keys.owner, { entityIds: ["entity_a", "entity_b"], status: "DISABLED" })
    const { json } = await rotate(id)
    const events = (await app.walk("/v1/webhook-events?kind=webhook.secret_rotated", keys.owner)).filter(
      ({ payload }) => payload.data.webhookId === id
    )
    expect(events.map(({ entityId }) => entityId).sort()).toEqual(["entity_a", "entity_b"])
    for (const event of events) {
      expect(event).toMatchObject({ vaultIds: null, schemaVersion: 1, kind: "webhook.secret_rotated" })
      expect(event.payload).toEqual({
        id: event.id,
        kind: "webhook.secret_rotated",
        schemaVersion: 1,
        date: event.occurredAt,
        entityId: event.entityId,
        vaultIds: null,
        data: { webhookId: id, webhook: { id, previousSecretExpiresAt: json.previousSecretExpiresAt } }
      })
    }
  })

  test("a refused rotation changes nothing and records nothing", async () => {
    const { id } = await create(app, keys.owner)
    await rotate(id)
    await rotate(id)
    const count = async () => [
      (await app.sql("SELECT 1 FROM webhook_secrets WHERE webhook_id = $1", [id])).length,
      (await app.walk("/v1/webhook-events", keys.owner)).length
    ]
    const before = await count()
    for (const key of [keys.owner, keys.reader, keys.member, keys.stranger])
      expect((await rotate(id, key)).status).toBeGreaterThanOrEqual(403)
    expect(await count()).toEqual(before)
  })

  test("a disabled webhook's secret can be rotated, and enabling it does not change the secret", async () => {
    const { id } = await create(app, keys.owner, { status: "DISABLED" })
    expect(short(await rotate(id))).toBe("200")
    const ciphertexts = () => app.sql("SELECT ciphertext FROM webhook_secrets WHERE webhook_id = $1 ORDER BY id", [id])
    const before = await ciphertexts()
    await patch(app, keys.owner, id, { status: "ACTIVE" })
    expect(await ciphertexts()).toEqual(before)
  })
})
