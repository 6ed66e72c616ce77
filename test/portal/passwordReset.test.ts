/** New passwords by e-mail, with a real SMTP server: what a link does, what ends it, and what nobody learns from it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { Effect } from "effect"
import pg from "pg"
import { SMTPServer } from "smtp-server"
import { App } from "../support/app.ts"
import { freePort } from "../support/freePort.ts"
import { until } from "../support/receiver.ts"
import { smallest, user } from "../support/records.ts"
import { useBrowser } from "./browser.ts"
import { invite, PASSWORD, signedIn, Visitor } from "./client.ts"
import { hasBrowser, PortalPage } from "./PortalPage.ts"

const NEW = "a wholly new password"
const mails: Array<{ readonly to: string; readonly text: string }> = []
/** What the mail server waits for before it accepts a message. */
let accepting = Promise.resolve()
const smtp = new SMTPServer({
  authOptional: true,
  disabledCommands: ["STARTTLS"],
  onData: async (stream, { envelope }, done) => {
    const message = (await text(stream)).replaceAll("=\r\n", "").replaceAll("=3D", "=")
    await accepting
    mails.push({ to: envelope.rcptTo.map(({ address }) => address).join(), text: message })
    done()
  }
})
const browser = useBrowser()
const app = new App()
let base = "",
  owner: Visitor

afterAll(async () => {
  await app.close()
  await new Promise<void>((resolve) => smtp.close(() => resolve()))
})
beforeAll(async () => {
  await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", resolve))
  const port = await Effect.runPromise(freePort)
  base = `http://localhost:${port}`
  await app.open([], {
    // With the limits of production, and a proxy that reports each visitor's address.
    RATE_LIMIT: "1000/1s burst 1000",
    TRUSTED_PROXIES: "127.0.0.0/8",
    PORT: String(port),
    PORTAL_BASE_URL: base,
    // The server listens on an address with a port.
    SMTP_URL: `smtp://127.0.0.1:${(smtp.server.address() as AddressInfo).port}`
  })
  // A locale that has capitals beyond ASCII, as in Docker's Postgres.
  await app.sql("UPDATE pg_database SET datctype = 'C.UTF-8' WHERE datname = current_database()")
  app.main = await app.start(["api", "worker", "dispatcher"])
  await app.feed([...smallest(), user("user_a", "org_a", ["vault_a"], { organizationRole: "owner" })])
  owner = await signedIn(app, "user_a")
})

const addressOf = (id: string) => `${id}@example.com`
/** A person of the organization with an account and a session. */
const person = async (id: string) => {
  await app.feed([user(id, "org_a", ["vault_a"], { name: "Ada Keller" })])
  return signedIn(app, id)
}
const post = (path: string, body: unknown, from = "198.51.100.1", headers = {}) =>
  new Visitor(app).request("POST", `/api/password-reset${path}`, body, { "x-forwarded-for": from, ...headers })
const ask = (email: string, from?: string) => post("/request", { email }, from)
const confirm = (token: string, password = NEW, from?: string) => post("/confirm", { token, password }, from)
const to = (email: string) => mails.filter((mail) => mail.to === email)
const nextTo = (email: string, number: number) => until(`mail ${number} to ${email}`, async () => to(email)[number - 1])
const tokenIn = (mail: { readonly text: string }) => /\/portal\/password-reset#([\w-]{32})/.exec(mail.text)?.[1] ?? ""
/** The token of a new link. */
const link = async (email: string) => {
  const before = to(email).length
  expect((await ask(email)).status).toBe(200)
  return tokenIn(await nextTo(email, before + 1))
}
const signIn = async (email: string, password: string) => {
  const visitor = new Visitor(app)
  const { status } = await visitor.request("POST", "/api/sign-in", { email, password }, { "x-forwarded-for": "198.51.100.2" })
  return { status, visitor }
}
const acts = async (id: string) => {
  const { json } = await owner.get("/api/v1/audit-log?limit=100")
  return json.data.filter(({ target }: { target: { id: string } }) => target.id === id)
}

describe("a change on the account page", () => {
  test("is told to its person by e-mail, with where it came from", async () => {
    const known = await person("user_r")
    const from = { "x-forwarded-for": "203.0.113.9" }
    const confirmation = { code: known.backupCode() }
    const change = { current: PASSWORD, next: NEW, confirmation: { code: known.backupCode() } }
    expect((await known.request("POST", "/api/password", { ...change, current: "not the password" }, from)).status).toBe(400)
    expect((await known.request("POST", "/api/password", { ...change, confirmation: { code: known.backupCode() } }, from)).status).toBe(200)
    expect((await known.request("POST", "/api/backup-codes", { confirmation }, from)).status).toBe(200)
    await nextTo(addressOf("user_r"), 2)
    for (const told of [
      "The password of your account in the custody portal was changed",
      "The backup codes of your account in the custody portal were renewed"
    ])
      expect(
        to(addressOf("user_r")).filter((mail) => mail.text.includes(`${told} on `) && mail.text.includes("from 203.0.113.9"))
      ).toHaveLength(1)
  })
})

