import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as http from "node:http"
import { Effect } from "effect"
import Provider from "oidc-provider"
import { App } from "../support/app.ts"
import { freePort } from "../support/freePort.ts"
import { smallest, user } from "../support/records.ts"
import { Authenticator, invite, Visitor } from "./client.ts"

/** The person whom the identity provider signs in, without prompting. */
let person = { sub: "p1", email: "user_b@example.com", email_verified: true }
/** What the provider's token response becomes on its way. */
type Tokens = Readonly<Record<string, unknown>>
const unaltered = (tokens: Tokens) => tokens
let alter: (tokens: Tokens) => Tokens = unaltered
/** Whether the provider accepts connections and answers nothing. */
let silent = true
/** Whether it keeps a sign-in waiting for its tokens. */
let slow = false
const app = new App()
let server: http.Server

beforeAll(async () => {
  const [providerPort, portalPort] = await Effect.runPromise(Effect.all([freePort, freePort], { concurrency: 2 }))
  const [issuer, base] = [`http://127.0.0.1:${providerPort}`, `http://127.0.0.1:${portalPort}`]
  const secret = "a-secret-of-the-client-0123456789"
  const provider = new Provider(issuer, {
    clients: [{ client_id: "portal", client_secret: secret, redirect_uris: [`${base}/portal/api/auth/callback/oidc`] }],
    features: { devInteractions: { enabled: false } },
    cookies: { keys: ["a key of the provider's own cookies"] },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    conformIdTokenClaims: false,
    findAccount: (_, sub) => ({ accountId: sub, claims: async () => ({ ...person, name: "Somebody", sub }) }),
    interactions: { url: (_, { uid }) => `/interaction/${uid}` }
  })
  const handle = provider.callback()
  server = http.createServer(async (request, response) => {
    if (silent || (slow && request.url === "/token")) return
    if (request.url === "/token") {
      const { end } = response
      response.end = (text: unknown) => {
        const altered = JSON.stringify(alter(JSON.parse(String(text))))
        return end.call(response.setHeader("content-length", Buffer.byteLength(altered)), altered, "utf8")
      }
    }
    if (request.url?.startsWith("/interaction/") !== true) return handle(request, response)
    const { params, prompt } = await provider.interactionDetails(request, response)
    if (prompt.name === "login") return provider.interactionFinished(request, response, { login: { accountId: person.sub } })
    const grant = new provider.Grant({ accountId: person.sub, clientId: String(params["client_id"]) })
    grant.addOIDCScope("openid email profile")
    return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true })
  })
  await new Promise<void>((resolve) => server.listen(providerPort, "127.0.0.1", resolve))
  await app.open(["api"], {
    PORT: String(portalPort),
    PORTAL_BASE_URL: base,
    PORTAL_OIDC_ISSUER: issuer,
    PORTAL_OIDC_CLIENT_ID: "portal",
    PORTAL_OIDC_CLIENT_SECRET: secret
  })
  await app.feed([...smallest(), user("user_b", "org_a", ["vault_a"]), user("user_c", "org_a", ["vault_a"])])
})
afterAll(async () => {
  await app.close()
  server?.closeAllConnections()
  server?.close()
})

/** Follows the browser's redirects to the provider and back, and returns the final address. */
const throughProvider = async (visitor: Visitor, asked = (url: string) => url, returned = (url: string) => url): Promise<string> => {
  const begun = await visitor.request("POST", "/api/sign-in/provider", {})
  if (begun.status !== 200) throw new Error(`the sign-in was refused: ${begun.text}`)
  const jar = new Map<string, string>()
  let target: string = asked(begun.json.url)
  while (!target.startsWith(visitor.origin)) {
    const response = await fetch(target, {
      redirect: "manual",
      headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; ") }
    })
    for (const one of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(one) ?? []
      if (value === "") jar.delete(name)
      else jar.set(name, value)
    }
    const location = response.headers.get("location")
    if (location === null) throw new Error(`the provider answered ${response.status}: ${await response.text()}`)
    target = new URL(location, target).toString()
  }
  const back = await visitor.request("GET", returned(target).slice(`${visitor.origin}/portal`.length), undefined, {
    "sec-fetch-site": "cross-site",
    origin: ""
  })
  return back.headers.get("location") ?? `${back.status}`
}

