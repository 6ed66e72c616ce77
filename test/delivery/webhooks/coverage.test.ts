/**
 * Nobody can subscribe to events that they could not read: an owner without the Developer role on a vault cannot cover it,
 * neither by name nor by leaving out the vault filter. Decision D-8.
 */
import { beforeAll, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { entity, smallest, user, vault } from "../../support/records.ts"
import { create, patch, short, tryCreate } from "../../support/webhookFixtures.ts"

const app = useApi()
/** An owner who sees `vault_a` of `entity_a`, but neither its `vault_b` nor a vault of `entity_b`; another owner sees all. */
let partial = "",
  manager = "",
  whole = ""

beforeAll(async () => {
  await app.feed(
    [
      ...smallest(),
      entity("entity_b", "org_a"),
      entity("entity_empty", "org_a"),
      vault("vault_b", "entity_a"),
      vault("vault_c", "entity_b"),
      user("user_a", "org_a", ["vault_a"], { organizationRole: "owner" }),
      user("user_w", "org_a", ["vault_a", "vault_b", "vault_c"], { organizationRole: "owner" })
    ],
    { "x-record-events": "none" }
  )
  partial = (await app.key("user_a")).secret
  manager = (await app.key("user_a", { scopes: ["webhook:manage"] })).secret
  whole = (await app.key("user_w")).secret
})

const refusal = (answer: { readonly json: { readonly errors: unknown } }) => answer.json.errors

test("an owner who does not see every vault of the entities must name the vaults", async () => {
  const answer = await tryCreate(app, partial)
  expect(short(answer)).toBe("400 invalid_body")
  expect(refusal(answer)).toEqual([
    {
      in: "body",
      field: "vaultIds",
      code: "invalid",
      detail: "must name the vaults, because you do not have the Developer role on every vault that these entities have or lately had"
    }
  ])
  expect(short(await tryCreate(app, partial, { status: "DISABLED" }))).toBe("400 invalid_body")
  expect(short(await tryCreate(app, partial, { entityIds: ["entity_a", "entity_b"], vaultIds: null }))).toBe("400 invalid_body")
  expect(short(await tryCreate(app, partial, { vaultIds: ["vault_a"] }))).toBe("201")
})

test("a vault that left an entity counts until its events have left the log", async () => {
  const records = { "x-record-events": "none" }
  await app.feed([entity("entity_left", "org_a"), vault("vault_left", "entity_left")], records)
  await app.feed([user("user_w", "org_a", ["vault_a", "vault_b", "vault_c", "vault_left"], { organizationRole: "owner" })], records)
  const { id } = await create(app, whole, { entityIds: ["entity_left"] })
  await app.feed([vault("vault_left", "entity_a")], records)
  const attempts = async () => [
    short(await tryCreate(app, partial, { entityIds: ["entity_left"] })),
    short(await patch(app, partial, id, { url: "https://hooks.example.com/mine" })),
    short(await app.request("POST", `/v1/webhooks/${id}/recoveries`, { key: partial, body: { since: new Date().toISOString() } }))
  ]
  expect(await attempts()).toEqual(["400 invalid_body", "400 invalid_body", "400 invalid_body"])
  const left = await app.sql("UPDATE vault_entities SET until = until - interval '34 days' WHERE until IS NOT NULL RETURNING vault_id")
  expect(left).toEqual([{ vault_id: "vault_left" }])
  expect(await attempts()).toEqual(["201", "200", "202"])
})

test("a hidden vault and a nonexistent one get the same response", async () => {
  const hidden = await tryCreate(app, partial, { vaultIds: ["vault_b"] })
  const unknown = await tryCreate(app, partial, { vaultIds: ["vault_absent"] })
  expect(short(hidden)).toBe("400 invalid_body")
  expect({ ...hidden.json, requestId: "" }).toEqual({ ...unknown.json, requestId: "" })
})

test("webhook:manage is enough, and vault:read is not needed", async () => {
  expect(short(await tryCreate(app, manager, { vaultIds: ["vault_a"] }))).toBe("201")
  expect(short(await tryCreate(app, manager))).toBe("400 invalid_body")
})

test("vaults created later are covered, and are checked at the next change", async () => {
  const { id } = await create(app, partial, { entityIds: ["entity_empty"] })
  expect(short(await patch(app, partial, id, { url: "https://hooks.example.com/moved" }))).toBe("200")
  await app.feed([vault("vault_late", "entity_empty")], { "x-record-events": "none" })
  expect(short(await patch(app, partial, id, { url: "https://hooks.example.com/again" }))).toBe("400 invalid_body")
})

test("an owner who sees only part of a webhook's vaults cannot change what it sends", async () => {
  const { id } = await create(app, whole)
  for (const body of [
    { url: "https://hooks.example.com/mine" },
    { eventKinds: ["transaction.confirmed", "balance.updated"] },
    { vaultIds: ["vault_a", "vault_b"] },
    { vaultIds: null }
  ]) {
    expect([body, short(await patch(app, partial, id, body))]).toEqual([body, "400 invalid_body"])
  }
  expect(short(await patch(app, partial, id, { description: "seen" }))).toBe("200")
  expect(short(await patch(app, partial, id, { status: "DISABLED" }))).toBe("200")
  expect(short(await patch(app, partial, id, { status: "ACTIVE" }))).toBe("400 invalid_body")
  expect(short(await app.request("POST", `/v1/webhooks/${id}/rotate-secret`, { key: partial }))).toBe("200")
  // With the filter narrowed to the vaults that the owner sees, all of it is allowed in one request.
  expect(short(await patch(app, partial, id, { vaultIds: ["vault_a"], status: "ACTIVE", url: "https://hooks.example.com/mine" }))).toBe(
    "200"
  )
  expect(short(await app.request("DELETE", `/v1/webhooks/${id}`, { key: partial }))).toBe("204")
})

test("an owner who sees only part of a webhook's vaults cannot reactivate it", async () => {
  const { id } = await create(app, whole)
  const resumed = async () => refusal(await patch(app, partial, id, { status: "ACTIVE" }))
  const atVaults = [expect.objectContaining({ in: "body", field: "vaultIds" })]
  // Holding back needs no more than ownership; sending again does.
  expect(short(await patch(app, partial, id, { status: "PAUSED" }))).toBe("200")
  expect(await resumed()).toEqual(atVaults)
  expect(short(await patch(app, partial, id, { status: "PAUSED", description: "still" }))).toBe("200")
  expect(short(await patch(app, partial, id, { status: "DISABLED" }))).toBe("200")
  expect(await resumed()).toEqual(atVaults)
  expect(refusal(await patch(app, partial, id, { status: "PAUSED" }))).toEqual(atVaults)
  expect(short(await patch(app, whole, id, { status: "PAUSED" }))).toBe("200")
  expect(await resumed()).toEqual(atVaults)
  // With the filter narrowed in the same request, it is allowed.
  expect(short(await patch(app, partial, id, { vaultIds: ["vault_a"], status: "ACTIVE" }))).toBe("200")
  expect(short(await patch(app, partial, id, { status: "PAUSED" }))).toBe("200")
  expect(short(await patch(app, partial, id, { status: "ACTIVE" }))).toBe("200")
})