test("actions that need a second factor are limited to thirty per user in fifteen minutes", async () => {
  const known = await person("user_s")
  const renew = async () => {
    const { json, status } = await known.request("POST", "/api/backup-codes", { confirmation: { code: known.backupCode() } })
    if (status === 200) known.backupCodes.splice(0, known.backupCodes.length, ...json.backupCodes)
    return status
  }
  for (let number = 1; number <= 30; number++) expect([number, await renew()]).toEqual([number, 200])
  expect(await renew()).toBe(429)
})

describe("a new password by e-mail", () => {
  test("ends all sessions, keeps the second factor required, and is audited and announced", async () => {
    const known = await person("user_b")
    const email = addressOf("user_b")
    const token = await link(email)
    expect(to(email)[0]?.text).toContain(`${base}/portal/password-reset#${token}`)
    expect((await post("", { token })).json).toEqual({ email, expiresAt: expect.any(String) })
    const short = await confirm(token, "too short")
    expect([short.status, short.json.errors[0].field]).toEqual([400, "password"])
    const half = await signIn(email, PASSWORD)
    const set = await confirm(token, NEW, "203.0.113.7")
    expect([set.status, set.headers.getSetCookie()]).toEqual([200, []])
    expect([await known.state(), await half.visitor.state()]).toEqual(["signed_out", "signed_out"])
    expect((await signIn(email, PASSWORD)).status).toBe(401)
    const { visitor } = await signIn(email, NEW)
    expect(await visitor.state()).toBe("second_factor")
    expect((await visitor.request("POST", "/api/sign-in/second-factor", { code: known.backupCode() })).status).toBe(200)
    expect(await visitor.state()).toBe("signed_in")
    const again = await confirm(token, "yet another password")
    expect([again.status, again.json.code]).toEqual([410, "password_reset_invalid"])
    const entries = (await acts("user_b")).filter(({ action }: { action: string }) => action.startsWith("account.password_reset"))
    expect(entries).toMatchObject([
      { action: "account.password_reset", actor: { type: "session", id: null, userId: "user_b" }, clientAddress: "203.0.113.7" },
      { action: "account.password_reset_requested", actor: { type: "session", id: null, userId: "user_b" }, clientAddress: "198.51.100.1" }
    ])
    expect((await nextTo(email, 2)).text).toContain("was changed on")
    expect(to(email)[1]?.text).toContain("from 203.0.113.7")
    const stored = await app.sql("SELECT identifier, value FROM portal_verifications UNION ALL SELECT cause, body FROM notices")
    for (const place of [JSON.stringify(stored), JSON.stringify(entries), app.main?.output() ?? ""]) expect(place).not.toContain(token)
  })

  test("gets the same response with and without an account, before a mail is sent", async () => {
    await person("user_c")
    await person("user_gone")
    await app.feed([
      user("user_gone", "org_a", [], { status: "deactivated" }),
      user("user_new", "org_a", ["vault_a"], { name: "Nora New" })
    ])
    const { promise, resolve } = Promise.withResolvers<void>()
    accepting = promise
    const plain = async (id: string) => {
      const { headers, status, text } = await ask(addressOf(id), "198.51.100.3")
      return [status, text, [...headers.keys()].sort()]
    }
    const unknown = await plain("nobody")
    for (const id of ["user_c", "user_gone", "user_new"]) expect(await plain(id)).toEqual(unknown)
    expect(unknown.slice(0, 2)).toEqual([200, '{"done":true}'])
    expect(to(addressOf("user_c"))).toEqual([])
    resolve()
    expect(tokenIn(await nextTo(addressOf("user_c"), 1))).not.toBe("")
    for (const id of ["nobody", "user_gone", "user_new"]) expect([id, to(addressOf(id))]).toEqual([id, []])
  })

  test("works once for two requests at the same time, and only with the newest link", async () => {
    await person("user_d")
    const [first, second] = [await link(addressOf("user_d")), await link(addressOf("user_d"))]
    expect((await confirm(first)).status).toBe(410)
    const both = await Promise.all([confirm(second, "one of two passwords"), confirm(second, "the other of two")])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 410])
    const used = both[0]?.status === 200 ? "one of two passwords" : "the other of two"
    expect((await signIn(addressOf("user_d"), used)).status).toBe(200)
  })

  for (const [what, id, change] of [
    ["another address", "user_e", async () => app.feed([user("user_e", "org_a", ["vault_a"], { email: "elsewhere@example.com" })])],
    [
      "a deactivation that was taken back",
      "user_f",
      async () => {
        for (const status of ["deactivated", "active"]) await app.feed([user("user_f", "org_a", [], { status })])
      }
    ],
    [
      "a changed password",
      "user_g",
      async (known: Visitor) => {
        const body = { current: PASSWORD, next: "changed in the portal", confirmation: { code: known.backupCode() } }
        expect((await known.request("POST", "/api/password", body)).status).toBe(200)
      }
    ],
    ["a new invitation", "user_h", async () => new Visitor(app).accept(await invite(app, "user_h", { reset: true }))],
    [
      "a removed second factor",
      "user_i",
      async () => app.sql("UPDATE portal_second_factors SET verified_at = NULL WHERE user_id = 'user_i'")
    ],
    [
      "the end of its validity",
      "user_j",
      async () => app.sql("UPDATE portal_verifications SET expires_at = now() WHERE value LIKE '%user_j%'")
    ]
  ] as ReadonlyArray<readonly [string, string, (known: Visitor) => Promise<unknown>]>)
    test(`is not set by a link from before ${what}`, async () => {
      const known = await person(id)
      const token = await link(addressOf(id))
      await change(known)
      for (const answer of [await post("", { token }), await confirm(token)])
        expect([answer.status, answer.json.code]).toEqual([410, "password_reset_invalid"])
      expect((await acts(id)).map(({ action }: { action: string }) => action)).not.toContain("account.password_reset")
    })

  test("signs out whoever was signing in with the old password at the same time", async () => {
    await person("user_q")
    const changing = new pg.Client({ connectionString: app.databaseUrl })
    await changing.connect()
    await changing.query("BEGIN")
    await changing.query("UPDATE portal_accounts SET password = 'another' WHERE user_id = 'user_q'")
    await changing.query("DELETE FROM portal_sessions WHERE user_id = 'user_q'")
    const old = signIn(addressOf("user_q"), PASSWORD)
    await until(
      "the new session",
      async () => (await app.sql("SELECT 1 FROM portal_sessions WHERE user_id = 'user_q' AND second_factor_at IS NULL"))[0]
    )
    await changing.query("COMMIT")
    await changing.end()
    const { status, visitor } = await old
    expect([status, await visitor.state()]).toEqual([401, "signed_out"])
    expect(await app.sql("SELECT 1 FROM portal_sessions WHERE user_id = 'user_q'")).toEqual([])
  })

  test("has no link without a password or second factor, and the mail says why", async () => {
    await person("user_k")
    await app.sql("UPDATE portal_accounts SET password = NULL WHERE user_id = 'user_k'")
    await app.feed([user("user_l", "org_a", ["vault_a"])])
    await new Visitor(app).request("POST", "/api/invitation/accept", { token: await invite(app, "user_l"), password: PASSWORD })
    for (const [id, why] of [
      ["user_k", "Your account has no password"],
      ["user_l", "You have not set up a second factor yet"]
    ] as const) {
      expect((await ask(addressOf(id))).status).toBe(200)
      const mail = await nextTo(addressOf(id), 1)
      expect([mail.text.includes(why), tokenIn(mail)]).toEqual([true, ""])
    }
    expect(await app.sql("SELECT 1 FROM portal_accounts WHERE user_id = 'user_k' AND password IS NOT NULL")).toEqual([])
  })

  test("leaves a locked second factor locked", async () => {
    const known = await person("user_m")
    await app.sql("UPDATE portal_second_factors SET failures = 5, locked_until = now() + interval '15 minutes' WHERE user_id = 'user_m'")
    expect((await confirm(await link(addressOf("user_m")))).status).toBe(200)
    const { visitor } = await signIn(addressOf("user_m"), NEW)
    const locked = await visitor.request("POST", "/api/sign-in/second-factor", { code: known.backupCode() })
    expect([locked.status, locked.json.code]).toEqual([429, "rate_limited"])
  })

  test("has a link to the configured origin, whatever the request says", async () => {
    await person("user_n")
    const body = { email: addressOf("user_n") }
    expect((await post("/request", body, "198.51.100.4", { host: "evil.example" })).status).toBe(421)
    const forwarded = { "x-forwarded-host": "evil.example", forwarded: "host=evil.example", "x-forwarded-proto": "https" }
    expect((await post("/request", body, "198.51.100.4", forwarded)).status).toBe(200)
    const mail = await nextTo(addressOf("user_n"), 1)
    expect([mail.text.includes(`${base}/portal/password-reset#`), mail.text.includes("evil")]).toEqual([true, false])
  })

  test("is limited to five links an hour per account, however written, and per address", async () => {
    await person("user_igor")
    const igor = addressOf("user_igor")
    // Lower case in Postgres is `i`, in JavaScript another address.
    for (const email of [igor.replace("i", "\u0130"), ...Array.from({ length: 5 }, () => igor)])
      expect([email, (await ask(email, "198.51.100.5")).status]).toEqual([email, 200])
    expect((await ask(igor.toUpperCase(), "198.51.100.5")).status).toBe(429)
    await person("user_o")
    for (const email of [addressOf("user_o"), "nobody.else@example.com"]) {
      const statuses = await Promise.all(Array.from({ length: 6 }, (_, number) => ask(email, `198.51.100.${20 + number}`)))
      expect([email, statuses.map(({ status }) => status).sort()]).toEqual([email, [200, 200, 200, 200, 200, 429]])
      expect((await ask(email.toUpperCase(), "198.51.100.30")).status).toBe(429)
    }
    for (let number = 1; number <= 30; number++) expect((await confirm("none", NEW, "203.0.113.200")).status).toBe(410)
    expect((await ask("somebody@example.com", "203.0.113.200")).status).toBe(429)
    await nextTo(addressOf("user_o"), 5)
    await nextTo(igor, 5)
    expect([to(addressOf("user_o")).length, to(igor).length]).toEqual([5, 5])
  })
})

