/** OAuth client credentials of webhooks: creating, changing and reading them. C-12. */
import { describe, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { create, issues, patch, short, tryCreate, useKeys } from "../../support/webhookFixtures.ts"

const app = useApi()
const keys = useKeys(app)

const oauth = { tokenUrl: "https://login.example.com/token", clientId: "custody", clientSecret: "planted-secret-1" }
const shown = { ...oauth, clientSecret: null, scope: null, audience: null, clientAuthentication: "basic" }
const stored = async (id: string) => (await app.sql("SELECT oauth, gateway_credentials FROM webhooks WHERE id = $1", [id]))[0]
const headers = [{ name: "X-A", value: "a" }]

describe("OAuth client credentials of a webhook", () => {
  test("a creation takes them, and no response has their secret", async () => {
    const answer = await tryCreate(app, keys.owner, { oauth })
    expect(answer.json.oauth).toEqual(shown)
    const { id } = answer.json
    const all = { ...oauth, scope: "a b", audience: "https://hooks.example.com", clientAuthentication: "post" }
    const other = await tryCreate(app, keys.owner, { oauth: all, headers })
    expect(other.json).toMatchObject({ oauth: { ...all, clientSecret: null }, headers: [{ name: "X-A", value: null }] })
    const patched = await patch(app, keys.owner, id, { description: "x" })
    for (const { text } of [answer, other, patched, await app.get("/v1/webhooks", keys.owner), await app.get("/v1/audit-log", keys.owner)])
      expect([text.includes("custody"), text.includes("planted-secret")]).toEqual([true, false])
    expect((await create(app, keys.owner)).oauth).toBeNull()
  })

  test("a token URL obeys the rules of URLs, and other fields their limits", async () => {
    const cases: ReadonlyArray<readonly [object, string, ReadonlyArray<string>]> = [
      [{ tokenUrl: "http://login.example.com/" }, "400 invalid_body", ["oauth.tokenUrl invalid"]],
      [{ tokenUrl: "https://user@login.example.com/" }, "400 invalid_body", ["oauth.tokenUrl invalid"]],
      [{ tokenUrl: "https://10.0.0.1/" }, "422 url_not_deliverable", ["oauth.tokenUrl url_not_deliverable"]],
      [{ tokenUrl: "https://login.example.com:22/" }, "422 url_not_deliverable", ["oauth.tokenUrl url_not_deliverable"]],
      [{ tokenUrl: undefined }, "400 invalid_body", ["oauth.tokenUrl missing"]],
      [{ clientId: "" }, "400 invalid_body", ["oauth.clientId invalid"]],
      [{ clientSecret: "planted-secret\n" }, "400 invalid_body", ["oauth.clientSecret invalid"]],
      [{ clientSecret: null }, "400 invalid_body", ["oauth.clientSecret invalid"]],
      [{ scope: "a  b" }, "400 invalid_body", ["oauth.scope invalid"]],
      [{ audience: "a\u0000" }, "400 invalid_body", ["oauth.audience invalid"]],
      [{ clientAuthentication: "none" }, "400 invalid_body", ["oauth.clientAuthentication invalid"]],
      [{ more: 1 }, "400 invalid_body", ["oauth.more unknown_field"]]
    ]
    for (const [change, expected, fields] of cases) {
      const answer = await tryCreate(app, keys.owner, { oauth: { ...oauth, ...change } })
      expect([change, short(answer), issues(answer)]).toEqual([change, expected, fields])
      expect(answer.text).not.toContain("planted-secret")
    }
  })

  test("Authorization beside them is refused", async () => {
    const authorization = [{ name: "authorization", value: "Bearer x" }]
    expect(issues(await tryCreate(app, keys.owner, { oauth, headers: authorization }))).toEqual(["headers.0.name invalid"])
    const { id } = await create(app, keys.owner, { headers: authorization })
    expect(issues(await patch(app, keys.owner, id, { oauth }))).toEqual(["headers.0.name invalid"])
    expect((await patch(app, keys.owner, id, { oauth, headers: [] })).json).toMatchObject({ oauth: shown, headers: [] })
    expect(issues(await patch(app, keys.owner, id, { headers: authorization }))).toEqual(["headers.0.name invalid"])
  })

  test("a patch is merged with what is stored, and keeps the secret", async () => {
    const { id } = await create(app, keys.owner, { oauth: { ...oauth, scope: "a" } })
    const change = async (oauth: unknown) => (await patch(app, keys.owner, id, { oauth })).json.oauth
    expect(await change({ clientId: "other" })).toEqual({ ...shown, clientId: "other", scope: "a" })
    expect(await change({ scope: null, audience: "x", clientSecret: null })).toEqual({ ...shown, clientId: "other", audience: "x" })
    expect(await change({ ...shown, clientAuthentication: "post" })).toEqual({ ...shown, clientAuthentication: "post" })
    const before = await stored(id)
    expect((await patch(app, keys.owner, id, { headers })).json.oauth).toEqual({ ...shown, clientAuthentication: "post" })
    expect(before?.["gateway_credentials"]).not.toEqual((await stored(id))?.["gateway_credentials"])
    expect((await patch(app, keys.owner, id, { oauth: null })).json).toMatchObject({ oauth: null, headers: [{ name: "X-A" }] })
    expect(issues(await patch(app, keys.owner, id, { oauth: { scope: "a" } }))).toEqual([
      "oauth.clientId missing",
      "oauth.clientSecret missing",
      "oauth.tokenUrl missing"
    ])
    await patch(app, keys.owner, id, { headers: null })
    expect(await stored(id)).toEqual({ oauth: null, gateway_credentials: null })
  })

  test("another origin of the URL or the token URL needs every secret again", async () => {
    const { id } = await create(app, keys.owner, { oauth, headers })
    const url = "https://elsewhere.example.com/"
    const tokenUrl = "https://login.example.com:8443/token"
    expect(short(await patch(app, keys.owner, id, { oauth: { tokenUrl: "https://login.example.com/other" } }))).toBe("200")
    const both = ["headers invalid", "oauth.clientSecret invalid"]
    expect(issues(await patch(app, keys.owner, id, { url }))).toEqual(both)
    expect(issues(await patch(app, keys.owner, id, { oauth: { tokenUrl } }))).toEqual(both)
    expect(issues(await patch(app, keys.owner, id, { oauth: { tokenUrl, clientSecret: null }, headers: [] }))).toEqual([
      "oauth.clientSecret invalid"
    ])
    expect(issues(await patch(app, keys.owner, id, { oauth: { tokenUrl, clientSecret: "s" } }))).toEqual(["headers invalid"])
    expect((await app.get(`/v1/webhooks/${id}`, keys.owner)).json.oauth.tokenUrl).toBe("https://login.example.com/other")
    const moved = await patch(app, keys.owner, id, { oauth: { tokenUrl, clientSecret: "s" }, headers })
    expect(moved.json.oauth).toEqual({ ...shown, tokenUrl })
    expect(short(await patch(app, keys.owner, id, { url, oauth: null, headers: [] }))).toBe("200")
  })

  test("what cannot be decrypted is replaced as a whole, and never dropped silently", async () => {
    const { id } = await create(app, keys.owner, { oauth, headers })
    await app.sql("UPDATE webhooks SET gateway_credentials = '\\x00' WHERE id = $1", [id])
    expect(short(await patch(app, keys.owner, id, { description: "x" }))).toBe("200")
    expect(issues(await patch(app, keys.owner, id, { headers }))).toEqual(["oauth.clientSecret invalid"])
    expect(issues(await patch(app, keys.owner, id, { oauth: { clientSecret: "s" } }))).toEqual(["headers invalid"])
    expect((await patch(app, keys.owner, id, { headers, oauth: { clientSecret: "s" } })).json).toMatchObject({ oauth: shown })
    expect(short(await patch(app, keys.owner, id, { headers: [] }))).toBe("200")
  })

  test("the audit log shows them without the secret and the token URL's path", async () => {
    const { id } = await create(app, keys.owner, { oauth: { ...oauth, tokenUrl: "https://login.example.com/planted-path" } })
    await patch(app, keys.owner, id, { oauth: { clientSecret: "planted-secret-2" } })
    const { json, text } = await app.get("/v1/audit-log?limit=2", keys.owner)
    const audited = {
      tokenUrl: "https://login.example.com/…",
      clientId: "custody",
      scope: null,
      audience: null,
      clientAuthentication: "basic"
    }
    expect(json.data.map(({ changes }: { changes: { oauth?: unknown } }) => changes.oauth)).toEqual([
      { old: audited, new: audited },
      { old: null, new: audited }
    ])
    expect(text).not.toContain("planted-")
  })
})
