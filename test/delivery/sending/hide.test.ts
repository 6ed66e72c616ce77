/** What a response shows of secret values. C-12. */
import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { hide } from "../../../src/delivery/sending/request/hide.ts"

const hidden = (text: string, ...values: ReadonlyArray<string>) => hide(Buffer.from(text), values).toString()
const value = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 9,
  maxLength: 60
})
const html = (text: string) =>
  text.replace(/[&<>"']/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[char] ?? char)

const hexadecimal = (text: string) => text.replace(/[\s\S]/g, (char) => `\\\\u00${char.charCodeAt(0).toString(16)}`)
const forms = [(text: string) => text, (text: string) => JSON.stringify(text).slice(1, -1), encodeURIComponent, html]

describe("secret values in a response", () => {
  test("are replaced as they are, and as JSON, a URL or HTML writes them", () => {
    fc.assert(
      fc.property(value, fc.constantFrom(...forms), (secret, form) => {
        expect(hidden(`got <${form(secret)}> and <${form(secret)}>.`, secret)).toBe("got <***> and <***>.")
      }),
      { numRuns: 300 }
    )
    expect(hidden("<abc&amp;>", "abc&")).toBe("<***>")
    expect(hidden('{"a":"x\\u003cy\\/z"}', "x<y/z")).toBe('{"a":"***"}')
  })

  test("are replaced without their scheme, and if the end cuts them off", () => {
    expect(hidden("invalid token abcdefghij", "Bearer abcdefghij")).toBe("invalid token ***")
    expect(hidden("authorization=Bearer%20abcdefghij", "Bearer abcdefghij")).toBe("authorization=***")
    expect(hidden("token abcdefgh", "Bearer abcdefghij")).toBe("token ***")
    expect(hidden("abcdefg", "abcdefghij")).toBe("abcdefg")
    expect(hidden("abcd-long and abcd", "abcd", "abcd-long")).toBe("*** and ***")
  })

  test("are found whatever the case, escaped twice, and inside of others", () => {
    for (const [value, returned, shown] of [
      ["SecretValue99", "got secretvalue99", "got ***"],
      ["secret/key/z", "got secret%252Fkey%252Fz", "got ***"],
      ["SecretValue99", "got S\\u0065cretValue99", "got ***"],
      ["sid=COOKIESECRET; lang=en", '{"sid":"COOKIESECRET"}', '{"sid":"***"}'],
      [`Basic ${Buffer.from("ada:pass-word-1").toString("base64")}`, "pass-word-1 of ada", "*** of ada"],
      // It could be read off where it occurs in other words.
      ["3", "https://localhost:18443", "***"],
      ["a plus+", "a+plus%2B", "***"]
    ] as const)
      expect([value, hidden(returned, value)]).toEqual([value, shown])
  })

  test("are replaced where the snippet ends, however much of the response follows", () => {
    const long = fc.string({ unit: fc.constantFrom("a", "b", "%", "&", "+", "\\"), minLength: 20, maxLength: 1_024 })
    fc.assert(
      fc.property(
        fc.oneof(value, long),
        fc.constantFrom(...forms, hexadecimal),
        fc.integer({ min: 0, max: 30 }),
        (secret, form, before) => {
          const rest = "\n".repeat(1_023 - before)
          expect(hidden(`${rest}${form(secret)}${"\n".repeat(20_000)}`, secret)).toMatch(/^\n+\*\*\*\n*$/)
        }
      ),
      { numRuns: 300 }
    )
  })

  test("are searched in no more time than an endpoint may cost, whatever it sends", () => {
    const began = process.cpuUsage()
    for (const char of ["\\", "!", "&", "%", "&#", "a", "+"]) {
      const values = ["x", "y", "z", ""].map((end) => `${char.repeat(1_024)}`.slice(0, 1_023) + end)
      for (const text of [char.repeat(16_384), `${char}amp;`.repeat(4_000), `${"\\".repeat(24)}u005c`.repeat(600)])
        expect(hidden(text, ...values).length).toBeLessThan(1_100)
    }
    const parts = (size: number) => Array.from({ length: size / 16 }, (_, index) => "a".repeat(8 + (index % 9))).join(";")
    for (const token of ["a".repeat(8_192), parts(8_192), "%61aaaaaaa;".repeat(740)])
      for (const text of ["a".repeat(16_384), "%61".repeat(5_000)]) hidden(text, `Bearer ${token}`, ...Array(4).fill(parts(1_024)))
    // A token of parts that the response has.
    const windows = Array.from({ length: 16_384 }, (_, at) => String.fromCharCode(33 + ((at * 7_919) % 59))).join("")
    const found = Array.from({ length: 900 }, (_, index) => windows.slice(index * 17, index * 17 + 8)).join("=")
    for (let response = 0; response < 20; response++) hidden(windows, `Bearer ${found}`)
    // Forty-seven responses. Processor time: others may run meanwhile.
    expect(process.cpuUsage(began).user).toBeLessThan(1_000_000)
  })

  test("leave other bytes as they are", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(hide(Buffer.from(bytes), [])).toEqual(Buffer.from(bytes))
        expect(hide(Buffer.from(bytes), ["a value that no such response has"])).toEqual(Buffer.from(bytes))
      })
    )
  })
})
