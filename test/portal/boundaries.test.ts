import { beforeAll, describe, expect, test } from "bun:test"
import * as HttpApi from "@effect/platform/HttpApi"
import { SchemaAST as AST, Option } from "effect"
import { PortalApi } from "../../src/portal/server/PortalApi.ts"
import { patiently, useApp } from "../support/app.ts"
import { until } from "../support/receiver.ts"
import { balance, entity, organization, smallest, transaction, user, vault } from "../support/records.ts"
import { create } from "../support/webhookFixtures.ts"
import { invite, PASSWORD, signedIn, Visitor } from "./client.ts"

const app = useApp()
let owner: Visitor, member: Visitor, stranger: Visitor
let ownerKey = "",
  memberKey = "",
  webhookId = "",
  eventId = ""

const people = (more: { readonly [field: string]: unknown } = {}) => [
  user("user_a", "org_a", ["vault_a", "vault_b"], { organizationRole: "owner" }),
  user("user_m", "org_a", ["vault_a"], more),
  user("user_t", "org_a", [])
]

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    entity("entity_b", "org_a"),
    vault("vault_b", "entity_b"),
    organization("org_z", ["ethereum"]),
    entity("entity_z", "org_z"),
    vault("vault_z", "entity_z"),
    user("user_z", "org_z", ["vault_z"], { organizationRole: "owner" }),
    ...people(),
    balance("vault_a", "ethereum/native", "123456789.123456789123456789"),
    transaction("vault_a", 1),
    transaction("vault_b", 2)
  ])
  ;[owner, member, stranger] = await Promise.all([signedIn(app, "user_a"), signedIn(app, "user_m"), signedIn(app, "user_z")])
  ownerKey = (await app.key("user_a")).secret
  memberKey = (await app.key("user_m")).secret
  webhookId = (await create(app, ownerKey, { entityIds: ["entity_b"] })).id
  const { data } = (await app.get("/v1/webhook-events?vaultId=vault_b", ownerKey)).json
  eventId = data[0].id
})

