/** What owners see and do in their organization. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { SMTPServer } from "smtp-server"
import { App } from "../support/app.ts"
import { organization, smallest, user } from "../support/records.ts"
import { signedIn, Visitor } from "./client.ts"

interface Mail {
  readonly to: ReadonlyArray<string>
  readonly text: string
}
const mails: Array<Mail> = []
/** The address whose messages the mail server refuses. */
const refusing = "refused@example.com"
const smtp = new SMTPServer({
  authOptional: true,
  disabledCommands: ["STARTTLS"],
  onData: async (stream, { envelope }, done) => {
    const message = (await text(stream)).replaceAll("=\r\n", "").replaceAll("=3D", "=")
    const to = envelope.rcptTo.map(({ address }) => address)
    if (to.includes(refusing)) return done(Object.assign(new Error("no such mailbox"), { responseCode: 550 }))
    mails.push({ to, text: message })
    return done()
  }
})

const app = new App()
let owner: Visitor, member: Visitor, stranger: Visitor
afterAll(async () => {
  await app.close()
  await new Promise<void>((resolve) => smtp.close(() => resolve()))
})
beforeAll(async () => {
  await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", resolve))
  // The server listens on an address with a port.
  await app.open(["api"], { SMTP_URL: `smtp://127.0.0.1:${(smtp.server.address() as AddressInfo).port}` })
  await app.feed([
    ...smallest(),
    user("user_a", "org_a", ["vault_a"], { organizationRole: "owner", name: "Ada Keller" }),
    user("user_m", "org_a", ["vault_a"], { name: "Max Muster" }),
    organization("org_z", ["ethereum"]),
    user("user_z", "org_z", [], { organizationRole: "owner" })
  ])
  ;[owner, member, stranger] = await Promise.all([signedIn(app, "user_a"), signedIn(app, "user_m"), signedIn(app, "user_z")])
})

const refusal = async (visitor: Visitor, method: string, path: string, body?: unknown) => {
  const { json, status } = await visitor.request(method, path, body)
  return [status, json?.code]
}

describe("keys of others", () => {
  test("are listed for owners of the organization only, without secrets and in pages", async () => {
    const made = [await app.key("user_m", { label: "Import" }), await app.key("user_m", { label: "Export" })]
    await app.key("user_a", { label: "Mine" })
    await app.key("user_z", { label: "Foreign" })
    const first = await owner.get("/api/keys-of-others?limit=1")
    expect(first.json.data).toMatchObject([{ label: "Export", userId: "user_m", userName: "Max Muster" }])
    const rest = await owner.get(`/api/keys-of-others?limit=1&cursor=${first.json.pagination.nextCursor}`)
    expect([rest.json.data.map(({ label }: { label: string }) => label), rest.json.pagination.nextCursor]).toEqual([["Import"], null])
    for (const { secret } of made) expect(first.text + rest.text).not.toContain(secret)
    expect((await stranger.get("/api/keys-of-others")).json.data).toEqual([])
    expect(await refusal(member, "GET", "/api/keys-of-others")).toEqual([403, "owner_required"])
    expect(await refusal(owner, "GET", "/api/keys-of-others?limit=0")).toEqual([400, "invalid_parameter"])
    expect(await refusal(owner, "GET", "/api/keys-of-others?cursor=x")).toEqual([400, "invalid_cursor"])
  })

  test("are revoked by owners of the organization only, which is audited", async () => {
    const { key, secret } = await app.key("user_m", { label: "Leaked" })
    const { id } = key
    const others = await app.key("user_a", { label: "The owner's" })
    expect(await refusal(stranger, "POST", `/api/keys/${id}/revoke`, {})).toEqual([404, "not_found"])
    expect(await refusal(member, "POST", `/api/keys/${others.key.id}/revoke`, {})).toEqual([404, "not_found"])
    // Owners see and revoke; only its user edits a key.
    expect(await refusal(owner, "PATCH", `/api/keys/${id}`, { label: "Taken" })).toEqual([404, "not_found"])
    expect((await owner.get(`/api/keys/${id}/credential`)).status).toBe(404)
    expect((await app.get("/v1/vaults", secret)).status).toBe(200)
    expect((await owner.request("POST", `/api/keys/${id}/revoke`, {})).json.revokedAt).not.toBeNull()
    expect((await app.get("/v1/vaults", secret)).json.code).toBe("revoked_api_key")
    expect((await owner.get("/api/keys-of-others")).text).not.toContain(id)
    const [entry] = (await owner.get("/api/v1/audit-log?action=api_key.revoked")).json.data
    expect(entry).toMatchObject({ actor: { type: "session", userId: "user_a" }, target: { type: "api_key", id } })
  })
})

