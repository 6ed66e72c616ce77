import { beforeAll, describe, expect, test } from "bun:test"
import { Effect } from "effect"
import { ApiKeys } from "../../src/access/keys/ApiKeys.ts"
import { cli, useApp } from "../support/app.ts"
import { smallest, user, vault } from "../support/records.ts"
import { invite, PASSWORD, Visitor } from "./client.ts"

const app = useApp()
beforeAll(async () => {
  await app.feed([
    ...smallest(),
    vault("vault_b", "entity_a"),
    user("user_b", "org_a", ["vault_a"]),
    user("user_gone", "org_a", [], { status: "deactivated" })
  ])
})

const choice = { label: "ledger", scopes: ["vault:read"], vaultIds: ["vault_a"], ipAllowlist: [] }
const DAY = 86_400_000

describe("from an invitation to a key", () => {
  const visitor = () => new Visitor(app)
  let somebody: Visitor
  let token = ""
  /** Accepted like the authenticator's codes, without waiting for the next one. */
  let backupCodes: Array<string> = []

  test("the CLI invites a user of the feed and prints a link that works", async () => {
    const { code, stderr, stdout } = await cli(["users", "invite", "user_a"], {
      ...app.env,
      PORTAL_BASE_URL: "https://custody.example.com"
    })
    expect([code, stderr]).toEqual([0, ""])
    const { url, ...invitation } = JSON.parse(stdout)
    expect(invitation).toMatchObject({ userId: "user_a", name: "user_a", email: "user_a@example.com" })
    expect(Date.parse(invitation.expiresAt) - Date.now()).toBeGreaterThan(71 * 3_600_000)
    expect(url).toStartWith("https://custody.example.com/portal/invitation#")
    token = new URL(url).hash.slice(1)
    for (const [id, said] of [
      ["user_nobody", "There is no user user_nobody."],
      ["user_gone", "deactivated"]
    ] as const) {
      const refused = await cli(["users", "invite", id], app.env)
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(said)])
    }
  })

  test("a password alone gives no access, and the second factor comes first", async () => {
    somebody = visitor()
    expect(await somebody.state()).toBe("signed_out")
    const shown = await somebody.request("POST", "/api/invitation", { token })
    expect(shown.json).toMatchObject({ name: "user_a", email: "user_a@example.com", organizationName: "org_a", reset: false })
    const short = await somebody.request("POST", "/api/invitation/accept", { token, password: "too short" })
    expect([short.status, short.json.code, short.json.errors[0].field]).toEqual([400, "invalid_body", "password"])
    expect((await somebody.request("POST", "/api/invitation/accept", { token, password: PASSWORD })).status).toBe(200)
    expect(await somebody.state()).toBe("enrolment")
    for (const path of ["/api/v1/vaults", "/api/keys", "/api/context", "/api/sessions"]) {
      const refused = await somebody.get(path)
      expect([path, refused.status, refused.json.code]).toEqual([path, 403, "second_factor_required"])
    }
    const refused = await somebody.request("POST", "/api/keys", { ...choice, confirmation: {} })
    expect([refused.status, refused.json.code]).toEqual([403, "second_factor_required"])
    const again = await visitor().request("POST", "/api/invitation/accept", { token, password: PASSWORD })
    expect([again.status, again.json.code]).toEqual([410, "invitation_invalid"])
  })

  test("a reload of the setup keeps secret and codes, in its session only", async () => {
    const begin = async (one: Visitor) => (await one.request("POST", "/api/enrolment", {})).json
    const [first, second] = await Promise.all([begin(somebody), begin(somebody)])
    expect(second).toEqual(first)
    const kept = JSON.stringify(await app.sql("SELECT * FROM portal_verifications"))
    for (const hidden of [first.secret, ...first.backupCodes]) expect(kept).not.toContain(hidden)
    // Somebody else with the password sees nothing of it, and starts anew, which ends what the first session set up.
    const other = visitor()
    await other.request("POST", "/api/sign-in", { email: "user_a@example.com", password: PASSWORD })
    const theirs = await begin(other)
    const again = await begin(somebody)
    expect(new Set([first, theirs, again].flatMap(({ backupCodes, secret }) => [secret, ...backupCodes])).size).toBe(33)
  })

  test("the authenticator's first code completes the session", async () => {
    const begun = await somebody.request("POST", "/api/enrolment", {})
    expect(begun.json.uri).toStartWith("otpauth://totp/")
    expect(begun.json.backupCodes).toHaveLength(10)
    backupCodes = [...begun.json.backupCodes]
    const wrong = await somebody.request("POST", "/api/enrolment/confirm", { code: "000000" })
    expect([wrong.status, wrong.json.code]).toEqual([403, "second_factor_failed"])
    const { Authenticator } = await import("./client.ts")
    somebody.authenticator = new Authenticator(begun.json.uri)
    expect((await somebody.request("POST", "/api/enrolment/confirm", { code: await somebody.code() })).status).toBe(200)
    expect(await somebody.state()).toBe("signed_in")
    const stored = await app.sql("SELECT encode(secret, 'escape') AS secret, backup_codes::text AS codes FROM portal_second_factors")
    expect(JSON.stringify(stored)).not.toContain(somebody.authenticator.secret)
    for (const code of begun.json.backupCodes) expect(JSON.stringify(stored)).not.toContain(code)
    expect(await app.sql("SELECT 1 FROM portal_verifications WHERE identifier LIKE 'enrolment/%'")).toEqual([])
    const done = await somebody.request("POST", "/api/enrolment", {})
    expect([done.status, done.json.code]).toEqual([403, "second_factor_failed"])
  })

  test("a key is created with a fresh confirmation only, shown once, edited and revoked", async () => {
    const without = await somebody.request("POST", "/api/keys", { ...choice, confirmation: {} })
    expect([without.status, without.json.code]).toEqual([403, "second_factor_required"])
    const code = await somebody.code()
    const wrong = await somebody.request("POST", "/api/keys", { ...choice, scopes: ["vault:write"], confirmation: { code } })
    expect([wrong.status, wrong.json.errors[0].field]).toEqual([400, "scopes"])
    const elsewhere = await somebody.request("POST", "/api/keys", { ...choice, vaultIds: ["vault_b"], confirmation: { code } })
    expect([elsewhere.status, elsewhere.json.errors[0].field]).toEqual([400, "vaultIds"])
    const nameless = await somebody.request("POST", "/api/keys", { ...choice, label: " ", confirmation: { code } })
    expect([nameless.status, nameless.json.errors[0].field]).toEqual([400, "label"])
    // An invalid request used up no code: the same code still creates a key.
    const made = await somebody.request("POST", "/api/keys", { ...choice, confirmation: { code } })
    expect(made.status).toBe(200)
    const { id, secret, ...key } = made.json
    expect(key).toMatchObject({ userId: "user_a", label: "ledger", scopes: ["vault:read"], vaultIds: ["vault_a"], ipAllowlist: [] })
    expect(Math.abs(Date.parse(key.expiresAt) - Date.now() - 365 * DAY)).toBeLessThan(60_000)
    const used = await somebody.request("POST", "/api/keys", { ...choice, confirmation: { code } })
    expect([used.status, used.json.code]).toEqual([403, "second_factor_failed"])
    const listed = await somebody.get("/api/keys")
    expect(listed.text).not.toContain(secret)
    // People recognize it by its first and last characters.
    expect(listed.json.data.find((one: { id: string }) => one.id === id).hint).toBe(`${secret.slice(0, 8)}…${secret.slice(-4)}`)

    expect((await app.get("/v1/vaults", secret)).json.data).toHaveLength(1)
    expect((await app.get("/v1/webhooks", secret)).status).toBe(403)
    const edit = { scopes: ["webhook:read"], label: "hooks", expiresAt: null }
    const edited = await somebody.request("PATCH", `/api/keys/${id}`, { ...edit, confirmation: { code: backupCodes.pop() } })
    expect(edited.json).toMatchObject({ id, scopes: ["webhook:read"], label: "hooks", expiresAt: null, vaultIds: ["vault_a"] })
    expect((await app.get("/v1/webhooks", secret)).status).toBe(200)
    expect((await app.get("/v1/vaults", secret)).status).toBe(403)
    const denied = await somebody.request("PATCH", `/api/keys/${id}`, { vaultIds: ["vault_b"] })
    expect([denied.status, denied.json.errors[0].field]).toEqual([400, "vaultIds"])
    expect((await somebody.request("POST", `/api/keys/${id}/revoke`, {})).json.revokedAt).not.toBeNull()
    const lists = await Promise.all(["", "?revoked=true"].map((query) => somebody.get(`/api/keys${query}`)))
    expect(lists.map(({ json }) => json.data.map((one: { id: string }) => one.id).includes(id))).toEqual([false, true])
    const revoked = await app.get("/v1/webhooks", secret)
    expect([revoked.status, revoked.json.code]).toEqual([401, "revoked_api_key"])
  })

  test("only an edit that adds rights to a key needs a fresh confirmation", async () => {
    await app.feed([vault("vault_a3", "entity_a"), user("user_a", "org_a", ["vault_a", "vault_a3"])])
    const confirmation = () => ({ code: backupCodes.pop() })
    const soon = new Date(Date.now() + DAY).toISOString(),
      later = new Date(Date.now() + 2 * DAY).toISOString()
    const limited = { ...choice, scopes: ["vault:read"], vaultIds: ["vault_a"], ipAllowlist: ["127.0.0.0/8"], expiresAt: soon }
    const { id } = (await somebody.request("POST", "/api/keys", { ...limited, confirmation: confirmation() })).json
    const path = `/api/keys/${id}`
    const now = async () => (await somebody.get(path)).json
    const before = await now()
    const wider = [
      { scopes: ["vault:read", "webhook:read"] },
      { scopes: ["webhook:read"] },
      { vaultIds: null },
      { vaultIds: ["vault_a", "vault_a3"] },
      { ipAllowlist: [] },
      { ipAllowlist: ["127.0.0.0/8", "10.0.0.0/8"] },
      { expiresAt: later },
      { expiresAt: null }
    ]
    for (const change of wider) {
      const refused = await somebody.request("PATCH", path, { ...change, label: "changed" })
      expect([change, refused.status, refused.json.code]).toEqual([change, 403, "second_factor_required"])
    }
    expect(await now()).toEqual(before)
    const wrong = await somebody.request("PATCH", path, { vaultIds: null, confirmation: { code: "000000" } })
    expect([wrong.status, wrong.json.code]).toEqual([403, "second_factor_failed"])
    // Invalid edits are refused before a code is used up.
    const code = confirmation()
    const impossible = await somebody.request("PATCH", path, { vaultIds: ["vault_b"], confirmation: code })
    expect([impossible.status, impossible.json.errors[0].field]).toEqual([400, "vaultIds"])
    const every = { scopes: ["vault:read", "webhook:read"], vaultIds: null, ipAllowlist: [], expiresAt: null }
    expect((await somebody.request("PATCH", path, { ...every, confirmation: code })).json).toMatchObject({ id, ...every })
    // Unchanged or fewer rights need none, and neither does another label.
    for (const change of [every, limited, { label: "another name" }, { expiresAt: new Date(Date.now() + DAY / 2).toISOString() }]) {
      expect([change, (await somebody.request("PATCH", path, change)).status]).toEqual([change, 200])
    }
    expect(await now()).toMatchObject({ scopes: ["vault:read"], vaultIds: ["vault_a"], ipAllowlist: ["127.0.0.0/8"] })
    // An edit is judged by the key's state when it applies, not when the request began.
    const edit = (mayWiden: boolean) =>
      app.run(Effect.exit(Effect.flatMap(ApiKeys, ({ update }) => update(id, { vaultIds: ["vault_a", "vault_a3"] }, { mayWiden }))))
    expect(JSON.stringify(await edit(false))).toContain("WidensKey")
    expect(await now()).toMatchObject({ vaultIds: ["vault_a"] })
    expect((await edit(true))._tag).toBe("Success")
    expect((await edit(false))._tag).toBe("Success")
    await somebody.request("POST", `${path}/revoke`, {})
    const ended = await somebody.request("PATCH", path, { vaultIds: null })
    expect([ended.status, ended.json.errors[0].field]).toEqual([400, "id"])
  })

  test("of concurrent requests with one code, only one creates a key", async () => {
    const body = { ...choice, confirmation: { code: await somebody.code() } }
    const before = (await somebody.get("/api/keys")).json.data.length
    const answers = await Promise.all(Array.from({ length: 4 }, () => somebody.request("POST", "/api/keys", body)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403, 403, 403])
    expect((await somebody.get("/api/keys")).json.data).toHaveLength(before + 1)
  })

  test("another user's key is as absent as one that never existed", async () => {
    const { key } = await app.key("user_b")
    for (const id of [key.id, "key_00000000000000000000000000", "x"]) {
      for (const path of ["", "/credential"]) expect((await somebody.get(`/api/keys/${id}${path}`)).status).toBe(404)
      for (const [method, path] of [
        ["PATCH", `/api/keys/${id}`],
        ["POST", `/api/keys/${id}/revoke`]
      ] as const) {
        const refused = await somebody.request(method, path, {})
        expect([path, refused.status, refused.json.code]).toEqual([path, 404, "not_found"])
      }
    }
    expect((await somebody.get("/api/keys")).json.data.map(({ userId }: { userId: string }) => userId)).not.toContain("user_b")
  })

  test("the log contains no password, token, code or secret", () => {
    const log = app.main?.output() ?? ""
    expect(log).toContain("portal: a key was created")
    for (const secret of [PASSWORD, token, somebody.authenticator?.secret ?? "-", ...somebody.cookies.values()]) {
      expect(log).not.toContain(secret)
    }
    expect(log).not.toMatch(/cds_[0-9A-Za-z]{20}/)
  })
})