describe("the portal reads by the API's access rules", () => {
  test("every read returns to a session what it returns to its user's key", async () => {
    const paths = [
      "/v1/vaults",
      "/v1/vaults?limit=1",
      "/v1/vaults?nonsense=1",
      ...["vault_a", "vault_b", "vault_z", "vault_none"].flatMap((id) => [
        `/v1/vaults/${id}`,
        `/v1/vaults/${id}/balances`,
        `/v1/vaults/${id}/transactions`,
        `/v1/vaults/${id}/addresses`
      ]),
      "/v1/assets",
      "/v1/networks",
      "/v1/webhooks",
      `/v1/webhooks/${webhookId}`,
      `/v1/webhooks/${webhookId}/deliveries`,
      "/v1/webhook-events",
      `/v1/webhook-events/${eventId}`,
      `/v1/webhook-events/${eventId}/deliveries`,
      "/v1/nothing"
    ]
    const plain = (text: string) => text.replaceAll(/"(requestId|nextCursor)":"[^"]*"/g, "")
    for (const [visitor, key] of [
      [owner, ownerKey],
      [member, memberKey]
    ] as const) {
      for (const path of paths) {
        const [seen, answered] = [await visitor.get(`/api${path}`), await app.get(path, key)]
        expect([path, seen.status, plain(seen.text)]).toEqual([path, answered.status, plain(answered.text)])
      }
    }
  })

  test("resources of another organization or role are absent, and owners' operations are refused", async () => {
    const codes = async (visitor: Visitor, method: string, path: string, body?: unknown, headers = {}) => {
      const { json, status } = await visitor.request(method, path, body, headers)
      return status < 300 ? status : `${status} ${json.code}`
    }
    for (const visitor of [member, stranger]) {
      expect(await codes(visitor, "GET", `/api/v1/webhooks/${webhookId}`)).toBe("404 not_found")
      expect(await codes(visitor, "POST", `/api/v1/webhooks/${webhookId}/rotate-secret`)).toBe("404 not_found")
      expect(await codes(visitor, "DELETE", `/api/v1/webhooks/${webhookId}`)).toBe("404 not_found")
      expect(await codes(visitor, "GET", `/api/events/${eventId}/payload`)).toBe("404 not_found")
      expect(await codes(visitor, "GET", "/api/vaults/vault_b/statement-days")).toBe("404 not_found")
      expect((await visitor.get(`/api/event-counts?ids=${eventId}`)).text).toBe("{}")
      expect((await visitor.get(`/api/webhook-health?ids=${webhookId}`)).text).toBe("{}")
      expect((await visitor.get(`/api/audit-names?ids=${webhookId},user_a`)).text).toBe("{}")
      expect((await visitor.get("/api/members")).text).not.toContain("user_a")
      const context = (await visitor.get("/api/context")).text
      expect(context).not.toContain("vault_b")
    }
    expect((await stranger.get("/api/context")).text).not.toContain("vault_a")
    expect((await owner.get(`/api/event-counts?ids=${eventId}`)).json[eventId]).toMatchObject({ matchedCount: 0 })
    expect((await owner.get(`/api/webhook-health?ids=${webhookId}`)).json[webhookId].state).toBe("HEALTHY")
    const body = {
      url: "https://hooks.example.com/x",
      entityIds: ["entity_a"],
      eventKinds: ["vault.updated"],
      notificationEmail: "a@example.com"
    }
    expect(await codes(member, "POST", "/api/v1/webhooks", body)).toBe("403 owner_required")
    const confirmation = { "x-portal-confirmation": JSON.stringify({ code: await owner.code() }) }
    expect(await codes(owner, "POST", "/api/v1/webhooks", body, confirmation)).toBe(201)
    expect(await codes(stranger, "POST", "/api/v1/webhooks", body)).toBe("400 invalid_body")
    const payload = await owner.get(`/api/events/${eventId}/payload`)
    expect(JSON.parse(payload.text)).toEqual((await app.get(`/v1/webhook-events/${eventId}`, ownerKey)).json.payload)
  })

  test("a session is not accepted by the API, and a key not by the portal", async () => {
    const cookie = [...owner.cookies].map(([name, value]) => `${name}=${value}`).join("; ")
    expect((await app.get("/v1/vaults", undefined, { cookie })).status).toBe(401)
    const keyed = await new Visitor(app).request("GET", "/api/v1/vaults", undefined, { authorization: `Bearer ${ownerKey}` })
    expect([keyed.status, keyed.json.code]).toEqual([401, "signed_out"])
  })
})