describe("members", () => {
  test("are listed for owners of the organization only, with the state of their accounts", async () => {
    await app.feed([
      user("user_new", "org_a", [], { name: "Nora New" }),
      user("user_gone", "org_a", [], { name: "Gustav Gone", status: "deactivated" })
    ])
    const first = await owner.get("/api/members?limit=3")
    expect(first.json.data).toMatchObject([
      { id: "user_a", isOwner: true, vaults: 1, hasAccount: true, hasAuthenticator: true, passkeys: 0, sessions: 1 },
      { id: "user_gone", isOwner: false, isActive: false, hasAccount: false, lastSignInAt: null },
      { id: "user_m", email: "user_m@example.com", isActive: true, hasAccount: true, isLocked: false }
    ])
    expect(Date.now() - Date.parse(first.json.data[0].lastSignInAt)).toBeLessThan(600_000)
    const rest = await owner.get(`/api/members?limit=3&cursor=${first.json.pagination.nextCursor}`)
    expect(rest.json).toMatchObject({ data: [{ id: "user_new", hasAccount: false, invitedUntil: null }], pagination: { nextCursor: null } })
    expect((await stranger.get("/api/members")).json.data.map(({ id }: { id: string }) => id)).toEqual(["user_z"])
    expect(await refusal(member, "GET", "/api/members")).toEqual([403, "owner_required"])
  })

  test("are invited by e-mail, and the owner never sees the link", async () => {
    await app.feed([user("user_r", "org_a", [], { name: "Rita Refused", email: refusing })])
    expect(await refusal(member, "POST", "/api/members/user_new/invite", {})).toEqual([403, "owner_required"])
    expect(await refusal(stranger, "POST", "/api/members/user_new/invite", {})).toEqual([404, "not_found"])
    for (const id of ["user_gone", "user_m"])
      expect([id, ...(await refusal(owner, "POST", `/api/members/${id}/invite`, {}))]).toEqual([id, 409, "invitation_refused"])
    app.patient = false
    expect(await refusal(owner, "POST", "/api/members/user_r/invite", {})).toEqual([503, "service_unavailable"])
    app.patient = true
    const invitations = await Promise.all(Array.from({ length: 4 }, () => owner.request("POST", "/api/members/user_new/invite", {})))
    expect(invitations.map(({ status }) => status).sort()).toEqual([200, 429, 429, 429])
    const [invited] = invitations.filter(({ status }) => status === 200)
    if (invited === undefined) throw new Error("not invited")
    expect([invited.status, Object.keys(invited.json)]).toEqual([200, ["expiresAt"]])
    expect(await refusal(owner, "POST", "/api/members/user_new/invite", {})).toEqual([429, "rate_limited"])
    expect(mails.map(({ to }) => to)).toEqual([["user_new@example.com"]])
    const [, token = ""] = /\/portal\/invitation#([\w-]+)/.exec(mails[0]?.text ?? "") ?? []
    expect(mails[0]?.text).toContain(`${owner.origin}/portal/invitation#${token}`)
    expect(mails[0]?.text).toMatch(/until \d{4}-\d\d-\d\d \d\d:\d\d UTC\. Do not/)
    expect((await owner.get("/api/members")).text).not.toContain(token)
    const fresh = new Visitor(app)
    await fresh.accept(token)
    expect(await fresh.state()).toBe("signed_in")
    const [entry] = (await owner.get("/api/v1/audit-log?action=account.invited&actor=user_a")).json.data.filter(
      ({ target }: { target: { id: string } }) => target.id === "user_new"
    )
    expect(entry).toMatchObject({ actor: { type: "session", userId: "user_a" }, target: { type: "account" } })
    expect(app.main?.output()).not.toContain(token)
  })

  test("are invited by a link that ends when their address changes", async () => {
    await app.feed([user("user_moved", "org_a", [], { name: "Mona Moved" })])
    expect((await owner.request("POST", "/api/members/user_moved/invite", {})).status).toBe(200)
    const [, token = ""] = /\/portal\/invitation#([\w-]+)/.exec(mails.at(-1)?.text ?? "") ?? []
    const guest = new Visitor(app)
    expect((await guest.request("POST", "/api/invitation", { token })).status).toBe(200)
    await app.feed([user("user_moved", "org_a", [], { name: "Mona Moved", email: "user_elsewhere@example.com" })])
    expect(await refusal(guest, "POST", "/api/invitation", { token })).toEqual([410, "invitation_invalid"])
    expect((await owner.get("/api/members")).json.data).toContainEqual(expect.objectContaining({ id: "user_moved", invitedUntil: null }))
  })

  test("are all on pages however long their names are", async () => {
    const ids = [1, 2, 3].map((number) => `user_${"long".repeat(14)}_${number}`)
    await app.feed(ids.map((id) => user(id, "org_z", [], { name: "長".repeat(200) })))
    const found: Array<string> = []
    for (let next = ""; next !== null; ) {
      const { json } = await stranger.get(`/api/members?limit=1${next === "" ? "" : `&cursor=${next}`}`)
      found.push(json.data[0]?.id)
      next = json.pagination.nextCursor
    }
    expect(found).toEqual(["user_z", ...ids])
  })

  test("are not invited with the address of another account, whose existence stays unknown", async () => {
    await app.feed([user("user_same", "org_a", [], { name: "Sam Same", email: "user_z@example.com" })])
    const { json, status } = await owner.request("POST", "/api/members/user_same/invite", {})
    expect([status, json.code, json.detail]).toEqual([
      409,
      "invitation_refused",
      "This person cannot be invited. Ask the operator of the service."
    ])
  })

  test("are signed out by owners of the organization only, which is audited", async () => {
    for (const one of [stranger, member])
      expect((await refusal(one, "POST", "/api/members/user_m/end-sessions", {}))[0]).toBe(one === stranger ? 404 : 403)
    expect(await member.state()).toBe("signed_in")
    expect((await owner.request("POST", "/api/members/user_m/end-sessions", {})).status).toBe(200)
    expect([await member.state(), await owner.state()]).toEqual(["signed_out", "signed_in"])
    const [entry] = (await owner.get("/api/v1/audit-log?action=account.sessions_ended")).json.data
    expect(entry).toMatchObject({ actor: { type: "session", userId: "user_a" }, target: { type: "account", id: "user_m" } })
    expect((await owner.request("POST", "/api/members/user_m/end-sessions", {})).status).toBe(200)
    expect((await owner.get("/api/v1/audit-log?action=account.sessions_ended")).json.data).toHaveLength(1)
  })
})
