import { beforeAll, describe, expect, test } from "bun:test"
import { useApi } from "../support/api.ts"
import { smallest, user } from "../support/records.ts"
import { BrowserPasskey } from "./BrowserPasskey.ts"
import { PASSWORD, signedIn, Visitor } from "./client.ts"

// With the limits of production, and a proxy that reports each visitor's address.
const app = useApi({ RATE_LIMIT: "1000/1s burst 1000", TRUSTED_PROXIES: "127.0.0.0/8", PORTAL_BASE_URL: "http://localhost:8080" })
const from = (address: string) => ({ "x-forwarded-for": address })

let known: Visitor
beforeAll(async () => {
  await app.feed([...smallest(), user("user_b", "org_a", ["vault_a"]), user("user_c", "org_a", ["vault_a"])])
  known = await signedIn(app, "user_b")
})

const signIn = (email: string, password: string, address: string) =>
  new Visitor(app).request("POST", "/api/sign-in", { email, password }, from(address))

describe("signing in", () => {
  test("an unknown address, a wrong password and a deactivated user get the same response", async () => {
    const plain = (text: string) => text.replace(/"requestId":"[^"]*"/, "")
    const unknown = await signIn("nobody@example.com", PASSWORD, "198.51.100.1")
    const wrong = await signIn("user_b@example.com", "not the password", "198.51.100.1")
    expect([unknown.status, unknown.json.code]).toEqual([401, "sign_in_failed"])
    expect(plain(wrong.text)).toBe(plain(unknown.text))
    const [noAccount, account] = [
      await signIn("nobody@example.com", "", "198.51.100.1"),
      await signIn("user_b@example.com", "", "198.51.100.1")
    ]
    expect([noAccount.status, plain(noAccount.text)]).toEqual([400, plain(account.text)])
    const leaver = await signedIn(app, "user_c")
    await app.feed([user("user_c", "org_a", ["vault_a"], { status: "deactivated" })])
    expect(await leaver.state()).toBe("signed_out")
    expect(plain((await signIn("user_c@example.com", PASSWORD, "198.51.100.1")).text)).toBe(plain(unknown.text))
  })

  test("uses the latest address from the feed", async () => {
    await app.feed([user("user_b", "org_a", ["vault_a"], { email: "New.Name@example.com" })])
    expect((await signIn("new.name@example.com", PASSWORD, "198.51.100.2")).status).toBe(200)
    expect((await signIn("user_b@example.com", PASSWORD, "198.51.100.2")).status).toBe(401)
    await app.feed([user("user_b", "org_a", ["vault_a"])])
  })

  test("that cannot be completed fails as unavailable, not as a wrong password", async () => {
    await app.sql("ALTER TABLE portal_sessions RENAME TO portal_sessions_away")
    app.patient = false
    const unavailable = await signIn("user_b@example.com", PASSWORD, "198.51.100.3")
    app.patient = true
    await app.sql("ALTER TABLE portal_sessions_away RENAME TO portal_sessions")
    expect([unavailable.status, unavailable.json.code]).toEqual([503, "service_unavailable"])
    expect((await signIn("user_b@example.com", PASSWORD, "198.51.100.3")).status).toBe(200)
  })

  test("password guessing is slowed per account, at one address and across addresses, and per address", async () => {
    const guess = async (address: string) => (await signIn("user_a@example.com", "a wrong guess", address)).status
    for (let number = 1; number <= 10; number++) expect(await guess("203.0.113.1")).toBe(401)
    const refused = await signIn("user_a@example.com", "a wrong guess", "203.0.113.1")
    expect([refused.status, refused.json.code]).toEqual([429, "rate_limited"])
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    // One address does not lock out the account's owner, and many addresses cannot guess forever.
    for (let number = 1; number <= 40; number++) expect([number, await guess(`198.51.100.${100 + number}`)]).toEqual([number, 401])
    expect(await guess("198.51.100.99")).toBe(429)
    const token = { token: "none" }
    const look = (address: string) => new Visitor(app).request("POST", "/api/invitation", token, from(address))
    for (let number = 1; number <= 30; number++) expect((await look("203.0.113.200")).status).toBe(410)
    expect((await look("203.0.113.200")).status).toBe(429)
    expect((await look("203.0.113.201")).status).toBe(410)
  })

  test("wrong passwords from elsewhere do not lock a person out of networks of recent sign-ins", async () => {
    await app.feed([user("user_d", "org_a", ["vault_a"])])
    const own = { email: "user_d@example.com", password: PASSWORD }
    const person = await signedIn(app, "user_d")
    const office = from("2001:db8:7:7::1")
    const first = await person.request("POST", "/api/sign-in", own, office)
    const second = await person.request("POST", "/api/sign-in/second-factor", { code: person.backupCode() }, office)
    expect([first.status, second.status]).toEqual([200, 200])
    await app.sql(
      `INSERT INTO audit_log (id, organization_id, at, actor_type, user_id, action, target_type, target_id, client_address, changes)
       VALUES ('aud_old', 'org_a', now() - interval '31 days', 'session', 'user_d', 'account.signed_in', 'account', 'user_d', '192.0.2.31', '{}')`
    )
    const guess = async (address: string, email = own.email) => await signIn(email, "a wrong guess", address)
    // The first sign-in from the office counted, too.
    for (let number = 2; number <= 50; number++) expect([number, (await guess(`192.0.2.${100 + number}`)).status]).toEqual([number, 401])
    const plain = ({ text }: { readonly text: string }) => text.replace(/"requestId":"[^"]*"/, "").replace(/\d+ minutes/, "")
    const refused = await guess("192.0.2.99")
    expect([refused.status, refused.json.code]).toEqual([429, "rate_limited"])
    // The previous test did the same to an address without an account: the response reveals nothing.
    expect(plain(await guess("192.0.2.99", "user_a@example.com"))).toBe(plain(refused))
    expect((await signIn(own.email, PASSWORD, "192.0.2.31")).status).toBe(429)
    // Another address of the office's /64, which keeps its own limit of ten.
    expect((await signIn(own.email, PASSWORD, "2001:db8:7:7::2")).status).toBe(200)
    for (let number = 3; number <= 10; number++) expect([number, (await guess("2001:db8:7:7::3")).status]).toEqual([number, 401])
    expect((await guess("2001:db8:7:7::3")).status).toBe(429)
  })
})