describe("the identity provider", () => {
  test("delays nobody else while it does not answer, and is asked again", async () => {
    const visitor = new Visitor(app)
    const begun = visitor.request("POST", "/api/sign-in/provider", {})
    const password = await new Visitor(app).request("POST", "/api/sign-in", { email: "nobody@example.com", password: "not the password" })
    expect([await visitor.state(), password.status]).toEqual(["signed_out", 401])
    expect(await Promise.race([begun, "unanswered"])).toBe("unanswered")
    // It is answered with 503 after 10 seconds, and repeated.
    silent = false
    expect((await begun).json.url).toStartWith("http://127.0.0.1:")
  })

  test("leads back to the sign-in page if it is silent or verbose", async () => {
    slow = true
    expect(await throughProvider(new Visitor(app))).toBe("/portal/sign-in?error=provider")
    slow = false
    const words = `error=access_denied&error_description=${"x".repeat(3_000)}`
    const denied = (url: string) => `${url.split("?")[0]}?state=${new URL(url).searchParams.get("state")}&${words}`
    expect(await throughProvider(new Visitor(app), undefined, denied)).toBe("/portal/sign-in?error=provider")
  })

  test("signs in invited users, who still need the second factor", async () => {
    const visitor = new Visitor(app)
    expect((await visitor.get("/api/session")).json.provider).toBe("127.0.0.1")
    const token = await invite(app, "user_b")
    expect((await visitor.request("POST", "/api/invitation/accept", { token, password: null })).status).toBe(200)
    expect(await visitor.state()).toBe("signed_out")
    expect(await throughProvider(visitor)).toBe("/portal/")
    expect(await visitor.state()).toBe("enrolment")
    expect((await visitor.get("/api/v1/vaults")).json.code).toBe("second_factor_required")
    visitor.authenticator = new Authenticator((await visitor.request("POST", "/api/enrolment", {})).json.uri)
    expect((await visitor.request("POST", "/api/enrolment/confirm", { code: await visitor.code() })).status).toBe(200)
    expect((await visitor.get("/api/v1/vaults")).json.data).toHaveLength(1)
    expect(JSON.stringify(await app.sql("SELECT access_token, refresh_token, id_token FROM portal_accounts"))).not.toMatch(
      /"[^"]{20,}"\s*[,}]/
    )

    const again = new Visitor(app)
    expect(await throughProvider(again)).toBe("/portal/")
    expect(await again.state()).toBe("second_factor")
  })

  test("refuses users without an invitation, with an unverified address, or deactivated", async () => {
    const refused = async () => {
      const visitor = new Visitor(app)
      const end = await throughProvider(visitor)
      return [end.startsWith("/portal/sign-in"), await visitor.state()]
    }
    person = { sub: "p2", email: "user_c@example.com", email_verified: true }
    expect(await refused()).toEqual([true, "signed_out"])
    expect(await app.sql("SELECT id FROM portal_users WHERE id <> 'user_b'")).toEqual([])
    await new Visitor(app).request("POST", "/api/invitation/accept", { token: await invite(app, "user_c"), password: null })
    person = { sub: "p3", email: "user_c@example.com", email_verified: false }
    expect(await refused()).toEqual([true, "signed_out"])
    await app.feed([user("user_b", "org_a", ["vault_a"], { status: "deactivated" })])
    person = { sub: "p1", email: "user_b@example.com", email_verified: true }
    const visitor = new Visitor(app)
    await throughProvider(visitor)
    expect(await visitor.state()).toBe("signed_out")
  })

  test("an identity belongs to the account that has its verified address now", async () => {
    await app.feed([user("user_again", "org_a", ["vault_a"], { email: "user_b@example.com" })])
    await new Visitor(app).request("POST", "/api/invitation/accept", { token: await invite(app, "user_again"), password: null })
    person = { sub: "p1", email: "user_b@example.com", email_verified: true }
    const visitor = new Visitor(app)
    expect(await throughProvider(visitor)).toBe("/portal/")
    expect((await visitor.get("/api/session")).json.user.id).toBe("user_again")

    // The address moves on while its account stays.
    await app.feed([
      user("user_again", "org_a", ["vault_a"], { email: "desk@example.com" }),
      user("user_next", "org_a", ["vault_a"], { email: "user_b@example.com" })
    ])
    await new Visitor(app).request("POST", "/api/invitation/accept", { token: await invite(app, "user_next"), password: null })
    const next = new Visitor(app)
    expect(await throughProvider(next)).toBe("/portal/")
    expect((await next.get("/api/session")).json.user.id).toBe("user_next")
  })

  test("an address that an account no longer has signs nobody in to it", async () => {
    const people = [user("user_e", "org_a", ["vault_a"]), user("user_f", "org_a", ["vault_a"])] as const
    await app.feed(people)
    for (const { id } of people)
      await new Visitor(app).request("POST", "/api/invitation/accept", { token: await invite(app, String(id)), password: null })
    // They exchange their addresses.
    await app.feed([
      user("user_e", "org_a", ["vault_a"], { email: "user_f@example.com" }),
      user("user_f", "org_a", ["vault_a"], { email: "user_e@example.com" })
    ])
    for (const [sub, email, id] of [
      ["p6", "user_e@example.com", "user_f"],
      ["p7", "user_f@example.com", "user_e"]
    ] as const) {
      person = { sub, email, email_verified: true }
      const visitor = new Visitor(app)
      expect(await throughProvider(visitor)).toBe("/portal/")
      expect((await visitor.get("/api/session")).json.user.id).toBe(id)
    }
  })

  test("an address that the feed gives to two accounts signs in to neither", async () => {
    const people = ["user_g", "user_h"].map((id) => user(id, "org_a", ["vault_a"]))
    await app.feed(people)
    for (const { id } of people)
      await new Visitor(app).request("POST", "/api/invitation/accept", { token: await invite(app, String(id)), password: null })
    await app.feed(["user_g", "user_h"].map((id) => user(id, "org_a", ["vault_a"], { email: "both@example.com" })))
    person = { sub: "p8", email: "both@example.com", email_verified: true }
    const visitor = new Visitor(app)
    expect(await throughProvider(visitor)).toStartWith("/portal/sign-in")
    expect(await visitor.state()).toBe("signed_out")
  })

  test("an address that changed owners signs in to its present owner", async () => {
    await app.feed([user("user_d", "org_a", ["vault_a"])])
    await new Visitor(app).request("POST", "/api/invitation/accept", { token: await invite(app, "user_d"), password: null })
    await app.feed([user("user_d", "org_a", ["vault_a"], { email: "d@example.com" })])
    person = { sub: "p4", email: "user_d@example.com", email_verified: true }
    const successor = new Visitor(app)
    expect(await throughProvider(successor)).toStartWith("/portal/sign-in")
    expect(await successor.state()).toBe("signed_out")
    person = { sub: "p5", email: "D@example.com", email_verified: true }
    const visitor = new Visitor(app)
    expect(await throughProvider(visitor)).toBe("/portal/")
    expect((await visitor.get("/api/session")).json.user.id).toBe("user_d")
  })

  test("a linked identity is checked at every sign-in for the account's verified, present address", async () => {
    await app.feed([user("user_l", "org_a", ["vault_a"])])
    await new Visitor(app).request("POST", "/api/invitation/accept", { token: await invite(app, "user_l"), password: null })
    const ending = async () => {
      const visitor = new Visitor(app)
      return [await throughProvider(visitor), await visitor.state()]
    }
    const refused = [expect.stringMatching(/^\/portal\/sign-in/), "signed_out"]
    person = { sub: "p9", email: "user_l@example.com", email_verified: true }
    expect(await ending()).toEqual(["/portal/", "enrolment"])
    // The provider no longer vouches for the address.
    person = { ...person, email_verified: false }
    expect(await ending()).toEqual(refused)
    // The person at the provider has another address now, which may be unknown or another user's.
    person = { ...person, email: "elsewhere@example.com", email_verified: true }
    expect(await ending()).toEqual(refused)
    // The feed gives the user another address.
    person = { ...person, email: "user_l@example.com" }
    expect(await ending()).toEqual(["/portal/", "enrolment"])
    await app.feed([user("user_l", "org_a", ["vault_a"], { email: "l@example.com" })])
    expect(await ending()).toEqual(refused)
    person = { ...person, email: "L@example.com" }
    expect(await ending()).toEqual(["/portal/", "enrolment"])
  })

  test("an address of other letters with the same lower case is another address", async () => {
    await app.feed([user("user_k", "org_a", ["vault_a"])])
    await new Visitor(app).request("POST", "/api/invitation/accept", { token: await invite(app, "user_k"), password: null })
    const visitor = new Visitor(app)
    // The Kelvin sign.
    person = { sub: "p11", email: "user_\u212a@example.com", email_verified: true }
    expect(await throughProvider(visitor)).toStartWith("/portal/sign-in")
    person = { sub: "p12", email: "USER_K@example.com", email_verified: true }
    expect([await throughProvider(visitor), await visitor.state()]).toEqual(["/portal/", "enrolment"])
  })

  test("an answer without an ID token, or with a forged or foreign one, is refused", async () => {
    await app.feed([user("user_t", "org_a", ["vault_a"])])
    await new Visitor(app).request("POST", "/api/invitation/accept", { token: await invite(app, "user_t"), password: null })
    person = { sub: "p10", email: "user_t@example.com", email_verified: true }
    const ending = async (asked?: (url: string) => string) => {
      const visitor = new Visitor(app)
      return [await throughProvider(visitor, asked), await visitor.state()]
    }
    const refused = [expect.stringMatching(/^\/portal\/sign-in/), "signed_out"]
    alter = ({ id_token: _, ...others }) => others
    expect(await ending()).toEqual(refused)
    alter = ({ id_token, ...others }) => ({ ...others, id_token: String(id_token).replace(/.{8}$/, "AAAAAAAA") })
    expect(await ending()).toEqual(refused)
    alter = unaltered
    expect(await ending((url) => url.replace(/nonce=[^&]+/, "nonce=another"))).toEqual(refused)
    expect(await ending()).toEqual(["/portal/", "enrolment"])
  })

  test("a redirect that nobody requested has no effect", async () => {
    const visitor = new Visitor(app)
    const { headers, status } = await visitor.request("GET", "/api/auth/callback/oidc?code=x&state=y", undefined, { origin: "" })
    expect([status, headers.get("location")?.startsWith("/portal/sign-in")]).toEqual([302, true])
    expect(await visitor.state()).toBe("signed_out")
  })

  test("refused sign-ins are lines of the log, and nothing else is written", async () => {
    const lines = (app.main?.output() ?? "").trim().split("\n")
    expect(lines.filter((line) => !line.startsWith("{"))).toEqual([])
    const refusals = lines.map((line) => JSON.parse(line)).filter(({ message }) => message.endsWith("at the identity provider was refused"))
    expect(JSON.stringify(refusals[0])).toContain("claims are not accepted")
  })

  test("redirects that other web pages cause use up nobody's attempts", async () => {
    const limited = await app.start(["api"], { PORT: "0", RATE_LIMIT: "1000/1s burst 1000" })
    const { host } = new URL(app.env["PORTAL_BASE_URL"] ?? "")
    const redirected = async (cookie: Readonly<Record<string, string>>) => {
      const url = `${limited.baseUrl}/portal/api/auth/callback/oidc?code=x&state=y`
      return (await fetch(url, { redirect: "manual", headers: { host, ...cookie } })).status
    }
    for (let count = 1; count <= 40; count++) expect([count, await redirected({})]).toEqual([count, 302])
    // With the cookie of a sign-in that began in this browser.
    const begun = { cookie: "other=1; custody.state=x" }
    for (let count = 1; count <= 30; count++) expect([count, await redirected(begun)]).toEqual([count, 302])
    expect(await redirected(begun)).toBe(429)
    await limited.end()
  })
})