describe("a reset", () => {
  test("must be requested explicitly, and removes password, authenticator and sessions", async () => {
    const first = new Visitor(app)
    await first.accept(await invite(app, "user_b"))
    const refused = await cli(["users", "invite", "user_b"], app.env)
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("--reset")])
    const token = await invite(app, "user_b", { reset: true })
    const accept = () => new Visitor(app).request("POST", "/api/invitation/accept", { token, password: "another long password" })
    expect(await first.state()).toBe("signed_in")
    const answers = await Promise.all([accept(), accept(), accept()])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 410, 410])
    expect(await first.state()).toBe("signed_out")
    const second = new Visitor(app)
    await second.request("POST", "/api/sign-in", { email: "user_b@example.com", password: "another long password" })
    expect(await second.state()).toBe("enrolment")
    const old = await new Visitor(app).request("POST", "/api/sign-in", { email: "user_b@example.com", password: PASSWORD })
    expect([old.status, old.json.code]).toEqual([401, "sign_in_failed"])
  })

  test("can remove everything at once, before the invitation is accepted", async () => {
    const alone = await cli(["users", "invite", "user_b", "--now"], app.env)
    expect([alone.code, alone.stderr.trim()]).toEqual([2, "--now needs --reset."])
    const { code, stdout } = await cli(["users", "invite", "user_b", "--reset", "--now"], app.env)
    expect(code).toBe(0)
    const old = await new Visitor(app).request("POST", "/api/sign-in", { email: "user_b@example.com", password: "another long password" })
    expect([old.status, old.json.code]).toEqual([401, "sign_in_failed"])
    expect(await app.sql("SELECT 1 FROM portal_users WHERE id = 'user_b'")).toEqual([])
    const next = new Visitor(app)
    await next.accept(String(JSON.parse(stdout).url).split("#")[1] ?? "")
    expect(await next.state()).toBe("signed_in")
  })

  test("of concurrent invitations, only one works", async () => {
    await app.feed([user("user_e", "org_a", [])])
    const tokens = await Promise.all(Array.from({ length: 4 }, () => invite(app, "user_e")))
    const looked = await Promise.all(tokens.map((token) => new Visitor(app).request("POST", "/api/invitation", { token })))
    expect(looked.map(({ status }) => status).sort()).toEqual([200, 410, 410, 410])
  })

  test("an invitation ends when it expires, is replaced, or its user is deactivated", async () => {
    await app.feed([user("user_c", "org_a", []), user("user_d", "org_a", [])])
    const [older, newer] = [await invite(app, "user_c"), await invite(app, "user_c")]
    const [late, gone] = [await invite(app, "user_d", { validity: "1 millis" }), newer]
    const states = async () =>
      Promise.all(
        [older, newer, late, "x"].map(async (token) => (await new Visitor(app).request("POST", "/api/invitation", { token })).status)
      )
    expect(await states()).toEqual([410, 200, 410, 410])
    await app.feed([user("user_c", "org_a", [], { status: "deactivated" })])
    const accept = async () =>
      (await new Visitor(app).request("POST", "/api/invitation/accept", { token: gone, password: PASSWORD })).status
    expect(await accept()).toBe(410)
    await app.feed([user("user_c", "org_a", [])])
    expect(await accept()).toBe(410)
  })
})
