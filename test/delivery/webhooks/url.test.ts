/**
 * URL rules at creation and update. A name's addresses are checked when something is sent; these tests check what the text
 * alone shows. Decision D-30; reliability T1.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import { Either } from "effect"
import fc from "fast-check"
import ipaddr from "ipaddr.js"
import { isAllowed } from "../../../src/delivery/sending/request/ssrfGuard.ts"
import { check } from "../../../src/delivery/webhooks/url.ts"
import * as Format from "../../../src/runtime/settings/Format.ts"
import { useApi } from "../../support/api.ts"
import { smallest } from "../../support/records.ts"
import { spellings } from "../../support/spellings.ts"
import { names, targets, vectors } from "../../support/ssrf.ts"
import { create, patch, tryCreate } from "../../support/webhookFixtures.ts"

const app = useApi()
let key = ""

beforeAll(async () => {
  await app.feed(smallest())
  key = (await app.key("user_a")).secret
})

const long = (length: number) => `https://hooks.example.com/${"a".repeat(length - "https://hooks.example.com/".length)}`

/** Accepted URLs, and their stored form. */
const taken: ReadonlyArray<readonly [string, string]> = [
  ["https://hooks.example.com/custody", "https://hooks.example.com/custody"],
  ["https://hooks.example.com", "https://hooks.example.com/"],
  ["HTTPS://Hooks.Example.COM/Custody", "https://hooks.example.com/Custody"],
  ["https://hooks.example.com:443/a", "https://hooks.example.com/a"],
  ["https://hooks.example.com:8443/a", "https://hooks.example.com:8443/a"],
  ["https://hooks.example.com/a?token=b%20c&d", "https://hooks.example.com/a?token=b%20c&d"],
  ["https://hooks.example.com/@/a", "https://hooks.example.com/@/a"],
  ["https://my_hooks.example.com/", "https://my_hooks.example.com/"],
  ["https://bücher.example/", "https://xn--bcher-kva.example/"],
  ["https://127-0-0-1.example.com/", "https://127-0-0-1.example.com/"],
  ["https://1.example.com/", "https://1.example.com/"],
  [long(2_048), long(2_048)]
]

/** The response to every URL; for an accepted one, its stored form. */
const answers: ReadonlyArray<readonly [string, string]> = [
  ...taken,
  ...names.map(({ host }) => [`https://${host}/`, `https://${host}/`] as const),
  ...vectors.map(({ answer, url }) => [url, answer] as const)
]

describe("Webhook: URL must be HTTPS", () => {
  test("the corpus has at least 400 URLs, and each spells an address", () => {
    expect(vectors.length).toBeGreaterThanOrEqual(400)
    for (const address of targets) {
      for (const [trick, host] of spellings(address)) {
        const { hostname } = new URL(`https://${host}/`)
        if (!host.startsWith("[")) expect([trick, hostname]).toEqual([trick, address])
      }
    }
  })

  test("every hostname of the corpus resolves to an address that nothing is sent to", () => {
    for (const { answers, host } of names) {
      const judged = answers.map((text) => isAllowed(ipaddr.parse(text), { allow: [], own: new Set() }))
      expect([host, judged.includes(false)]).toEqual([host, true])
    }
  })

  test(`at creation, ${vectors.length} URLs are refused and ${names.length} names accepted, and nothing refused is stored`, async () => {
    for (const [url, expected] of answers) {
      const answer = await tryCreate(app, key, { url, status: "DISABLED" })
      expect([url, answer.status === 201 ? answer.json.url : `${answer.status} ${answer.json.code}`]).toEqual([url, expected])
      if (answer.status !== 201) expect(answer.json.errors).toEqual([expect.objectContaining({ in: "body", field: "url" })])
      else await app.request("DELETE", `/v1/webhooks/${answer.json.id}`, { key })
    }
    expect(await app.sql("SELECT 1 FROM webhooks")).toEqual([])
  })

  test("at update, the same URLs are refused, and nothing refused is stored", async () => {
    const { id, url: first } = await create(app, key, { url: "https://first.example.com/" })
    let stored = first
    for (const [index, [url, expected]] of answers.entries()) {
      const answer = await patch(app, key, id, { url })
      expect([url, answer.status === 200 ? answer.json.url : `${answer.status} ${answer.json.code}`]).toEqual([url, expected])
      if (answer.status === 200) stored = answer.json.url
      // What was stored although it was refused would still be there: the next URL is refused, too.
      if (index % 10 === 0 || index === answers.length - 1) expect((await app.get(`/v1/webhooks/${id}`, key)).json.url).toBe(stored)
    }
  })

  test("a URL that is not a string is refused", async () => {
    for (const url of [null, 1, true, [], {}, ["https://hooks.example.com/"]]) {
      expect(await tryCreate(app, key, { url })).toMatchObject({ status: 400, json: { code: "invalid_body" } })
    }
  })
})