describe("changes come from the portal's own pages only", () => {
  const foreign: ReadonlyArray<readonly [string, Readonly<Record<string, string>>]> = [
    ["another origin", { origin: "https://evil.example" }],
    ["no origin", { origin: "" }],
    ["another site", { "sec-fetch-site": "cross-site" }],
    ["the same site, another origin", { "sec-fetch-site": "same-site" }],
    ["a plain form", { "x-portal": "" }]
  ]
  test("on every path", async () => {
    for (const [what, headers] of foreign) {
      for (const [method, path] of [
        ["POST", "/api/keys"],
        ["POST", "/api/sign-in"],
        ["POST", "/api/sign-out"],
        ["POST", "/api/sessions/end-all"],
        ["POST", `/api/v1/webhooks/${webhookId}/rotate-secret`],
        ["PATCH", `/api/v1/webhooks/${webhookId}`],
        ["DELETE", `/api/v1/webhooks/${webhookId}`]
      ] as const) {
        const refused = await owner.request(method, path, {}, headers)
        expect([what, path, refused.status, refused.json.code]).toEqual([what, path, 403, "foreign_origin"])
      }
    }
    expect(await owner.state()).toBe("signed_in")
  })

  test("under another host name the portal does not exist", async () => {
    const refused = await owner.request("GET", "/api/session", undefined, { host: "custody.evil.example" })
    expect([refused.status, refused.json.code]).toEqual([421, "misdirected_request"])
  })

  test("without PORTAL_BASE_URL a forged Host gains nothing", async () => {
    const port = new URL(app.main?.baseUrl ?? "").port
    const status = async (headers: Readonly<Record<string, string>>) =>
      (await owner.request("GET", "/api/session", undefined, headers)).status
    for (const host of ["127.1", "0x7f000001", "2130706433", "127.0.0.1.", "LOCALHOST", "[::ffff:127.0.0.1]", "0.0.0.0", ""]) {
      expect([host, await status({ host: `${host}:${port}` })]).toEqual([host, 421])
    }
    for (const host of ["localhost", "127.0.0.1", "[::1]"]) expect([host, await status({ host: `${host}:${port}` })]).toEqual([host, 200])
    const host = `localhost:${port}`
    for (const header of ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "forwarded", "via"]) {
      expect([header, await status({ host, [header]: "127.0.0.1" })]).toEqual([header, 421])
    }
    const trusting = await app.start(["api"], { TRUSTED_PROXIES: "127.0.0.0/8" })
    for (const forwarded of ["203.0.113.7", "unknown", "127.0.0.1, unknown", "127.0.0.1"]) {
      const answer = await fetch(`${trusting.baseUrl}/portal/api/session`, { headers: { host, "x-forwarded-for": forwarded } })
      expect([forwarded, answer.status]).toEqual([forwarded, 421])
    }
    await trusting.end()
  })

  test("under a name other than PORTAL_BASE_URL every path answers 421 with the address", async () => {
    const { baseUrl, end } = await app.start(["api"], { PORTAL_BASE_URL: "https://custody.example.com" })
    const at = async (path: string, host: string, accept = "*/*") => {
      const answer = await fetch(`${baseUrl}${path}`, { headers: { host, accept }, redirect: "manual" })
      return { status: answer.status, text: await answer.text(), location: answer.headers.get("location") }
    }
    for (const host of [
      new URL(baseUrl).host,
      "custody.example.com:8443",
      "custody.example.com.",
      "a@custody.example.com",
      "custody.example.com/x"
    ])
      for (const path of ["/portal", "/portal/api/session", "/portal/api/v1/vaults", "/portal/files/x.js"])
        expect([host, path, (await at(path, host)).status]).toEqual([host, path, 421])
    const page = await at("/portal/sign-in", "10.0.0.5:8080", "text/html,*/*;q=0.8")
    expect([page.status, page.text]).toEqual([421, expect.stringMatching(/^<!doctype html>.*https:\/\/custody\.example\.com\/portal/)])
    expect(JSON.parse((await at("/portal/api/session", "10.0.0.5")).text)).toMatchObject({
      code: "misdirected_request",
      detail: expect.stringContaining("https://custody.example.com/portal")
    })
    for (const host of ["custody.example.com", "custody.example.com:443"]) {
      expect((await at("/portal", host, "text/html")).status).toBe(200)
      expect(await at("/", host, "text/html")).toMatchObject({ status: 302, location: "/portal/" })
    }
    expect(await at("/", "10.0.0.5", "text/html")).toMatchObject({ status: 302, location: "/v1/docs" })
    await end()
  })

  test("text that Postgres cannot store, or that every object has, names nothing on any route", async () => {
    const paths: Array<string> = []
    HttpApi.reflect(PortalApi, {
      onGroup: () => {},
      onEndpoint: ({ endpoint: { method, path, urlParamsSchema } }) => {
        if (method !== "GET" || path.endsWith("/callback/oidc")) return
        const names = Option.match(urlParamsSchema, { onNone: () => [], onSome: ({ ast }) => AST.getPropertySignatures(ast) })
        paths.push(`${path.slice("/portal".length)}?${names.map(({ name }) => `${String(name)}=ID`).join("&")}`)
      }
    })
    expect(paths).toContain("/api/keys/:id/credential?vaultId=ID")
    const { data } = (await owner.get("/api/keys")).json
    for (const id of ["%00", "__proto__", data[0].id, webhookId, eventId])
      for (const text of ["%00", "vault_%00", "__proto__", "constructor"])
        for (const path of paths) {
          const { status } = await owner.get(path.replace(/:\w+/, id).replaceAll("ID", text))
          expect([path, text, status, status < 500]).toEqual([path, text, status, true])
        }
    for (const name of ["__proto__", "constructor", "toString"]) expect((await owner.get(`/files/${name}`)).status).toBe(404)
  })

  test("the icon at its traditional path has the usual guards and short caching", async () => {
    const answer = await fetch(new URL("/favicon.ico", app.main?.baseUrl))
    expect(answer.status).toBe(200)
    expect(answer.headers.get("cache-control")).toBe("public, max-age=3600")
    const guards = ["content-security-policy", "cross-origin-resource-policy", "x-content-type-options", "x-frame-options"]
    const { headers } = await owner.get("/api/session")
    expect(guards.map((name) => answer.headers.get(name))).toEqual(guards.map((name) => headers.get(name)))
  })

  test("responses can be neither cached nor framed, and unknown paths and methods are reported", async () => {
    const { headers } = await owner.get("/api/session")
    expect(headers.get("cache-control")).toBe("no-store")
    expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'")
    // It is reached without TLS here.
    expect(headers.get("strict-transport-security")).toBeNull()
    expect((await owner.get("/api/nothing")).json.code).toBe("not_found")
    const wrong = await owner.request("DELETE", "/api/keys", {})
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, expect.stringContaining("POST")])
  })
})