describe("password checks", () => {
  /** Attempts whose client leaves at once, or waits for the response. */
  const attempt = async (address: string, signal: AbortSignal) => {
    const { host, origin } = new URL(known.origin)
    const headers = { ...from(address), host, origin, "sec-fetch-site": "same-origin", "x-portal": "1", "content-type": "application/json" }
    const body = JSON.stringify({ email: `${crypto.randomUUID()}@example.com`, password: "a wrong guess" })
    await app.send("api", "/portal/api/sign-in", { method: "POST", headers, body, signal }).catch(() => undefined)
  }

  test("keep their turn when their client leaves, so that those who leave delay nobody", async () => {
    app.patient = false
    /** How much longer a sign-in takes after many whose clients left; endless if a busy database refused it. */
    const delayed = async (network: number) => {
      const signInFrom = async (site: number) => {
        const begun = performance.now()
        const { status } = await signIn("user_b@example.com", PASSWORD, `2001:db8:${network + 1}:${site}::1`)
        expect([200, 503]).toContain(status)
        return status === 200 ? performance.now() - begun : Number.POSITIVE_INFINITY
      }
      await signInFrom(1)
      const usual = Math.min(await signInFrom(2), 1_000)
      for (let round = 0; round < 80; round++) {
        const left = new AbortController()
        const attempts = Array.from({ length: 5 }, (_, number) => attempt(`2001:db8:${network}:${round * 5 + number}::1`, left.signal))
        await Bun.sleep(usual / 10)
        left.abort()
        await Promise.all(attempts)
      }
      return (await signInFrom(3)) / usual
    }
    let times = await delayed(50)
    // A pause of the machine may take as long.
    for (const network of [60, 70]) if (times >= 10) times = await delayed(network)
    expect(times).toBeLessThan(10)
    app.patient = true
  })

  test("of many networks take turns, so that one with many attempts delays another by one", async () => {
    app.patient = false
    const { signal } = new AbortController()
    const order: Array<string> = []
    const note = (name: string) => (_: unknown) => void order.push(name)
    // Ten networks fill their places before somebody of another comes.
    const many = Array.from({ length: 50 }, (_, number) =>
      attempt(`2001:db8:${100 + (number % 10)}:${number}::1`, signal).then(note("one of many"))
    )
    const answer = await signIn("user_b@example.com", PASSWORD, "2001:db8:49:3::1")
    expect([answer.status, order.length < 25]).toEqual([200, true])
    await Promise.all(many)
    app.patient = true
  })

  test("from one wider network leave room for those from elsewhere", async () => {
    app.patient = false
    for (const [site, elsewhere] of [
      [(number: number) => `2001:db8:48:${number}::1`, "2001:db8:49::1"],
      [(number: number) => `192.0.3.${number}`, "192.0.4.1"]
    ] as const) {
      const { promise: refused, resolve } = Promise.withResolvers<void>()
      const guesses = Array.from({ length: 80 }, async (_, number) => {
        const { json, status } = await signIn(`nobody${number}@example.com`, "a wrong guess", site(number))
        if (status === 503) resolve()
        return [status, json.detail]
      })
      await Promise.race([refused, Promise.all(guesses)])
      expect((await signIn("user_b@example.com", PASSWORD, elsewhere)).status).toBe(200)
      const answers = await Promise.all(guesses)
      expect(answers).toContainEqual([401, "The e-mail address or the password is incorrect."])
      expect(answers).toContainEqual([503, "Too many people are signing in right now. Try again."])
    }
    app.patient = true
  })
})

