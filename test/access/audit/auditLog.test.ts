/** The audit log: every mutation leaves an entry, visible only to those who may see it. Decision D-50. */
import { describe, expect, test } from "bun:test"
import * as HttpApi from "@effect/platform/HttpApi"
import { Api } from "../../../src/app/Api.ts"
import * as Id from "../../../src/values/Id.ts"
import { delivery, event, insertDeliveries, insertEvents } from "../../events/log/eventRows.ts"
import { invite, PASSWORD, signedIn, Visitor } from "../../portal/client.ts"
import { type Answer, cli, useApp } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { create, short, useKeys } from "../../support/webhookFixtures.ts"

const app = useApp(["api", "worker"])
const keys = useKeys(app)

/** The newest entries, newest first. */
const entries = async (query = ""): Promise<ReadonlyArray<Answer["json"]>> => app.walk(`/v1/audit-log?${query}`, keys.owner, 100)
const newest = async (): Promise<Answer["json"]> => (await app.get("/v1/audit-log?limit=1", keys.owner)).json.data[0]

const redeliverable = async (webhookId: string) => {
  const one = event()
  const sent = delivery({ eventId: one.id, webhookId, vaultId: one.vaultId })
  await insertEvents(app, [one])
  await insertDeliveries(app, [sent])
  return sent.id
}

/** How to make each mutation of the contract, and its expected entry. A new mutation of the contract needs a case here. */
const mutations: Readonly<Record<string, readonly [action: string, make: (webhookId: string) => Promise<Answer>]>> = {
  createWebhook: ["webhook.created", async () => app.request("POST", "/v1/webhooks", { key: keys.owner, body: fieldsOf() })],
  updateWebhook: [
    "webhook.updated",
    (id) => app.request("PATCH", `/v1/webhooks/${id}`, { key: keys.owner, body: { url: "https://hooks.example.com/s3cret-path" } })
  ],
  deleteWebhook: ["webhook.deleted", (id) => app.request("DELETE", `/v1/webhooks/${id}`, { key: keys.owner })],
  rotateSecret: ["webhook.secret_rotated", (id) => app.request("POST", `/v1/webhooks/${id}/rotate-secret`, { key: keys.owner })],
  pingWebhook: ["webhook.pinged", (id) => app.request("POST", `/v1/webhooks/${id}/ping`, { key: keys.owner })],
  redeliver: [
    "delivery.redelivered",
    async (id) => app.request("POST", `/v1/webhook-deliveries/${await redeliverable(id)}/redeliver`, { key: keys.owner })
  ],
  createRecovery: ["recovery.created", (id) => recoveryOf(id)],
  pauseRecovery: ["recovery.paused", (id) => ofRecovery(id, "pause")],
  resumeRecovery: [
    "recovery.resumed",
    async (id) => {
      const { json } = await ofRecovery(id, "pause")
      return app.request("POST", `/v1/webhook-recoveries/${json.id}/resume`, { key: keys.owner })
    }
  ],
  cancelRecovery: ["recovery.canceled", (id) => ofRecovery(id, "cancel")]
}
const recoveryOf = (webhookId: string) =>
  app.request("POST", `/v1/webhooks/${webhookId}/recoveries`, {
    key: keys.owner,
    body: { since: new Date(Date.now() - 3_600_000).toISOString() }
  })
/** Operations on a new recovery, which no dispatcher starts here. */
const ofRecovery = async (webhookId: string, verb: string) => {
  const { json } = await recoveryOf(webhookId)
  return app.request("POST", `/v1/webhook-recoveries/${json.id}/${verb}`, { key: keys.owner })
}
const fieldsOf = () => ({
  url: "https://hooks.example.com/s3cret-path?token=s3cret",
  entityIds: ["entity_a"],
  eventKinds: ["transaction.confirmed"],
  notificationEmail: "ops@example.com"
})