const nothing = { cidrs: [], ports: [] }

/** Private and special IPv4 addresses. */
const inside = fc.oneof(
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "240.0.0.0/4"].map(
    (text) => {
      const [base = "", bits = ""] = text.split("/")
      const first = base.split(".").reduce((sum, part) => sum * 256 + Number(part), 0)
      return fc.integer({ min: first, max: first + 2 ** (32 - Number(bits)) - 1 })
    }
  )
)

const digits = ["⓪①②③④⑤⑥⑦⑧⑨", "０１２３４５６７８９", "0123456789"]
const dots = [".", "。", "．", "｡", "%2e", "%2E"]

/** One number in the spellings of a URL: decimal, hexadecimal or octal, with leading zeros, in other digits, percent-encoded. */
const spelled = (value: number) =>
  fc
    .record({
      base: fc.constantFrom(10, 16, 8),
      zeros: fc.integer({ min: 0, max: 4 }),
      upper: fc.boolean(),
      alphabet: fc.constantFrom(...digits),
      encode: fc.boolean()
    })
    .map(({ alphabet, base, encode, upper, zeros }) => {
      const plain =
        base === 16
          ? `0x${"0".repeat(zeros)}${value.toString(16)}`
          : base === 8
            ? `0${"0".repeat(zeros)}${value.toString(8)}`
            : String(value)
      const cased = upper ? plain.toUpperCase() : plain
      if (encode) return [...cased].map((char) => `%${char.charCodeAt(0).toString(16)}`).join("")
      return [...cased].map((char) => (/\d/.test(char) ? ([...alphabet][Number(char)] ?? char) : char)).join("")
    })

/** The parts of an address as a URL may group them: four bytes, or fewer parts of which the last contains the rest. */
const partsOf = (address: number, count: number): ReadonlyArray<number> => {
  const bytes = [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256)
  return [...bytes.slice(0, count - 1), bytes.slice(count - 1).reduce((sum, byte) => sum * 256 + byte, 0)]
}

const encodings = fc
  .tuple(inside, fc.integer({ min: 1, max: 4 }), fc.constantFrom(...dots), fc.boolean())
  .chain(([address, count, dot, trailing]) =>
    fc.tuple(...partsOf(address, count).map(spelled)).map((parts) => `https://${parts.join(dot)}${trailing ? "." : ""}/`)
  )

const encodings6 = fc
  .tuple(inside, fc.constantFrom("::ffff:", "::", "64:ff9b::", "0:0:0:0:0:ffff:", "2002:"), fc.boolean())
  .map(([address, prefix, dotted]) => {
    const parts = partsOf(address, 4)
    const hex = [0, 2].map((at) => ((parts[at] ?? 0) * 256 + (parts[at + 1] ?? 0)).toString(16)).join(":")
    return `https://[${prefix === "2002:" ? `2002:${hex}::` : `${prefix}${dotted ? parts.join(".") : hex}`}]/`
  })

