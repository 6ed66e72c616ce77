/** Creating webhooks. Spec: Webhook; Webhook operations. Decisions D-6, D-8, D-19. */
import { describe, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { user } from "../../support/records.ts"
import { create, fields, issues, patch, short, tryCreate, useKeys } from "../../support/webhookFixtures.ts"

const app = useApi()
const keys = useKeys(app)

describe("POST /v1/webhooks", () => {
  test("create a webhook; the response returns the signing secret once", async () => {
    const answer = await tryCreate(app, keys.owner, { description: "Ledger import" })
    expect(answer.status).toBe(201)
    expect(answer.json).toEqual({
      id: expect.stringMatching(/^whs_[0-9a-hjkmnp-tv-z]{26}$/),
      url: "https://hooks.example.com/custody",
      description: "Ledger import",
      status: "ACTIVE",
      disabledReason: null,
      disabledAt: null,
      entityIds: ["entity_a"],
      eventKinds: ["transaction.confirmed"],
      vaultIds: null,
      notificationEmail: "ops@example.com",
      headers: [],
      oauth: null,
      previousSecretExpiresAt: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updatedAt: expect.any(String),
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/)
    })
    expect(Buffer.from(answer.json.secret.slice(6), "base64").length).toBe(32)
    const { secret: _, ...webhook } = answer.json
    const one = await app.get(`/v1/webhooks/${webhook.id}`, keys.owner)
    expect(one.json).toEqual({ ...webhook, health: expect.any(Object) })
    expect((await app.walk("/v1/webhooks", keys.owner)).find(({ id }) => id === webhook.id)).toEqual(webhook)
  })

  test("the signing secret is returned exactly once; no other response contains it", async () => {
    const { id, secret } = await create(app, keys.owner)
    const answers = [
      await app.get(`/v1/webhooks/${id}`, keys.owner),
      await app.get("/v1/webhooks?limit=500", keys.owner),
      await patch(app, keys.owner, id, { description: "again" }),
      await app.get(`/v1/webhooks/${id}/deliveries`, keys.owner),
      await app.get("/v1/webhook-events", keys.owner)
    ]
    for (const { status, text } of answers) expect([status, text.includes(secret), text.includes("whsec_")]).toEqual([200, false, false])
  })

  test("every secret is unique", async () => {
    const made = await Promise.all(Array.from({ length: 5 }, () => create(app, keys.owner, { status: "DISABLED" })))
    expect(new Set(made.map(({ secret }) => secret)).size).toBe(5)
  })

  test("url, eventKinds and notificationEmail are required, and each missing one is named", async () => {
    const answer = await app.request("POST", "/v1/webhooks", { key: keys.owner, body: {} })
    expect([answer.status, issues(answer)]).toEqual([400, ["eventKinds missing", "notificationEmail missing", "url missing"]])
  })

  test("vaultIds, description and status are optional", async () => {
    const webhook = await create(app, keys.owner, { vaultIds: ["vault_a2"], description: "", status: "DISABLED" })
    expect(webhook).toMatchObject({ vaultIds: ["vault_a2"], description: "", status: "DISABLED", disabledReason: "MANUAL" })
    expect(webhook.disabledAt).toEqual(expect.any(String))
  })

  test("fields that are not settings of a webhook are refused", async () => {
    for (const field of ["id", "secret", "disabledReason", "createdAt", "health", "entityId", "ulr", "__proto__", "constructor"]) {
      const raw = `{"${field}":"x",${JSON.stringify(fields()).slice(1)}`
      const answer = await app.request("POST", "/v1/webhooks", { key: keys.owner, raw, headers: { "content-type": "application/json" } })
      expect([field, answer.status, issues(answer)]).toEqual([field, 400, [`${field} unknown_field`]])
    }
  })

  test("invalid values are refused, each with its field", async () => {
    const wrong: ReadonlyArray<readonly [string, unknown]> = [
      ["entityIds", []],
      ["entityIds", null],
      ["entityIds", "entity_a"],
      ["entityIds", ["entity_a", "entity_a"]],
      ["entityIds", Array.from({ length: 101 }, (_, index) => `entity_${index}`)],
      ["eventKinds", []],
      ["eventKinds", null],
      ["eventKinds", ["transaction.confirmed", "transaction.confirmed"]],
      ["notificationEmail", null],
      ["notificationEmail", "ops"],
      ["notificationEmail", "ops@example"],
      ["notificationEmail", "ops@@example.com"],
      ["notificationEmail", "a@example.com,b@example.com"],
      ["notificationEmail", "a@example.com,evil"],
      ["notificationEmail", "Ops <ops@example.com>"],
      ["notificationEmail", "ops@example.com\r\nBcc: x@example.com"],
      ["notificationEmail", "ops@exam ple.com"],
      ["notificationEmail", `${"a".repeat(250)}@example.com`],
      ["notificationEmail", ""],
      ["vaultIds", []],
      ["vaultIds", "vault_a"],
      ["vaultIds", ["vault_a", "vault_a"]],
      ["description", null],
      ["description", 1],
      ["description", "x".repeat(1_001)],
      ["description", "a\u0000b"],
      ["status", "x"],
      ["status", "active"],
      ["status", null]
    ]
    for (const [field, value] of wrong) {
      const answer = await tryCreate(app, keys.owner, { [field]: value })
      expect([field, value, answer.status, answer.json.code, issues(answer).every((one) => one.startsWith(field))]).toEqual([
        field,
        value,
        400,
        "invalid_body",
        true
      ])
      expect(issues(answer).length).toBeGreaterThan(0)
    }
    const half = JSON.stringify(fields()).replace("{", '{"description":"\\ud800",')
    expect(
      short(await app.request("POST", "/v1/webhooks", { key: keys.owner, raw: half, headers: { "content-type": "application/json" } }))
    ).toBe("400 invalid_body")
  })

  test("event kinds are an explicit opt-in list, with no wildcards", async () => {
    for (const kind of ["*", "transaction.*", "transaction", "", "webhook.ping", "TRANSACTION.CONFIRMED", null]) {
      const answer = await tryCreate(app, keys.owner, { eventKinds: ["transaction.confirmed", kind] })
      expect([kind, answer.status, issues(answer)]).toEqual([kind, 400, ["eventKinds.1 invalid"]])
    }
    const all = (await app.get("/v1/openapi.json")).json.components.schemas.EventKind.enum
    expect(all).toHaveLength(16)
    const webhook = await create(app, keys.owner, { eventKinds: all, status: "DISABLED" })
    expect(webhook.eventKinds).toEqual(all)
  })

  test("a hidden and an unknown vault or entity in a body get the same 400", async () => {
    const entities = await Promise.all(
      ["entity_absent", "entity_z", "vault_a", "", "entity_a\u0000", "x".repeat(5_000)].map((id) =>
        tryCreate(app, keys.owner, { entityIds: ["entity_a", id] })
      )
    )
    const vaults = await Promise.all(
      ["vault_absent", "vault_z", "vault_b", "entity_a", "", "vault_a\u0000"].map((id) =>
        tryCreate(app, keys.owner, { vaultIds: ["vault_a", id] })
      )
    )
    for (const group of [entities, vaults]) {
      const bodies = group.map(({ json: { requestId: _, ...body } }) => JSON.stringify(body))
      expect(group.map(short)).toEqual(group.map(() => "400 invalid_body"))
      expect(new Set(bodies).size).toBe(1)
    }
  })

  test("a vault filter may name vaults of any of the webhook's entities", async () => {
    const webhook = await create(app, keys.owner, {
      entityIds: ["entity_b", "entity_a"],
      vaultIds: ["vault_b", "vault_a"],
      status: "DISABLED"
    })
    expect(webhook).toMatchObject({ entityIds: ["entity_a", "entity_b"], vaultIds: ["vault_b", "vault_a"] })
  })

  test("a key with a vault allowlist must filter within it", async () => {
    const refused = async (more: { readonly [field: string]: unknown }) => issues(await tryCreate(app, keys.limited, more))
    expect(await refused({})).toEqual(["vaultIds invalid"])
    expect(await refused({ vaultIds: null })).toEqual(["vaultIds invalid"])
    expect(await refused({ vaultIds: ["vault_a", "vault_a2"] })).toEqual(["vaultIds invalid"])
    expect(await refused({ vaultIds: ["vault_a"], eventKinds: ["webhook.disabled"] })).toEqual(["eventKinds invalid"])
    // It would use up the other entity's number of webhooks.
    expect(await refused({ entityIds: ["entity_a", "entity_b"], vaultIds: ["vault_a"] })).toEqual(["entityIds invalid"])
    expect((await tryCreate(app, keys.limited, { vaultIds: ["vault_a"] })).status).toBe(201)
  })

  test("mutations need webhook:manage, and management is restricted to owner-level credentials", async () => {
    expect(short(await tryCreate(app, keys.reader))).toBe("403 insufficient_scope")
    expect(short(await tryCreate(app, keys.member))).toBe("403 owner_required")
    // webhook:manage alone creates; it does not imply webhook:read.
    const { id } = await create(app, keys.manager, { status: "DISABLED" })
    expect(short(await app.get(`/v1/webhooks/${id}`, keys.manager))).toBe("404 not_found")
    expect(short(await app.get("/v1/webhooks", keys.manager))).toBe("403 insufficient_scope")
  })

  test("owner-level access is evaluated live, with each request", async () => {
    const demoted = user("user_o", "org_a", ["vault_a", "vault_a2"])
    await app.feed([{ ...demoted, organizationRole: "owner" }])
    const { secret } = await app.key("user_o")
    const { id } = await create(app, secret, { status: "DISABLED" })
    await app.feed([demoted])
    expect(short(await tryCreate(app, secret))).toBe("403 owner_required")
    expect(short(await patch(app, secret, id, { description: "x" }))).toBe("403 owner_required")
    expect(short(await app.request("DELETE", `/v1/webhooks/${id}`, { key: secret }))).toBe("403 owner_required")
    await app.feed([{ ...demoted, organizationRole: "owner" }])
    expect(short(await patch(app, secret, id, { description: "x" }))).toBe("200")
  })
})