describe("audit log entries", () => {
  test("every change through the API is recorded with key, user, address and request, without secrets", async () => {
    const names: Array<string> = []
    HttpApi.reflect(Api, {
      onGroup: () => {},
      onEndpoint: ({ endpoint }) => {
        // A preview changes nothing.
        if (endpoint.method !== "GET" && endpoint.name !== "previewWebhook") names.push(endpoint.name)
      }
    })
    expect(Object.keys(mutations).sort()).toEqual(names.sort())
    for (const [name, [action, make]] of Object.entries(mutations)) {
      const { id, secret } = await create(app, keys.owner)
      const answer = await make(id)
      expect([name, answer.status < 300]).toEqual([name, true])
      const entry = await newest()
      expect([name, entry]).toEqual([
        name,
        {
          id: expect.stringMatching(/^aud_/),
          at: expect.any(String),
          actor: { type: "key", id: expect.stringMatching(/^key_/), userId: "user_a" },
          action,
          target: { type: action.split(".", 1)[0], id: expect.any(String) },
          clientAddress: "127.0.0.1",
          requestId: answer.headers.get("x-request-id"),
          changes: expect.any(Object)
        }
      ])
      expect(JSON.stringify(await entries())).not.toContain(secret)
    }
    const log = JSON.stringify(await entries())
    expect(log).not.toContain("s3cret")
    expect(log).not.toContain("whsec_")
    const [updated] = await entries("action=webhook.updated")
    expect(updated.changes).toEqual({ url: { old: "https://hooks.example.com/…", new: "https://hooks.example.com/…" } })
    const [made] = await entries("action=webhook.created")
    expect(made.changes).toMatchObject({ entityIds: { old: null, new: ["entity_a"] }, status: { old: null, new: "ACTIVE" } })
  })

  test("a refused or rolled back mutation leaves none", async () => {
    const before = (await entries()).length
    await create(app, keys.owner, { url: "https://127.0.0.1/" }).catch(() => undefined)
    await app.request("DELETE", "/v1/webhooks/whs_absent", { key: keys.owner })
    await app.request("POST", "/v1/webhooks", { key: keys.member, body: fieldsOf() })
    expect((await entries()).length).toBe(before)
  })

  test("operators' commands and automatic changes are recorded", async () => {
    const made = JSON.parse((await cli(["keys", "create", "--user", "user_m", "--scopes", "vault:read", "--all-vaults"], app.env)).stdout)
    expect(await newest()).toMatchObject({
      actor: { type: "operator", id: null, userId: null },
      action: "api_key.created",
      target: { type: "api_key", id: made.id },
      clientAddress: null,
      changes: { scopes: { old: null, new: ["vault:read"] } }
    })
    await cli(["keys", "update", made.id, "--label", "ledger"], app.env)
    expect(await newest()).toMatchObject({ action: "api_key.updated", changes: { label: { old: "", new: "ledger" } } })
    await cli(["keys", "revoke", made.id], app.env)
    expect(await newest()).toMatchObject({ action: "api_key.revoked", target: { id: made.id } })
    await cli(["users", "invite", "user_m"], app.env)
    expect(await newest()).toMatchObject({
      actor: { type: "operator" },
      action: "account.invited",
      target: { type: "account", id: "user_m" }
    })
    await cli(["secrets", "reencrypt"], app.env)
    expect(await newest()).toMatchObject({ action: "master_key.reencrypted", target: { type: "organization", id: "org_a" } })
    const leaving = { type: "user", id: "user_x", organizationId: "org_a", email: "x@example.com", name: "x", organizationRole: "member" }
    await app.feed([{ ...leaving, status: "active", vaultRoles: [] }])
    const { key } = await app.key("user_x")
    await app.feed([{ ...leaving, status: "deactivated", vaultRoles: [] }])
    expect(await newest()).toMatchObject({ actor: { type: "service" }, action: "api_key.revoked", target: { id: key.id } })
  })

  test("portal actions are recorded with their session: invitation, sign-in, failures, lockout, keys and deliveries", async () => {
    const person = await signedIn(app, "user_a")
    const acts = async () => (await entries()).map(({ action }) => action)
    expect((await acts()).slice(0, 4)).toEqual([
      "account.signed_in",
      "account.second_factor_added",
      "account.invitation_accepted",
      "account.invited"
    ])
    const [signed] = await entries("action=account.signed_in")
    expect(signed.actor).toMatchObject({ type: "session", userId: "user_a" })
    const webhook = await create(app, keys.owner)
    const deliveryId = await redeliverable(webhook.id)
    await app.sql(
      "UPDATE deliveries SET status = 'PENDING', delivered_at = NULL, next_attempt_at = now() + interval '1 hour' WHERE id = $1",
      [deliveryId]
    )
    for (const [act, action] of [
      ["retry-now", "delivery.retried"],
      ["cancel", "delivery.canceled"]
    ]) {
      expect((await person.request("POST", `/api/deliveries/${deliveryId}/${act}`, {})).status).toBe(200)
      expect(await newest()).toMatchObject({
        action,
        actor: { type: "session", id: signed.actor.id, userId: "user_a" },
        target: { id: deliveryId }
      })
    }
    const visitor = new Visitor(app)
    await visitor.request("POST", "/api/sign-in", { email: "user_a@example.com", password: "a wrong password" })
    await until("the failed sign-in", async () => (await newest()).action === "account.sign_in_failed")
    expect(await newest()).toMatchObject({ action: "account.sign_in_failed", target: { id: "user_a" }, clientAddress: "127.0.0.1" })
    await visitor.request("POST", "/api/sign-in", { email: "user_a@example.com", password: PASSWORD })
    for (let count = 0; count < 5; count++) await visitor.request("POST", "/api/sign-in/second-factor", { code: "000000" })
    expect((await acts()).slice(0, 3)).toEqual(["account.locked", "account.second_factor_failed", "account.second_factor_failed"])
    await invite(app, "user_a", { reset: true })
    expect(await newest()).toMatchObject({ action: "account.invited", changes: { reset: { old: null, new: true } } })
    expect(JSON.stringify(await entries())).not.toContain(PASSWORD)
  })
})

