/**
 * URL rules at creation and update. What a name resolves to is judged when something is sent; here it is what can be
 * told from the text. Decision D-30; reliability T1.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import { Either } from "effect"
import fc from "fast-check"
import * as Format from "../../src/settings/Format.ts"
import { check } from "../../src/webhooks/url.ts"
import { useApp } from "../support/app.ts"
import { smallest } from "../support/records.ts"
import { create, patch, tryCreate } from "./verbs.ts"

const app = useApp()
let key = ""

beforeAll(async () => {
  await app.feed(smallest())
  key = (await app.key("user_a")).secret
}, 60_000)

const MALFORMED = "400 invalid_body",
  REFUSED = "422 url_not_deliverable"
const long = (length: number) => `https://hooks.example.com/${"a".repeat(length - "https://hooks.example.com/".length)}`

/** What a URL is answered; for one that is taken, what is stored of it. */
const vectors: ReadonlyArray<readonly [string, string]> = [
  // Taken.
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
  [long(2_048), long(2_048)],
  // Not a URL by its form.
  ["", MALFORMED],
  ["hooks.example.com/custody", MALFORMED],
  ["//hooks.example.com/custody", MALFORMED],
  ["http://hooks.example.com/", MALFORMED],
  ["http://hooks.example.com:443/", MALFORMED],
  ["ftp://hooks.example.com/", MALFORMED],
  ["file:///etc/passwd", MALFORMED],
  ["javascript:alert(1)", MALFORMED],
  ["data:text/plain,a", MALFORMED],
  ["gopher://127.0.0.1:6379/_PING", MALFORMED],
  ["wss://hooks.example.com/", MALFORMED],
  ["blob:https://hooks.example.com/a", MALFORMED],
  ["https:hooks.example.com/", MALFORMED],
  ["https:/hooks.example.com/", MALFORMED],
  ["https:///hooks.example.com/", MALFORMED],
  ["https://", MALFORMED],
  ["https:\\\\hooks.example.com\\", MALFORMED],
  ["https://hooks.example.com\\@127.0.0.1/", MALFORMED],
  [" https://hooks.example.com/", MALFORMED],
  ["https://hooks.example.com/ a", MALFORMED],
  ["https://hooks.exa\nmple.com/", MALFORMED],
  ["https://hooks.example.com/\t", MALFORMED],
  ["https://hooks.example.com/\u0000", MALFORMED],
  ["https://hooks.exam\u200bple.com/", MALFORMED],
  ["https://hooks.exam\u00adple.com/", MALFORMED],
  ["https://hooks.example.com/\u202egnp", MALFORMED],
  ["https://user@hooks.example.com/", MALFORMED],
  ["https://user:word@hooks.example.com/", MALFORMED],
  ["https://@hooks.example.com/", MALFORMED],
  ["https://:@hooks.example.com/", MALFORMED],
  ["https://hooks.example.com@127.0.0.1/", MALFORMED],
  ["https://127.0.0.1@hooks.example.com/", MALFORMED],
  ["https://hooks.example.com/#a", MALFORMED],
  ["https://hooks.example.com/#", MALFORMED],
  ["https://127.0.0.1#@hooks.example.com/", MALFORMED],
  ["https://hooks.example.com./", MALFORMED],
  ["https://localhost./", MALFORMED],
  ["https://hooks..example.com/", MALFORMED],
  ["https://.example.com/", MALFORMED],
  ["https://-hooks.example.com/", MALFORMED],
  [`https://${"a".repeat(64)}.example.com/`, MALFORMED],
  [`https://${"a.".repeat(130)}com/`, MALFORMED],
  ["https://exa$mple.com/", MALFORMED],
  ["https://hooks.example.com:65536/", MALFORMED],
  ["https://hooks.example.com:-1/", MALFORMED],
  ["https://256.256.256.256/", MALFORMED],
  ["https://1.2.3.4.5/", MALFORMED],
  ["https://[::1/", MALFORMED],
  ["https://[fe80::1%25eth0]/", MALFORMED],
  [long(2_049), MALFORMED],
  // An address in one of its spellings.
  ["https://127.0.0.1/", REFUSED],
  ["https://127.0.0.1:8443/", REFUSED],
  ["https://127.1/", REFUSED],
  ["https://0x7f.1/", REFUSED],
  ["https://0x7f000001/", REFUSED],
  ["https://0X7F.0X0.0X0.0X1/", REFUSED],
  ["https://0177.0.0.1/", REFUSED],
  ["https://017700000001/", REFUSED],
  ["https://2130706433/", REFUSED],
  ["https://①②⑦.⓪.⓪.①/", REFUSED],
  ["https://１２７.０.０.１/", REFUSED],
  ["https://127。0。0。1/", REFUSED],
  ["https://%31%32%37.0.0.1/", REFUSED],
  ["https://127%2e0%2e0%2e1/", REFUSED],
  ["https://127.0.0.1./", REFUSED],
  ["https://0/", REFUSED],
  ["https://0.0.0.0/", REFUSED],
  ["https://10.0.0.1/", REFUSED],
  ["https://100.64.0.1/", REFUSED],
  ["https://169.254.169.254/latest/meta-data/", REFUSED],
  ["https://2852039166/latest/meta-data/", REFUSED],
  ["https://172.16.0.1/", REFUSED],
  ["https://192.168.1.1/", REFUSED],
  ["https://168.63.129.16/", REFUSED],
  ["https://255.255.255.255/", REFUSED],
  ["https://8.8.8.8/", REFUSED],
  ["https://[::]/", REFUSED],
  ["https://[::1]/", REFUSED],
  ["https://[0:0:0:0:0:0:0:1]/", REFUSED],
  ["https://[::ffff:127.0.0.1]/", REFUSED],
  ["https://[::ffff:7f00:1]/", REFUSED],
  ["https://[::127.0.0.1]/", REFUSED],
  ["https://[64:ff9b::7f00:1]/", REFUSED],
  ["https://[2002:7f00:1::]/", REFUSED],
  ["https://[fd00::1]/", REFUSED],
  ["https://[fe80::1]/", REFUSED],
  ["https://[2606:4700:4700::1111]/", REFUSED],
  // One label.
  ["https://localhost/", REFUSED],
  ["https://LOCALHOST/", REFUSED],
  ["https://ⓛocalhost/", REFUSED],
  ["https://%6c%6f%63%61%6c%68%6f%73%74/", REFUSED],
  ["https://metadata/", REFUSED],
  ["https://postgres:8443/", REFUSED],
  // A port.
  ["https://hooks.example.com:80/", REFUSED],
  ["https://hooks.example.com:0/", REFUSED],
  ["https://hooks.example.com:22/", REFUSED],
  ["https://hooks.example.com:5432/", REFUSED],
  ["https://hooks.example.com:8444/", REFUSED],
  ["https://hooks.example.com:65535/", REFUSED]
]

