import { beforeAll, describe, expect, test } from "bun:test"
import { Effect } from "effect"
import { ApiKeys } from "../../../src/access/keys/ApiKeys.ts"
import { type Process, patiently, useApp } from "../../support/app.ts"
import { smallest } from "../../support/records.ts"

/** One token a minute and a burst of six: no token returns during a test. The proxy setting lets tests call from many addresses. */
const app = useApp(["api"], { RATE_LIMIT: "1/1m burst 6", TRUSTED_PROXIES: "127.0.0.0/8" })

beforeAll(() => app.feed(smallest()))

const fresh = async () => (await app.key("user_a")).secret
const from = (address: string) => ({ "x-forwarded-for": address })
const bad = (address: string, key = `cds_${"0".repeat(49)}`) => app.get("/v1/networks", key, from(address))

describe("the rate limit", () => {
  test("every authenticated response, successful or not, carries RateLimit-Policy and RateLimit, which count down", async () => {
    const key = await fresh()
    const paths = ["/v1/networks", "/v1/vaults/vault_none", "/v1/nothing", "/v1/vaults?limit=0"]
    const begun = performance.now()
    for (const [index, path] of paths.entries()) {
      const { headers } = await app.get(path, key)
      expect(headers.get("ratelimit-policy")).toBe('"key";q=6;w=360')
      const [, left, seconds] = /^"key";r=(\d+);t=(\d+)$/.exec(headers.get("ratelimit") ?? "") ?? []
      expect(Number(left)).toBe(5 - index)
      // Less by the time since the first request, which is long on a busy machine.
      expect(Number(seconds)).toBeLessThanOrEqual(60 * (index + 1))
      expect(Number(seconds)).toBeGreaterThanOrEqual(60 * (index + 1) - Math.ceil((performance.now() - begun) / 1_000))
    }
  })

  test("unauthenticated requests and public documents carry no rate-limit headers", async () => {
    for (const path of ["/v1/networks", "/v1/openapi.json"]) {
      const { headers } = await app.get(path)
      expect([headers.get("ratelimit-policy"), headers.get("ratelimit")]).toEqual([null, null])
    }
  })

  test("a request past the burst gets 429 with Retry-After, and succeeds after that time", async () => {
    const key = await fresh()
    const quick = await app.start(["api"], { RATE_LIMIT: "1/3s burst 6" })
    const ask = () => fetch(`${quick.baseUrl}/v1/networks`, { headers: { authorization: `Bearer ${key}` } })
    const begun = performance.now()
    const burst = await Promise.all(Array.from({ length: 12 }, ask))
    // On a machine that is busy for longer than a token takes to return, that one is seen, too.
    const back = Math.floor((performance.now() - begun) / 3_000)
    const passed = burst.filter(({ status }) => status === 200).length
    expect(passed).toBeGreaterThanOrEqual(6)
    expect(passed).toBeLessThanOrEqual(6 + back)
    const refused = burst.find(({ status }) => status === 429)
    expect(JSON.parse((await refused?.text()) ?? "{}").code).toBe("rate_limited")
    expect(refused?.headers.get("content-type")).toBe("application/problem+json")
    expect(refused?.headers.get("ratelimit")).toStartWith('"key";r=0;t=')
    expect(refused?.headers.get("ratelimit-policy")).toBe('"key";q=6;w=18')
    const wait = Number(refused?.headers.get("retry-after"))
    expect(wait).toBeGreaterThanOrEqual(1)
    expect(wait).toBeLessThanOrEqual(3)
    await Bun.sleep(wait * 1_000)
    expect((await ask()).status).toBe(200)
  })

  test("the limit is per key: an exhausted key does not affect another", async () => {
    const [one, other] = [await fresh(), await fresh()]
    await Promise.all(Array.from({ length: 8 }, () => app.get("/v1/networks", one)))
    expect((await app.get("/v1/networks", one)).status).toBe(429)
    expect((await app.get("/v1/networks", other)).status).toBe(200)
  })

  test("RATE_LIMIT=off sends no headers and limits nothing", async () => {
    const off = await app.start(["api"], { RATE_LIMIT: "off" })
    const key = await fresh()
    const answers = await Promise.all(
      Array.from({ length: 40 }, () =>
        // A few run at a time, and one that waits for a second is refused with 503.
        patiently(() => fetch(`${off.baseUrl}/v1/networks`, { headers: { authorization: `Bearer ${key}` } }))
      )
    )
    for (const { headers, status } of answers)
      expect([status, headers.get("ratelimit"), headers.get("ratelimit-policy")]).toEqual([200, null, null])
  })

  test("the default is 50 requests a second with a burst of 100", async () => {
    const usual: Process = await app.start(["api"], { RATE_LIMIT: "" })
    const answer = await fetch(`${usual.baseUrl}/v1/networks`, { headers: { authorization: `Bearer ${await fresh()}` } })
    expect(answer.headers.get("ratelimit-policy")).toBe('"key";q=100;w=2')
    expect(answer.headers.get("ratelimit")).toStartWith('"key";r=99;')
  })
})

