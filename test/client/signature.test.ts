/** Delivery contract 3: the payload is signed and consumers verify the signature on the raw body before trusting it. */
import { describe, expect, test } from "bun:test"
import { Redacted } from "effect"
import fc from "fast-check"
import { Webhook } from "standardwebhooks"
import { SignatureError, verifySignature } from "../../src/client/index.ts"
import published from "../../src/client/vectors.json" with { type: "json" }
import * as sign from "../../src/delivery/deliveries/signatureHeaders.ts"
import * as Secret from "../../src/delivery/webhooks/signingSecret.ts"

const outcome = async (verified: Promise<unknown>): Promise<string> => {
  try {
    await verified
    return "valid"
  } catch (error) {
    return error instanceof SignatureError ? error.reason : String(error)
  }
}

interface Vector {
  readonly name: string
  readonly secrets: ReadonlyArray<string>
  readonly now: number
  readonly tolerance: number
  readonly headers: { readonly [name: string]: string | undefined }
  readonly body: string
  readonly valid: boolean
  readonly reason?: string | undefined
}
const vectors: ReadonlyArray<Vector> = published.vectors

describe("the published vectors", () => {
  for (const { body, headers, name, now, reason, secrets, tolerance, valid } of vectors) {
    test(`${name}: ${valid ? "valid" : reason}`, async () => {
      const expected = valid ? "valid" : (reason ?? "")
      expect(await outcome(verifySignature(body, headers, secrets, { now, tolerance }))).toBe(expected)
      expect(await outcome(verifySignature(Buffer.from(body), headers, secrets, { now, tolerance }))).toBe(expected)
    })
  }

  test("valid vectors have exactly the headers that the service sends", () => {
    const whole = vectors.filter(({ headers, secrets, valid }) => valid && secrets.length === 1 && Object.keys(headers).length === 4)
    const alone = whole.filter(({ headers }) => !String(headers["X-Service-Signature"]).includes(",v1=", 60))
    expect(alone.length).toBeGreaterThanOrEqual(3)
    for (const { body, headers, secrets } of alone) {
      const id = headers["webhook-id"] ?? "",
        timestamp = Number(headers["webhook-timestamp"])
      const { "x-service-signature": service, ...standard } = sign.headers({
        id,
        timestamp,
        body,
        secrets: secrets.map((secret) => Redacted.make(secret))
      })
      expect(headers).toEqual({ ...standard, "X-Service-Signature": service })
    }
  })
})

const text = fc.string({ unit: "binary", maxLength: 300 }).map((label) => JSON.stringify({ id: "evt_1", kind: "vault.updated", label }))
const times = fc.integer({ min: 0, max: 4_000_000_000 })
const signed = fc.record({ body: text, timestamp: times, count: fc.integer({ min: 1, max: 3 }) }).map(({ body, count, timestamp }) => {
  const secrets = Array.from({ length: count }, Secret.make)
  return { body, timestamp, secrets: secrets.map(Redacted.value), headers: sign.headers({ id: "evt_1", timestamp, body, secrets }) }
})

describe("signatures on the raw body", () => {
  test("every valid secret verifies what the service signs, and verification returns the event", async () => {
    await fc.assert(
      fc.asyncProperty(signed, async ({ body, headers, secrets, timestamp }) => {
        for (const secret of secrets) expect(await verifySignature(body, headers, secret, { now: timestamp })).toEqual(JSON.parse(body))
        expect(await outcome(verifySignature(body, headers, Redacted.value(Secret.make()), { now: timestamp }))).toBe("no_match")
      })
    )
  })

  test("changing any byte of the body, the timestamp or a signature makes verification fail", async () => {
    await fc.assert(
      fc.asyncProperty(signed, fc.nat(), fc.integer({ min: 1, max: 255 }), async ({ body, headers, secrets, timestamp }, at, change) => {
        const bytes = Buffer.from(body)
        bytes.writeUInt8(bytes.readUInt8(at % bytes.length) ^ change, at % bytes.length)
        expect(await outcome(verifySignature(bytes, headers, secrets, { now: timestamp }))).toBe("no_match")
        for (const [name, value] of Object.entries(headers)) {
          // The last characters of base64 have bits without meaning.
          const index = at % (value.length - 2)
          const changed = value.slice(0, index) + (value[index] === "7" ? "8" : "7") + value.slice(index + 1)
          const alone = name === "x-service-signature" ? { [name]: changed } : { ...headers, [name]: changed }
          // With several valid secrets, another signature may still match.
          const result = await outcome(verifySignature(body, alone, secrets[0] ?? "", { now: timestamp, tolerance: 1e12 }))
          if (secrets.length === 1 && !/^v1=?$|^[tv1=, ]$/.test(value[index] ?? "")) expect([name, result]).not.toEqual([name, "valid"])
        }
      })
    )
  })

  test("headers and bodies are accepted as servers provide them", async () => {
    const secret = Redacted.value(Secret.make())
    const now = 1_767_225_600
    const headers = sign.headers({ id: "evt_1", timestamp: now, body: "{}", secrets: [Redacted.make(secret)] })
    const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]]))
    for (const given of [headers, new Headers(headers), upper])
      for (const body of ["{}", Buffer.from("{}"), new TextEncoder().encode("{}").buffer])
        expect(await outcome(verifySignature(body, given, secret, { now }))).toBe("valid")
  })

  test("a secret that is missing, quoted or cut short is named as the cause", async () => {
    const secret = Redacted.value(Secret.make())
    for (const [given, cause] of [
      [[], "needs a signing secret"],
      ["", "is its variable set?"],
      [`${secret}\n`, "the newline of a file"],
      [` ${secret}`, "white space"],
      [`"${secret}"`, "quotes"],
      [`'${secret}'`, "quotes"],
      [secret.slice(0, -3), "is it complete?"],
      ["whsec_", "is it complete?"]
    ] as const)
      for (const secrets of typeof given === "string" ? [given, [secret, given]] : [given])
        expect([given, await outcome(verifySignature("{}", {}, secrets))]).toEqual([given, expect.stringContaining(cause)])
  })

  test("a body that was parsed already is named as the cause", async () => {
    const secret = Redacted.value(Secret.make())
    for (const body of [{ id: "evt_1" }, [1], null, undefined]) {
      // What JavaScript without types may pass.
      const parsed = body as unknown as string
      expect(await outcome(verifySignature(parsed, {}, secret))).toMatch(/^TypeError: .*parsed already.*raw body/)
    }
  })

  test("a tolerance or time that is no number rejects even a valid signature", async () => {
    const secret = Secret.make()
    const timestamp = Math.floor(Date.now() / 1_000)
    const headers = sign.headers({ id: "evt_1", timestamp, body: "{}", secrets: [secret] })
    for (const name of ["tolerance", "now"] as const)
      for (const value of [Number.NaN, Number.POSITIVE_INFINITY, "300", null, true, {}]) {
        // What JavaScript without types may pass.
        const options = { [name]: value as number }
        expect(await outcome(verifySignature("{}", headers, Redacted.value(secret), options))).toMatch(
          new RegExp(`^TypeError: ${name} must be a number of seconds`)
        )
      }
  })

  test("the Standard Webhooks library verifies the service's signature at the current time", () => {
    const secret = Secret.make()
    const timestamp = Math.floor(Date.now() / 1_000)
    const headers = sign.headers({ id: "evt_1", timestamp, body: "{}", secrets: [secret] })
    expect(new Webhook(Redacted.value(secret)).verify("{}", headers)).toEqual({})
  })
})