describe("the second factor", () => {
  test("locks after five wrong codes on every path, and longer after five more", async () => {
    const half = new Visitor(app)
    await half.request("POST", "/api/sign-in", { email: "user_b@example.com", password: PASSWORD }, from("198.51.100.9"))
    expect(await half.state()).toBe("second_factor")
    // A code of an authenticator would end half a minute later.
    const right = known.backupCode()
    const guess = async () => {
      for (let number = 1; number <= 5; number++) {
        const wrong = await half.request("POST", "/api/sign-in/second-factor", { code: "not one" })
        expect([wrong.status, wrong.json.code]).toEqual([403, "second_factor_failed"])
      }
      const locked = await half.request("POST", "/api/sign-in/second-factor", { code: right })
      expect([locked.status, locked.json.code]).toEqual([429, "rate_limited"])
      return { detail: locked.json.detail, minutes: Math.ceil(Number(locked.headers.get("retry-after")) / 60) }
    }
    const first = await guess()
    expect(first).toEqual({ detail: "Too many wrong codes. Try again in 15 minutes.", minutes: 15 })
    await app.sql("UPDATE portal_second_factors SET locked_until = now()")
    expect((await guess()).minutes).toBe(30)
    await app.sql("UPDATE portal_second_factors SET locked_until = now(), failures = 99")
    await half.request("POST", "/api/sign-in/second-factor", { code: "not one" })
    const longest = await half.request("POST", "/api/sign-in/second-factor", { code: right })
    expect([longest.status, longest.json.detail]).toEqual([429, "Too many wrong codes. Try again in 24 hours."])
    const key = { label: "locked", scopes: ["vault:read"], vaultIds: null, ipAllowlist: [], confirmation: { code: right } }
    expect((await known.request("POST", "/api/keys", key)).status).toBe(429)
    expect(await half.state()).toBe("second_factor")
    await app.sql("UPDATE portal_second_factors SET locked_until = NULL")
    expect((await half.request("POST", "/api/sign-in/second-factor", { code: right })).status).toBe(200)
    expect(await half.state()).toBe("signed_in")
    expect(await app.sql("SELECT failures FROM portal_second_factors WHERE user_id = 'user_b'")).toEqual([{ failures: 0 }])
  })

  test("accepts no invalid passkey, whatever takes its place", async () => {
    const response = { clientDataJSON: "x", authenticatorData: "x", signature: "x" }
    const assertion = { id: "x", rawId: "x", type: "public-key", clientExtensionResults: {}, response }
    const { challengeId } = (await new Visitor(app).request("POST", "/api/sign-in/passkey/options", {}, from("198.51.100.20"))).json
    for (const answer of [
      {},
      { challengeId, response: {} },
      { challengeId, response: { ...assertion, id: "\u0000" } },
      { challengeId: "\u0000", response: assertion },
      { challengeId, response: assertion }
    ]) {
      const refused = await new Visitor(app).request("POST", "/api/sign-in/passkey", answer, from("198.51.100.20"))
      expect([refused.status, refused.json.code]).toEqual([403, "second_factor_failed"])
    }
  })

  test("can be one of at most fifty passkeys, also if some are added at once", async () => {
    await app.feed([user("user_p", "org_a", ["vault_a"])])
    const visitor = await signedIn(app, "user_p")
    await app.sql(`
      INSERT INTO portal_passkeys (id, user_id, name, credential_id, public_key, counter, transports)
      SELECT 'psk_' || n, 'user_p', 'Passkey', 'credential_' || n, '', 0, '{}' FROM generate_series(1, 48) n`)
    const options = () => visitor.request("POST", "/api/passkeys/options", { confirmation: { code: visitor.backupCode() } })
    const begun = await Promise.all([options(), options(), options()])
    const added = await Promise.all(
      begun.map(({ json }) =>
        visitor.request("POST", "/api/passkeys", { name: "New", answer: new BrowserPasskey(visitor.origin).created(json) })
      )
    )
    expect(added.map(({ json, status }) => `${status} ${json.code ?? ""}`).sort()).toEqual(["200 ", "200 ", "409 passkey_limit_reached"])
    const refused = await options()
    expect([refused.status, refused.json.code]).toEqual([409, "passkey_limit_reached"])
    expect((await visitor.get("/api/passkeys")).json.data).toHaveLength(50)
    // Removing one ends all other sessions, which it may have begun.
    await app.sql(`
      INSERT INTO portal_sessions (id, user_id, token, expires_at, second_factor_at)
      VALUES ('session_other', 'user_p', 'token_other', now() + interval '1 hour', now())`)
    expect((await visitor.get("/api/sessions")).json.data).toHaveLength(2)
    expect((await visitor.request("DELETE", "/api/passkeys/psk_1", {})).status).toBe(200)
    expect((await visitor.get("/api/sessions")).json.data).toMatchObject([{ current: true }])
    expect((await options()).status).toBe(200)
  })

  test("backup codes work once each, and new ones replace them", async () => {
    const renewed = await known.request("POST", "/api/backup-codes", { confirmation: { code: await known.code() } })
    const [one, two] = renewed.json.backupCodes
    const enter = async (code: string) => {
      const half = new Visitor(app)
      await half.request("POST", "/api/sign-in", { email: "user_b@example.com", password: PASSWORD }, from("198.51.100.10"))
      return (await half.request("POST", "/api/sign-in/second-factor", { code })).status
    }
    expect(await enter(one.toUpperCase())).toBe(200)
    const [begun, used] = await app.sql("SELECT action, changes FROM audit_log WHERE user_id = 'user_b' ORDER BY at DESC, id DESC LIMIT 2")
    expect([begun?.["action"], JSON.parse(String(begun?.["changes"]))]).toEqual([
      "account.signed_in",
      { secondFactor: { old: null, new: "backup_code" } }
    ])
    expect(used?.["action"]).toBe("account.backup_code_used")
    expect(await enter(one)).toBe(403)
    expect((await known.get("/api/backup-codes")).json.left).toBe(9)
    const replaced = await known.request("POST", "/api/backup-codes", { confirmation: { code: two } })
    known.backupCodes.splice(0, known.backupCodes.length, ...replaced.json.backupCodes)
    expect(await enter(renewed.json.backupCodes[2])).toBe(403)
  })
})