describe("the first view", () => {
  test("weighs at most 200 KB, compressed, with its scripts, styles and font", async () => {
    const origin = new URL(app.main?.baseUrl ?? "").origin
    const load = async (path: string) => {
      const answer = await fetch(new URL(path, origin), { headers: { "accept-encoding": "br" }, decompress: false })
      const bytes = await answer.bytes()
      return { encoding: answer.headers.get("content-encoding"), bytes, size: bytes.length }
    }
    const page = await load("/portal")
    const files = [...new TextDecoder().decode(page.bytes).matchAll(/(?:href|src)="(\/[^"]+)"/g)].map(([, path = ""]) => path)
    expect(files.filter((path) => path.endsWith(".js")).length).toBeGreaterThanOrEqual(1)
    expect(files.filter((path) => path.endsWith(".css")).length).toBeGreaterThanOrEqual(1)
    const loaded = await Promise.all(files.map(load))
    expect(loaded.filter(({ encoding }) => encoding === "br").length).toBeGreaterThanOrEqual(2)
    expect(loaded.reduce((sum, { size }) => sum + size, page.size)).toBeLessThan(200_000)
  })
})

describe("over TLS", () => {
  test("browsers are told to return over TLS only", async () => {
    const { baseUrl, end } = await app.start(["api"], { PORTAL_BASE_URL: "https://custody.example.com" })
    const { headers } = await fetch(`${baseUrl}/portal/api/session`)
    expect(headers.get("strict-transport-security")).toBe("max-age=31536000")
    await end()
  })
})