describe("GET /v1/audit-log", () => {
  test("is open to owner-level keys with webhook:read and no vault allowlist", async () => {
    expect(short(await app.get("/v1/audit-log", keys.manager))).toBe("403 insufficient_scope")
    expect(short(await app.get("/v1/audit-log", keys.member))).toBe("403 owner_required")
    expect(short(await app.get("/v1/audit-log", keys.limited))).toBe("403 insufficient_scope")
    expect(short(await app.get("/v1/audit-log", keys.reader))).toBe("200")
    expect(short(await app.get("/v1/audit-log"))).toBe("401 missing_credentials")
    const foreign = await app.walk("/v1/audit-log", keys.stranger)
    expect(foreign.filter(({ target }) => !["org_z", "user_z"].includes(target.id) && target.type !== "api_key")).toEqual([])
    for (const one of foreign.filter(({ target }) => target.type === "api_key")) expect(one.changes.userId.new).toBe("user_z")
  })

  test("pages through entries newest first, filtered as a reference model does", async () => {
    const all = await entries()
    expect(all.map(({ at, id }) => `${at} ${id}`)).toEqual(
      all
        .map(({ at, id }) => `${at} ${id}`)
        .sort()
        .reverse()
    )
    const keyId = all.find(({ actor }) => actor.type === "key")?.actor.id
    const webhook = all.find(({ action }) => action === "webhook.updated")?.target.id
    const middle = all[Math.floor(all.length / 2)]?.at
    for (const [query, fits] of [
      ["actor=user_a", (_) => _.actor.userId === "user_a"],
      [`actor=${keyId}`, (_) => _.actor.id === keyId],
      [`actor=${keyId}&action=webhook.created`, (_) => _.actor.id === keyId && _.action === "webhook.created"],
      ["actor=user_a&action=account.signed_in", (_) => _.actor.userId === "user_a" && _.action === "account.signed_in"],
      ["actor=nobody", () => false],
      [`target=${webhook}`, (_) => _.target.id === webhook],
      [`target=${webhook}&actor=user_a`, (_) => _.target.id === webhook && _.actor.userId === "user_a"],
      [`target=${webhook}&action=webhook.created`, (_) => _.target.id === webhook && _.action === "webhook.created"],
      [
        `target=${webhook}&actor=${keyId}&action=webhook.updated`,
        (_) => _.target.id === webhook && _.actor.id === keyId && _.action === "webhook.updated"
      ],
      ["target=user_a", (_) => _.target.id === "user_a"],
      ["target=nobody", () => false],
      ["action=webhook.pinged", (_) => _.action === "webhook.pinged"],
      [`occurredAfter=${middle}`, (_) => _.at >= middle],
      [`occurredBefore=${middle}&actor=user_a`, (_) => _.at <= middle && _.actor.userId === "user_a"]
    ] as ReadonlyArray<readonly [string, (one: Answer["json"]) => boolean]>) {
      for (const limit of [3, 100]) {
        const shown = await app.walk(`/v1/audit-log?${query}`, keys.owner, limit)
        expect([query, shown.map(({ id }) => id)]).toEqual([query, all.filter(fits).map(({ id }) => id)])
      }
    }
    for (const bad of ["actor=", "target=", "action=nothing", "occurredAfter=yesterday", "who=user_a"]) {
      expect([bad, (await app.get(`/v1/audit-log?${bad}`, keys.owner)).status]).toEqual([bad, 400])
    }
  })

  test("entries are append-only and are not deleted before they are 400 days old", async () => {
    for (const statement of ["UPDATE audit_log SET action = 'x'", "DELETE FROM audit_log", "TRUNCATE audit_log"]) {
      await expect(app.sql(statement)).rejects.toThrow("rows of audit_log are not changed")
    }
    const old = Id.derived("aud", Date.now() - 401 * 86_400_000, "old")
    await app.sql(
      `INSERT INTO audit_log (id, organization_id, at, actor_type, action, target_type, target_id, changes)
       VALUES ($1, 'org_a', now() - interval '401 days', 'service', 'webhook.disabled', 'webhook', 'whs_x', '{}')`,
      [old]
    )
    expect((await entries()).map(({ id }) => id)).not.toContain(old)
    await app.sql("DELETE FROM audit_log WHERE id = $1", [old])
  })
})