test("requests for a new password are limited per wider network", async () => {
  // A repeated request would count twice.
  app.patient = false
  const statuses = async (site: (number: number) => string, from: number, count: number) => {
    const answers = Array.from({ length: count }, (_, number) => ask(`${crypto.randomUUID()}@example.com`, site(from + number)))
    return (await Promise.all(answers)).map(({ status }) => status)
  }
  for (const site of [(number: number) => `2001:db8:48:${number}::1`, (number: number) => `192.0.3.${number % 256}`]) {
    for (let sent = 0; sent < 300; sent += 20) expect(await statuses(site, sent, 20)).not.toContain(429)
    expect(await statuses(site, 300, 20)).toContain(429)
  }
  app.patient = true
  expect(await statuses((number) => `2001:db8:49:${number}::1`, 0, 1)).toEqual([200])
})

describe.skipIf(!hasBrowser)("a new password in a browser", () => {
  test("leads from the sign-in page over the mail to a sign-in with the second factor", async () => {
    const known = await person("user_p")
    const email = addressOf("user_p")
    const portal = new PortalPage(base, await browser.open(base))
    const { page } = portal
    await portal.goto("/")
    await page.getByText("No account? Ask an owner of your organization to invite you.").waitFor()
    await page.getByRole("link", { name: "Forgot your password?" }).click()
    await portal.heading("Forgot your password?").waitFor()
    await portal.expectAccessible("forgotten password")
    await page.getByLabel("E-mail address").fill(email)
    await page.getByRole("button", { name: "Send the link" }).click()
    await portal.heading("Check your e-mail").waitFor()
    await portal.expectAccessible("check your e-mail")
    const token = tokenIn(await nextTo(email, 1))
    await portal.goto("/password-reset#nonsense")
    await page.getByText("was already used, has expired").waitFor()
    await portal.expectAccessible("link that is none")
    await page.goto("about:blank")
    await portal.goto(`/password-reset#${token}`)
    await page.getByText(email).waitFor()
    await portal.expectAccessible("new password")
    await page.getByLabel("Choose a password").fill(NEW)
    await page.getByLabel("Confirm password").fill("something else entirely")
    await page.getByRole("button", { name: "Change password" }).click()
    await page.getByText("The passwords do not match.").waitFor()
    await page.getByLabel("Confirm password").fill(NEW)
    await page.getByRole("button", { name: "Change password" }).click()
    await portal.heading("Password changed").waitFor()
    expect(page.url()).toBe(`${base}/portal/password-reset`)
    await portal.expectAccessible("password changed")
    await page.getByRole("link", { name: "Go to sign-in" }).click()
    await page.getByLabel("E-mail address").fill(email)
    await page.getByLabel("Password").fill(NEW)
    await page.getByRole("button", { name: "Sign in", exact: true }).click()
    await page.getByLabel("Code").fill(known.backupCode())
    await page.getByRole("button", { name: "Continue" }).click()
    await portal.heading("Hello, Ada").waitFor()
    expect(browser.faults).toEqual([])
  })
})