describe("encodings of private addresses", () => {
  test("IPv4 in any base, grouping and script", () => {
    let parsed = 0
    fc.assert(
      fc.property(encodings, (url) => {
        if (URL.canParse(url)) parsed++
        expect(Either.isLeft(check(url, nothing))).toBe(true)
      }),
      { numRuns: 5_000 }
    )
    // The generator makes addresses, not noise.
    expect(parsed).toBeGreaterThan(4_000)
  })

  test("IPv4 inside IPv6", () => {
    fc.assert(
      fc.property(encodings6, (url) => {
        expect(URL.canParse(url)).toBe(true)
        expect(Either.getLeft(check(url, nothing))).toMatchObject({ _tag: "Some", value: { code: "url_not_deliverable" } })
      }),
      { numRuns: 1_000 }
    )
  })

  test("an accepted URL names a dotted host over https, on an allowed port", () => {
    const pieces = fc.oneof(
      fc.constantFrom(
        "https://",
        "@",
        ":",
        "/",
        ".",
        "#",
        "?",
        "\\",
        "[",
        "]",
        "%2e",
        "localhost",
        "127.0.0.1",
        "example.com",
        ":8443",
        "0x7f"
      ),
      fc.string({ maxLength: 4 })
    )
    const texts = fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join(""))
    let taken = 0
    fc.assert(
      fc.property(
        fc.oneof(
          texts,
          texts.map((text) => `https://${text}`),
          texts.map((text) => `https://example.com${text}`)
        ),
        (text) => {
          Either.match(check(text, nothing), {
            onLeft: () => {},
            onRight: (href) => {
              taken++
              const url = new URL(href)
              expect([url.protocol, url.username, url.password, url.hash]).toEqual(["https:", "", "", ""])
              expect(["", "8443"]).toContain(url.port)
              expect(url.hostname).toMatch(/^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/)
              expect(Format.address(url.hostname)).toBeUndefined()
              // The stored form is judged like the given one.
              expect(check(href, nothing)).toEqual(Either.right(href))
            }
          })
        }
      ),
      { numRuns: 20_000 }
    )
    expect(taken).toBeGreaterThan(500)
  })
})

describe("addresses and ports that an operator can allow", () => {
  const cidrs = Either.getOrThrow(Format.cidrs("127.0.0.0/8,fd00::/8"))

  test("an address literal inside WEBHOOK_ALLOW_CIDRS is accepted, and no other", () => {
    const taken = (url: string) => Either.isRight(check(url, { cidrs, ports: [9443] }))
    for (const url of ["https://127.0.0.1/", "https://127.1:9443/", "https://[fd00::1]/", "https://[::ffff:127.0.0.1]/"])
      expect([url, taken(url)]).toEqual([url, true])
    for (const url of ["https://128.0.0.1/", "https://10.0.0.1/", "https://[::1]/", "https://8.8.8.8/"])
      expect([url, taken(url)]).toEqual([url, false])
  })

  test("localhost is accepted if the ranges cover it, other single labels never", () => {
    expect(Either.isRight(check("https://localhost/", { cidrs, ports: [] }))).toBe(true)
    expect(Either.isRight(check("https://localhost/", { cidrs: Either.getOrThrow(Format.cidrs("10.0.0.0/8")), ports: [] }))).toBe(false)
    expect(Either.isRight(check("https://localhost./", { cidrs, ports: [] }))).toBe(false)
    expect(Either.isRight(check("https://metadata/", { cidrs, ports: [] }))).toBe(false)
  })

  test("WEBHOOK_ALLOW_PORTS adds ports to 443 and 8443", () => {
    const taken = (port: number) => Either.isRight(check(`https://hooks.example.com:${port}/`, { cidrs: [], ports: [9443] }))
    expect([443, 8443, 9443, 80, 9444].map(taken)).toEqual([true, true, true, false, false])
  })

  test("a refusal names each allowed port once", () => {
    const refused = check("https://hooks.example.com:80/", { cidrs: [], ports: [8443, 9443, 9443] })
    expect(Either.flip(refused)).toEqual(Either.right({ code: "url_not_deliverable", detail: "must use port 443 or 8443 or 9443" }))
  })
})