describe("a session", () => {
  test("is in a cookie that scripts and other sites cannot read", async () => {
    const visitor = new Visitor(app)
    await visitor.request("POST", "/api/sign-in", { email: "user_z@example.com", password: "wrong password" })
    expect(visitor.cookies.size).toBe(0)
    await app.feed([user("user_n", "org_a", ["vault_a"])])
    const fresh = new Visitor(app)
    const accepted = await fresh.request("POST", "/api/invitation/accept", { token: await invite(app, "user_n"), password: PASSWORD })
    const [cookie = ""] = fresh.setCookies.filter((one) => one.startsWith("custody.session_token="))
    expect(cookie).toMatch(/HttpOnly/i)
    expect(cookie).toMatch(/SameSite=Strict/i)
    expect(cookie).toMatch(/Path=\/portal/i)
    expect(accepted.text).toBe('{"done":true}')
  })

  test("has each of its changes in the access log", async () => {
    const logged = () =>
      (app.main?.output() ?? "").split("\n").filter((line) => line.includes('"path":"/portal/api/confirmation/passkey"')).length
    for (let count = 0; count < 12; count++) expect((await owner.request("POST", "/api/confirmation/passkey", {})).status).toBe(200)
    await until("twelve lines", () => logged() >= 12)
    // One challenge of the session is kept, the latest.
    expect(await app.sql("SELECT count(*)::int AS kept FROM portal_verifications WHERE identifier LIKE 'passkey/confirm/%'")).toEqual([
      { kept: 1 }
    ])
  })

  test("is accepted only with a token that the service signed", async () => {
    const [[name = "", value = ""] = []] = owner.cookies
    const [token = ""] = decodeURIComponent(value).split(".")
    expect(await app.sql("SELECT user_id FROM portal_sessions WHERE token = $1", [token])).toEqual([{ user_id: "user_a" }])
    const forger = new Visitor(app)
    for (const forged of [
      token,
      `${token}.${Buffer.alloc(32).toString("base64")}`,
      `${token}x${decodeURIComponent(value).slice(token.length)}`
    ]) {
      forger.cookies.set(name, encodeURIComponent(forged))
      expect([forged, await forger.state()]).toEqual([forged, "signed_out"])
    }
    forger.cookies.set(name, value)
    expect(await forger.state()).toBe("signed_in")
  })

  test("is replaced after the second factor, so that a planted session gains nothing", async () => {
    const { authenticator } = owner
    if (authenticator === undefined) throw new Error("no authenticator")
    const victim = new Visitor(app)
    await victim.request("POST", "/api/sign-in", { email: "user_a@example.com", password: PASSWORD })
    const planted = new Visitor(app)
    for (const [name, value] of victim.cookies) planted.cookies.set(name, value)
    expect(await planted.state()).toBe("second_factor")
    const code = await authenticator.code()
    expect((await victim.request("POST", "/api/sign-in/second-factor", { code })).status).toBe(200)
    expect([await victim.state(), await planted.state()]).toEqual(["signed_in", "signed_out"])
  })

  test("expires at its time, and its row is deleted", async () => {
    const visitor = await signedIn(app, "user_t")
    await app.sql("UPDATE portal_sessions SET expires_at = now() WHERE user_id = 'user_t'")
    expect(await visitor.state()).toBe("signed_out")
    expect(await app.sql("SELECT 1 FROM portal_sessions WHERE user_id = 'user_t'")).toEqual([])
  })

  test("is listed, can be ended alone, and can be ended everywhere", async () => {
    const elsewhere = [new Visitor(app), new Visitor(app)] as const
    const { authenticator } = stranger
    if (authenticator === undefined) throw new Error("no authenticator")
    for (const one of elsewhere) await one.signIn("user_z@example.com", authenticator)
    const { data } = (await stranger.get("/api/sessions")).json
    expect(data).toHaveLength(3)
    const others = data.filter(({ current }: { current: boolean }) => !current)
    expect(others).toHaveLength(2)
    expect((await owner.request("DELETE", `/api/sessions/${others[0].id}`, {})).status).toBe(404)
    expect((await stranger.request("DELETE", `/api/sessions/${others[0].id}`, {})).status).toBe(200)
    expect((await Promise.all(elsewhere.map((one) => one.state()))).sort()).toEqual(["signed_in", "signed_out"])
    expect((await stranger.request("POST", "/api/sessions/end-all", {})).status).toBe(200)
    for (const one of [stranger, ...elsewhere]) expect(await one.state()).toBe("signed_out")
  })

  test("that ends takes its open streams and waiting requests with it", async () => {
    await app.feed([user("user_s", "org_a", ["vault_a"])])
    const visitor = await signedIn(app, "user_s")
    const headers = { cookie: [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join("; ") }
    const feed = `${visitor.origin}/portal/api/v1/event-feed`
    const waiting = fetch(`${feed}?from=now&wait=30`, { headers })
    const stream = await patiently(() => fetch(`${feed}/stream?from=now`, { headers }))
    expect(stream.status).toBe(200)
    const streamed = stream.text()
    expect((await visitor.request("POST", "/api/sign-out", {})).status).toBe(200)
    expect(await streamed).not.toContain("data:")
    await app.feed([transaction("vault_a", 3)])
    const answer = await waiting
    expect(answer.status).toBe(401)
    expect(await answer.json()).toMatchObject({ code: "signed_out" })
  })

  test("that ends while a request's body arrives changes nothing", async () => {
    await app.feed([user("user_w", "org_a", ["vault_a"])])
    const visitor = await signedIn(app, "user_w")
    const stored = () =>
      app.sql(`
        SELECT a.password, f.backup_codes, (SELECT count(*) FROM api_keys WHERE user_id = 'user_w') AS keys,
          (SELECT count(*) FROM portal_verifications WHERE value LIKE '%user_w%') AS challenges
        FROM portal_accounts a JOIN portal_second_factors f USING (user_id) WHERE a.user_id = 'user_w'`)
    const before = await stored()
    const rest = { scopes: ["vault:read"], vaultIds: null, ipAllowlist: [] }
    for (const [path, body] of [
      ["/password", { current: PASSWORD, next: "another horse battery staple" }],
      ["/backup-codes", {}],
      ["/passkeys/options", {}],
      ["/keys", { label: "late", ...rest }]
    ] as const) {
      if ((await visitor.state()) === "signed_out") {
        await visitor.request("POST", "/api/sign-in", { email: "user_w@example.com", password: PASSWORD })
        await app.sql("UPDATE portal_sessions SET second_factor_at = now() WHERE user_id = 'user_w'")
      }
      await app.sql("UPDATE portal_sessions SET last_seen_at = now() - interval '10 minutes' WHERE user_id = 'user_w'")
      const [begun, ...end] = JSON.stringify({ ...body, confirmation: { code: visitor.backupCodes[0] } })
      const { promise: ended, resolve: finish } = Promise.withResolvers<void>()
      const late = fetch(`${visitor.origin}/portal/api${path}`, {
        method: "POST",
        headers: {
          origin: visitor.origin,
          "sec-fetch-site": "same-origin",
          "x-portal": "1",
          "x-portal-active": "1",
          cookie: [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join("; "),
          "content-type": "application/json"
        },
        body: new ReadableStream({
          async start(controller) {
            controller.enqueue(new TextEncoder().encode(begun))
            await ended
            controller.enqueue(new TextEncoder().encode(end.join("")))
            controller.close()
          }
        })
      })
      await until(
        "the session was read",
        async () =>
          (await app.sql("SELECT 1 FROM portal_sessions WHERE user_id = 'user_w' AND last_seen_at > now() - interval '5 minutes'"))[0]
      )
      await app.sql("DELETE FROM portal_sessions WHERE user_id = 'user_w'")
      finish()
      const { status } = await late
      expect([path, status]).toEqual([path, 401])
    }
    expect(await stored()).toEqual(before)
  })

  test("loses a vault with the role, and ends when its user is deactivated", async () => {
    expect((await member.get("/api/v1/vaults")).json.data).toHaveLength(1)
    await app.feed([user("user_m", "org_a", [])])
    expect((await member.get("/api/v1/vaults")).json.data).toHaveLength(0)
    await app.feed([user("user_m", "org_a", ["vault_a"], { status: "deactivated" })])
    const out = await member.get("/api/v1/vaults")
    expect([out.status, out.json.code]).toEqual([401, "signed_out"])
    await app.feed([user("user_m", "org_a", ["vault_a"])])
    expect(await member.state()).toBe("signed_out")
  })

  test("has ended when its user is active again, although nobody used it meanwhile", async () => {
    await app.feed([user("user_q", "org_a", [])])
    const visitor = await signedIn(app, "user_q")
    for (const status of ["deactivated", "active"]) await app.feed([user("user_q", "org_a", [], { status })])
    expect(await visitor.state()).toBe("signed_out")
  })

  test("ends with the next request once its organization is being deleted", async () => {
    expect((await owner.get("/api/v1/vaults")).status).toBe(200)
    await app.sql("UPDATE organizations SET deleting_at = now() WHERE id = 'org_a'")
    const out = await owner.get("/api/v1/vaults")
    expect([out.status, out.json.code]).toEqual([401, "signed_out"])
  })
})