describe("Webhook: URL must be HTTPS", () => {
  test(`at creation, over ${vectors.length} spellings, and nothing refused is stored (Decision D-30)`, async () => {
    for (const [url, expected] of vectors) {
      const answer = await tryCreate(app, key, { url, status: "DISABLED" })
      expect([url, answer.status === 201 ? answer.json.url : `${answer.status} ${answer.json.code}`]).toEqual([url, expected])
      if (answer.status !== 201) expect(answer.json.errors).toEqual([expect.objectContaining({ in: "body", field: "url" })])
    }
    const [{ count } = { count: "" }] = await app.sql("SELECT count(*) FROM webhooks")
    expect(Number(count)).toBe(vectors.filter(([, expected]) => expected.startsWith("https")).length)
  }, 60_000)

  test("at update, over the same spellings, and nothing refused is stored (Decision D-30)", async () => {
    const { id, url: first } = await create(app, key, { url: "https://first.example.com/" })
    let stored = first
    for (const [url, expected] of vectors) {
      const answer = await patch(app, key, id, { url })
      expect([url, answer.status === 200 ? answer.json.url : `${answer.status} ${answer.json.code}`]).toEqual([url, expected])
      if (answer.status === 200) stored = answer.json.url
      expect((await app.get(`/v1/webhooks/${id}`, key)).json.url).toBe(stored)
    }
  }, 60_000)

  test("a URL that is no text is refused", async () => {
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

/** One number as a URL may spell it: decimal, hexadecimal or octal, with leading zeros, in other digits, percent-encoded. */
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

/** The parts of an address as a URL may group them: four bytes, or fewer parts of which the last holds the rest. */
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

describe("Reliability T1: no encoding of a private address passes", () => {
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

  test("whatever text is taken names a host with a dot that is no address, over https, on an allowed port", () => {
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
              // What is stored is judged as what was given.
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

describe("Decision D-30: what the operator allows beside the public internet", () => {
  const cidrs = Either.getOrThrow(Format.cidrs("127.0.0.0/8,fd00::/8"))

  test("a literal inside WEBHOOK_ALLOW_CIDRS is let through, and no other", () => {
    const taken = (url: string) => Either.isRight(check(url, { cidrs, ports: [9443] }))
    for (const url of ["https://127.0.0.1/", "https://127.1:9443/", "https://[fd00::1]/", "https://[::ffff:127.0.0.1]/"])
      expect([url, taken(url)]).toEqual([url, true])
    for (const url of ["https://128.0.0.1/", "https://10.0.0.1/", "https://[::1]/", "https://8.8.8.8/"])
      expect([url, taken(url)]).toEqual([url, false])
  })

  test("localhost is let through when the ranges cover it, other single labels never", () => {
    expect(Either.isRight(check("https://localhost/", { cidrs, ports: [] }))).toBe(true)
    expect(Either.isRight(check("https://localhost/", { cidrs: Either.getOrThrow(Format.cidrs("10.0.0.0/8")), ports: [] }))).toBe(false)
    expect(Either.isRight(check("https://localhost./", { cidrs, ports: [] }))).toBe(false)
    expect(Either.isRight(check("https://metadata/", { cidrs, ports: [] }))).toBe(false)
  })

  test("WEBHOOK_ALLOW_PORTS adds to 443 and 8443", () => {
    const taken = (port: number) => Either.isRight(check(`https://hooks.example.com:${port}/`, { cidrs: [], ports: [9443] }))
    expect([443, 8443, 9443, 80, 9444].map(taken)).toEqual([true, true, true, false, false])
  })
})
