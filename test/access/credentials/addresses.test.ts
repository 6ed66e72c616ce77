import { beforeAll, describe, expect, test } from "bun:test"
import * as os from "node:os"
import { type Process, useApp } from "../../support/app.ts"
import { rawGet } from "../../support/raw.ts"
import { until } from "../../support/receiver.ts"
import { smallest } from "../../support/records.ts"

/** The public API of `app` trusts no proxy; `behind` trusts proxies on loopback and in 10/8. */
const app = useApp()
let behind: Process
const hasIpv6 = Object.values(os.networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === "::1"))

beforeAll(async () => {
  await app.feed(smallest())
  behind = await app.start(["api"], { TRUSTED_PROXIES: "127.0.0.0/8, ::1, 10.0.0.0/8, 2001:db8:aaaa::/48" })
})

const keyFor = async (...ipAllowlist: ReadonlyArray<string>) => (await app.key("user_a", { ipAllowlist })).secret
const ask = async (baseUrl: string, key: string, ...lines: ReadonlyArray<string>) =>
  (await rawGet(baseUrl, "/v1/networks", { key, lines })).status

/** Headers in which proxies and CDNs pass on the client's address. */
const names = [
  "X-Forwarded-For",
  "Forwarded",
  "X-Real-IP",
  "X-Client-IP",
  "Client-IP",
  "True-Client-IP",
  "CF-Connecting-IP",
  "Fastly-Client-IP",
  "X-Cluster-Client-IP",
  "X-Originating-IP",
  "X-Remote-Addr",
  "X-Forwarded",
  "Forwarded-For"
]

describe("the client address", () => {
  test("without TRUSTED_PROXIES no header determines the client address", async () => {
    const outside = await keyFor("203.0.113.0/24")
    const inside = await keyFor("127.0.0.1")
    for (const name of names) {
      const value = name === "Forwarded" ? "for=203.0.113.7" : "203.0.113.7"
      expect([name, await ask(app.main?.baseUrl ?? "", outside, `${name}: ${value}`)]).toEqual([name, 403])
      expect([name, await ask(app.main?.baseUrl ?? "", inside, `${name}: ${value}`)]).toEqual([name, 200])
    }
  })

  test("a private address outside TRUSTED_PROXIES that sends X-Forwarded-For is logged once", async () => {
    const key = await keyFor()
    const warnings = ({ output }: Process) =>
      output()
        .split("\n")
        .filter((line) => line.includes("not in TRUSTED_PROXIES")).length
    const [nobody, trusting] = await Promise.all([app.start(["api"]), app.start(["api"], { TRUSTED_PROXIES: "127.0.0.1/32" })])
    for (const { baseUrl } of [nobody, trusting]) {
      for (const line of ["X-Other: 1", "X-Forwarded-For: 203.0.113.7", "X-Forwarded-For: 203.0.113.8"])
        expect(await ask(baseUrl, key, line)).toBe(200)
    }
    await until("the line", () => warnings(nobody) > 0)
    expect([warnings(nobody), warnings(trusting)]).toEqual([1, 0])
  })

  test("from a trusted proxy X-Forwarded-For determines the client address, and no other header does", async () => {
    const key = await keyFor("203.0.113.0/24")
    expect(await ask(behind.baseUrl, key)).toBe(403)
    for (const name of names) {
      const value = name === "Forwarded" ? "for=203.0.113.7" : "203.0.113.7"
      expect([name, await ask(behind.baseUrl, key, `${name}: ${value}`)]).toEqual([name, name === "X-Forwarded-For" ? 200 : 403])
    }
  })

  test("X-Forwarded-For is read from the right, and entries beyond the client are ignored", async () => {
    const key = await keyFor("203.0.113.0/24")
    for (const [lines, status] of [
      [["X-Forwarded-For: 203.0.113.7, 198.51.100.1"], 403],
      [["X-Forwarded-For: 198.51.100.1, 203.0.113.7"], 200],
      [["X-Forwarded-For: 198.51.100.1, 203.0.113.7, 10.1.2.3"], 200],
      [["X-Forwarded-For: 203.0.113.7, 198.51.100.1, 10.1.2.3"], 403],
      [["X-Forwarded-For: 203.0.113.7", "X-Forwarded-For: 198.51.100.1"], 403],
      [["X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 203.0.113.7"], 200],
      [["X-Forwarded-For: 203.0.113.7, unknown"], 403],
      [["X-Forwarded-For: 203.0.113.7,"], 403],
      [["X-Forwarded-For: ::ffff:203.0.113.7"], 200],
      [["X-Forwarded-For: 203.0.113.7:4711"], 200],
      [["X-Forwarded-For: 203.0.113.7garbage"], 403]
    ] as const) {
      expect([lines, await ask(behind.baseUrl, key, ...lines)]).toEqual([lines, status])
    }
  })

  test("IP allowlists take IPv4 and IPv6 ranges, from /0 to a single address", async () => {
    for (const [range, caller, status] of [
      ["2001:db8::/32", "2001:db8:0:1::7", 200],
      ["2001:db8::/32", "2001:db9::7", 403],
      ["2001:db8::7/128", "2001:db8::7", 200],
      ["2001:db8::7/128", "2001:db8::8", 403],
      ["2001:db8::7", "[2001:db8::7]:4711", 200],
      ["::/0", "2001:db9::7", 200],
      ["::/0", "203.0.113.7", 403],
      ["0.0.0.0/0", "203.0.113.7", 200],
      ["0.0.0.0/0", "2001:db8::7", 403],
      ["203.0.113.7/32", "203.0.113.7", 200],
      ["203.0.113.7/32", "203.0.113.8", 403],
      ["203.0.113.128/25", "203.0.113.127", 403],
      ["203.0.113.128/25", "203.0.113.128", 200],
      ["::ffff:203.0.113.0/120", "203.0.113.7", 200]
    ] as const) {
      const line = `X-Forwarded-For: ${caller}`
      expect([range, caller, await ask(behind.baseUrl, await keyFor(range), line)]).toEqual([range, caller, status])
    }
  })

  test("a refusal names the client's address in its own family", async () => {
    const key = await keyFor("192.0.2.1")
    for (const [caller, shown] of [
      ["203.0.113.7", "203.0.113.7"],
      ["::ffff:203.0.113.7", "203.0.113.7"],
      ["2001:DB8:0:0::7", "2001:db8::7"]
    ] as const) {
      const { body } = await rawGet(behind.baseUrl, "/v1/networks", { key, lines: [`X-Forwarded-For: ${caller}`] })
      expect(JSON.parse(body).detail).toBe(`The API key is not allowed from ${shown}.`)
    }
  })

  test.skipIf(!hasIpv6)("a dual-stack listener sees an IPv4 client as IPv4 and an IPv6 client as IPv6", async () => {
    const both = await app.start(["api"], { HOST: "::" })
    const port = both.baseUrl.split(":").at(-1)
    const [v4, v6] = [await keyFor("127.0.0.1"), await keyFor("::1")]
    expect(await ask(`http://127.0.0.1:${port}`, v4)).toBe(200)
    expect(await ask(`http://127.0.0.1:${port}`, v6)).toBe(403)
    const to6 = (key: string) => fetch(`http://[::1]:${port}/v1/networks`, { headers: { authorization: `Bearer ${key}` } })
    expect((await to6(v6)).status).toBe(200)
    expect((await to6(v4)).status).toBe(403)
  })
})
