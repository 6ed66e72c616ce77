/** Changing webhooks. Spec: Update webhook. Decisions D-5, D-8, D-19; RFC 7396. */
import { describe, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { user } from "../../support/records.ts"
import { create, issues, patch, short, useKeys } from "../../support/webhookFixtures.ts"

const app = useApi()
const keys = useKeys(app)

describe("PATCH /v1/webhooks/{webhookId}", () => {
  test("update URL, event kinds, vault filter, status or description, separately and all at once", async () => {
    const { id, secret: _, ...before } = await create(app, keys.owner, { vaultIds: ["vault_a"], description: "first" })
    const changes = [
      { url: "https://other.example.com/x" },
      { eventKinds: ["vault.created", "balance.updated"] },
      { vaultIds: ["vault_a2", "vault_a"] },
      { description: "second" },
      { status: "DISABLED" }
    ]
    let expected = { id, ...before }
    for (const change of changes) {
      const { json, status } = await patch(app, keys.owner, id, change)
      expected = { ...expected, ...change }
      expect(status).toBe(200)
      expect(json).toMatchObject(change)
      expect({ ...json, updatedAt: "", disabledAt: "", disabledReason: "" }).toEqual({
        ...expected,
        updatedAt: "",
        disabledAt: "",
        disabledReason: ""
      })
    }
    const all = { url: "https://hooks.example.com/", eventKinds: ["vault.updated"], vaultIds: null, description: "", status: "ACTIVE" }
    expect((await patch(app, keys.owner, id, all)).json).toMatchObject({ ...all, disabledReason: null, disabledAt: null })
    expect((await app.get(`/v1/webhooks/${id}`, keys.owner)).json).toMatchObject(all)
  })

  test("fields left out are unchanged, and null removes the vault filter", async () => {
    const { id } = await create(app, keys.owner, { vaultIds: ["vault_a"], description: "kept" })
    const { health: _, ...before } = (await app.get(`/v1/webhooks/${id}`, keys.owner)).json
    const entries = async () => (await app.get("/v1/audit-log", keys.owner)).json.data.length
    const audited = await entries()
    expect((await patch(app, keys.owner, id, {})).json).toEqual(before)
    expect(await entries()).toBe(audited)
    expect((await patch(app, keys.owner, id, { vaultIds: null })).json).toMatchObject({ vaultIds: null, description: "kept" })
    expect((await patch(app, keys.owner, id, { description: null })).json).toMatchObject({ description: "", url: before.url })
    for (const field of ["url", "eventKinds", "status"])
      expect(short(await patch(app, keys.owner, id, { [field]: null }))).toBe("400 invalid_body")
    expect((await app.get(`/v1/webhooks/${id}`, keys.owner)).json).toMatchObject({ url: before.url, status: "ACTIVE" })
  })

  test("the body is accepted as application/json and application/merge-patch+json, and as nothing else", async () => {
    const { id } = await create(app, keys.owner, { status: "DISABLED" })
    const send = (type: string) =>
      app.request("PATCH", `/v1/webhooks/${id}`, { key: keys.owner, raw: '{"description":"x"}', headers: { "content-type": type } })
    for (const type of ["application/json", "application/json; charset=utf-8", "application/merge-patch+json"])
      expect(short(await send(type))).toBe("200")
    for (const type of ["text/plain", "application/json-patch+json", "application/x-www-form-urlencoded"])
      expect(short(await send(type))).toBe("415 unsupported_media_type")
  })

  test("other fields are refused, and nothing of the patch is applied", async () => {
    const { id } = await create(app, keys.owner, { status: "DISABLED", description: "kept" })
    for (const [field, value] of [
      ["secret", "whsec_x"],
      ["id", "whs_x"],
      ["entityIds", ["entity_b"]],
      ["entityId", "entity_b"],
      ["notificationEmail", "x@example.com"],
      ["disabledReason", null],
      ["createdAt", "2020-01-01T00:00:00.000Z"],
      ["health", {}],
      ["previousSecretExpiresAt", null]
    ] as const) {
      const answer = await patch(app, keys.owner, id, { description: "changed", [field]: value })
      expect([field, answer.status, answer.json.code, issues(answer)]).toEqual([field, 400, "invalid_body", [`${field} unknown_field`]])
    }
    for (const status of ["x", "active", 1, "paused"])
      expect(issues(await patch(app, keys.owner, id, { status }))).toEqual(["status invalid"])
    for (const body of [[], null, 1, "x", [{ description: "changed" }]])
      expect(short(await patch(app, keys.owner, id, body))).toBe("400 invalid_body")
    expect((await app.get(`/v1/webhooks/${id}`, keys.owner)).json.description).toBe("kept")
  })

  test("a patch cannot make the webhook send what the key could not read", async () => {
    const { id } = await create(app, keys.owner, { vaultIds: ["vault_a"], eventKinds: ["transaction.confirmed", "webhook.disabled"] })
    expect(issues(await patch(app, keys.limited, id, { vaultIds: null }))).toEqual(["vaultIds invalid"])
    expect(issues(await patch(app, keys.limited, id, { vaultIds: ["vault_a2"] }))).toEqual(["vaultIds invalid"])
    expect(issues(await patch(app, keys.limited, id, { eventKinds: ["webhook.secret_rotated"] }))).toEqual(["eventKinds invalid"])
    expect(issues(await patch(app, keys.limited, id, { url: "https://elsewhere.example.com/" }))).toEqual(["eventKinds invalid"])
    expect(short(await patch(app, keys.limited, id, { description: "seen" }))).toBe("200")
    expect(short(await patch(app, keys.limited, id, { eventKinds: ["transaction.failed"], url: "https://elsewhere.example.com/" }))).toBe(
      "200"
    )
    expect(issues(await patch(app, keys.owner, id, { vaultIds: ["vault_b"] }))).toEqual(["vaultIds invalid"])
    expect(issues(await patch(app, keys.owner, id, { vaultIds: ["vault_absent"] }))).toEqual(["vaultIds invalid"])
    await patch(app, keys.owner, id, { vaultIds: null })
    // When the key can no longer see it, the webhook is 404.
    expect(short(await patch(app, keys.limited, id, { description: "x" }))).toBe("404 not_found")
  })

  test("an owner who lost a vault's role can neither redirect nor redeliver its events", async () => {
    const events = { vaultIds: ["vault_a2"], status: "DISABLED" }
    const { id } = await create(app, keys.owner, events)
    const roles = (...vaults: ReadonlyArray<string>) => app.feed([user("user_a", "org_a", vaults, { organizationRole: "owner" })])
    await roles("vault_a", "vault_b")
    for (const body of [{ url: "https://mine.example.com/" }, { status: "ACTIVE" }, { eventKinds: ["balance.updated"] }])
      expect([body, issues(await patch(app, keys.owner, id, body))]).toEqual([body, ["vaultIds invalid"]])
    expect(short(await patch(app, keys.owner, id, { description: "kept", status: "DISABLED" }))).toBe("200")
    await roles("vault_a", "vault_a2", "vault_b")
    expect(short(await patch(app, keys.owner, id, { url: "https://mine.example.com/" }))).toBe("200")
  })

  test("visibility is checked first, then the scope, then the owner, then the body", async () => {
    const { id } = await create(app, keys.owner, { status: "DISABLED" })
    const wrong = { key: "", raw: "{", headers: { "content-type": "text/plain" } }
    const ask = (key: string) => app.request("PATCH", `/v1/webhooks/${id}`, { ...wrong, key })
    const read = (await app.key("user_m", { scopes: ["webhook:read"] })).secret
    expect(short(await ask(keys.stranger))).toBe("404 not_found")
    expect(short(await ask(keys.manager))).toBe("404 not_found")
    expect(short(await ask(read))).toBe("403 insufficient_scope")
    expect(short(await ask(keys.reader))).toBe("403 insufficient_scope")
    expect(short(await ask(keys.member))).toBe("403 owner_required")
    expect(short(await ask(keys.owner))).toBe("415 unsupported_media_type")
    for (const [method, path] of [
      ["DELETE", ""],
      ["POST", "/rotate-secret"],
      ["POST", "/ping"]
    ] as const) {
      const codes = []
      for (const key of [keys.stranger, keys.manager, read, keys.member])
        codes.push(short(await app.request(method, `/v1/webhooks/${id}${path}`, { key, headers: { "idempotency-key": " " } })))
      expect([method, path, ...codes]).toEqual([
        method,
        path,
        "404 not_found",
        "404 not_found",
        "403 insufficient_scope",
        "403 owner_required"
      ])
    }
    expect(short(await app.get(`/v1/webhooks/${id}`, keys.owner))).toBe("200")
  })
})