describe("a password", () => {
  test("changes with the current one and a fresh confirmation, and then ends every other session", async () => {
    const other = new Visitor(app)
    await app.sql("UPDATE portal_second_factors SET last_step = 0, failures = 0, locked_until = NULL")
    const renewed = await known.request("POST", "/api/backup-codes", { confirmation: { code: known.backupCode() } })
    const [one, two, three] = renewed.json.backupCodes
    await other.request("POST", "/api/sign-in", { email: "user_b@example.com", password: PASSWORD }, from("198.51.100.11"))
    await other.request("POST", "/api/sign-in/second-factor", { code: one })
    const change = (current: string, code: string) =>
      known.request("POST", "/api/password", { current, next: "a wholly new password", confirmation: { code } })
    const wrong = await change("not the password", two)
    expect([wrong.status, wrong.json.errors[0].field]).toEqual([400, "current"])
    expect((await change(PASSWORD, three)).status).toBe(200)
    expect([await known.state(), await other.state()]).toEqual(["signed_in", "signed_out"])
    expect((await signIn("user_b@example.com", "a wholly new password", "198.51.100.12")).status).toBe(200)
  })
})

describe("a forgotten password", () => {
  test("is no request of a service without a mail server, which names the operator's command", async () => {
    expect((await new Visitor(app).get("/api/session")).json.resetsPasswords).toBe(false)
    const body = { email: "user_b@example.com" }
    const refused = await new Visitor(app).request("POST", "/api/password-reset/request", body, from("198.51.100.13"))
    expect([refused.status, refused.json.code]).toEqual([409, "password_reset_refused"])
    expect(refused.json.detail).toContain("custody users invite <user id> --reset")
  })
})

describe("an idle session", () => {
  test("ends after an hour without its user, whatever its pages request by themselves", async () => {
    const idle = async () => {
      const [row] = await app.sql(
        "SELECT max(last_seen_at) < now() - interval '30 minutes' AS idle FROM portal_sessions WHERE user_id = 'user_b'"
      )
      return row?.["idle"]
    }
    await app.sql("UPDATE portal_sessions SET last_seen_at = now() - interval '59 minutes' WHERE user_id = 'user_b'")
    expect([await known.state(), await idle()]).toEqual(["signed_in", true])
    await known.request("GET", "/api/session", undefined, { "x-portal-active": "1" })
    expect([await known.state(), await idle()]).toEqual(["signed_in", false])
    await app.sql("UPDATE portal_sessions SET last_seen_at = now() - interval '61 minutes' WHERE user_id = 'user_b'")
    expect(await known.state()).toBe("signed_out")
  })
})