describe("30 failed authentications in an hour from one address", () => {
  test("get 401, and the next request gets 429 for 15 minutes, whatever its key", async () => {
    const key = await fresh()
    for (let count = 1; count <= 30; count++) {
      const answer = await bad("198.51.100.1")
      expect([count, answer.status, answer.json.code]).toEqual([count, 401, "invalid_api_key"])
    }
    for (const answer of [
      await bad("198.51.100.1"),
      await app.get("/v1/networks", key, from("198.51.100.1")),
      await app.get("/v1/nothing", undefined, from("198.51.100.1"))
    ]) {
      expect([answer.status, answer.json.code]).toEqual([429, "too_many_failed_auth"])
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(890)
      expect(Number(answer.headers.get("retry-after"))).toBeLessThanOrEqual(900)
    }
    expect((await app.get("/v1/networks", key, from("198.51.100.2"))).status).toBe(200)
  })

  test("include well-formed secrets that match no key, and exclude requests without a key", async () => {
    const unknown = (await app.key("user_a")).secret
    await app.sql("DELETE FROM api_keys")
    for (let count = 0; count < 30; count++) await bad("198.51.100.3", unknown)
    expect((await bad("198.51.100.3")).status).toBe(429)
    for (let count = 0; count < 35; count++) {
      expect((await app.get("/v1/networks", undefined, from("198.51.100.4"))).json.code).toBe("missing_credentials")
    }
  })

  test("with an expired, revoked or disallowed key block that key there and no other", async () => {
    const valid = await fresh()
    const expired = (await app.key("user_a", { expiresAt: "2020-01-01T00:00:00Z" })).secret
    const elsewhere = (await app.key("user_a", { ipAllowlist: ["192.0.2.0/24"] })).secret
    const revoked = await app.key("user_a")
    await app.run(Effect.flatMap(ApiKeys, (keys) => keys.revoke(revoked.key.id)))
    for (const [address, secret, code] of [
      ["198.51.100.5", expired, "expired_api_key"],
      ["198.51.100.6", revoked.secret, "revoked_api_key"],
      ["198.51.100.7", elsewhere, "ip_not_allowed"]
    ] as const) {
      for (let count = 1; count <= 30; count++) {
        expect([count, (await app.get("/v1/networks", secret, from(address))).json.code]).toEqual([count, code])
      }
      const answer = await app.get("/v1/networks", secret, from(address))
      expect([answer.json.code, Number(answer.headers.get("retry-after")) > 890]).toEqual(["too_many_failed_auth", true])
      expect((await app.get("/v1/networks", valid, from(address))).status).toBe(200)
      expect((await app.get("/v1/networks", secret, from("198.51.100.9"))).json.code).toBe(code)
    }
  })

  test("are counted together for clients whose address a trusted proxy does not report", async () => {
    const key = await fresh()
    const hops = ["unknown", "_hidden", "not an address"]
    for (let count = 1; count <= 30; count++) {
      expect([count, (await bad(hops[count % 3] ?? "")).json.code]).toEqual([count, "invalid_api_key"])
    }
    for (const hop of hops) expect((await bad(hop)).json.code).toBe("too_many_failed_auth")
    expect((await app.get("/v1/networks", key, from("198.51.100.8"))).status).toBe(200)
  })

  test("are counted for an IPv6 client's /64, and for the socket's address behind untrusted headers", async () => {
    for (let count = 0; count < 30; count++) await bad(`2001:db8:0:1::${count + 1}`)
    expect((await bad("2001:db8:0:1:ffff::1")).status).toBe(429)
    expect((await bad("2001:db8:0:2::1")).status).toBe(401)
    const direct = await app.start(["api"], { TRUSTED_PROXIES: "" })
    let last = 0
    for (let count = 0; count < 31; count++) {
      const headers = { authorization: "Bearer nonsense", "x-forwarded-for": `192.0.2.${count}` }
      last = (await fetch(`${direct.baseUrl}/v1/networks`, { headers })).status
    }
    expect(last).toBe(429)
  })
})
