/** What owners see and do in their organization. */
import { beforeAll, describe, expect, test } from "bun:test"
import { useApp } from "../support/app.ts"
import { organization, smallest, user } from "../support/records.ts"
import { signedIn, type Visitor } from "./client.ts"

const app = useApp()
let owner: Visitor, member: Visitor, stranger: Visitor
beforeAll(async () => {
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
