/**
 * Verifies deliveries on the raw body, before anything else. `X-Service-Signature` is `t=<unix seconds>,v1=<hex>…` over
 * `t.body`, keyed with the secret's text; the Standard Webhooks headers are `v1,<base64>…` over `id.t.body`, keyed with
 * the bytes that the secret encodes. Every scheme in the request must verify. Published vectors: vectors.json. Spec:
 * Delivery contract 3. Decision D-24.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import type { ReceivedEvent } from "./receivedEvent.ts"

/** Why a request is rejected. */
export class SignatureError extends Error {
  override readonly name = "SignatureError"
  /**
   * `missing`: there is no signature; `malformed`: a header or the body is invalid; `too_old` and `too_new`: its time
   * differs from now by more than the tolerance; `no_match`: none of the secrets signed this body at this time.
   */
  readonly reason: "missing" | "malformed" | "too_old" | "too_new" | "no_match"

  constructor(reason: SignatureError["reason"], message: string) {
    super(message)
    this.reason = reason
  }
}

/** Options of the verification. */
export interface SignatureOptions {
  /** Most seconds between the signature's time and now; default 300. */
  readonly tolerance?: number | undefined
  /** Now, in Unix seconds; default: the clock's. */
  readonly now?: number | undefined
}

/** Headers of a server: `Headers`, or an object whose names are in any letter case. */
export type ReceivedHeaders = Headers | Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

const lookup = (headers: ReceivedHeaders) => {
  if (headers instanceof Headers) return (name: string) => headers.get(name) ?? undefined
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return (name: string) => {
    const value = byName.get(name)
    return typeof value === "object" ? value.join(",") : value
  }
}

const seconds = (text: string | undefined): number => {
  if (text === undefined || !/^\d{1,12}$/.test(text))
    throw new SignatureError("malformed", "The signature has no timestamp in Unix seconds.")
  return Number(text)
}

/** Whether any signature matches any of the secrets; every pair is compared in constant time. */
const anyMatches = (given: ReadonlyArray<Buffer>, expected: ReadonlyArray<Buffer>): boolean => {
  let matches = false
  for (const one of given) for (const other of expected) if (one.length === other.length && timingSafeEqual(one, other)) matches = true
  return matches
}

const inTime = (time: number, { now = Math.floor(Date.now() / 1_000), tolerance = 300 }: SignatureOptions) => {
  if (now - time > tolerance) throw new SignatureError("too_old", `The signature is ${now - time} s old; the tolerance is ${tolerance} s.`)
  if (time - now > tolerance)
    throw new SignatureError("too_new", `The signature is ${time - now} s in the future; the tolerance is ${tolerance} s.`)
}

type Signed = { readonly time: number; readonly given: ReadonlyArray<Buffer>; readonly sign: (secret: string) => Buffer }

const serviceScheme = (header: string, body: Uint8Array): Signed => {
  const parts = header.split(",").map((part) => part.trim().split("=", 2))
  const time = seconds(parts.find(([name]) => name === "t")?.[1])
  return {
    time,
    given: parts.flatMap(([name, value = ""]) => (name === "v1" && /^[0-9a-f]{64}$/.test(value) ? [Buffer.from(value, "hex")] : [])),
    sign: (secret) => createHmac("sha256", secret).update(`${time}.`).update(body).digest()
  }
}

const standardScheme = (header: string, id: string | undefined, timestamp: string | undefined, body: Uint8Array): Signed => {
  if (id === undefined) throw new SignatureError("malformed", "The webhook-id header is missing.")
  const time = seconds(timestamp)
  return {
    time,
    given: header.split(" ").flatMap((part) => (part.startsWith("v1,") ? [Buffer.from(part.slice(3), "base64")] : [])),
    sign: (secret) =>
      createHmac("sha256", Buffer.from(secret.replace(/^whsec_/, ""), "base64"))
        .update(`${id}.${time}.`)
        .update(body)
        .digest()
  }
}

/**
 * Verifies a request's signature and returns its event; throws a {@link SignatureError} if it is invalid. Pass the body
 * exactly as received, before any parsing, and during a rotation every secret that may have signed.
 */
export const verifySignature = (
  rawBody: string | Uint8Array,
  headers: ReceivedHeaders,
  secrets: string | ReadonlyArray<string>,
  options: SignatureOptions = {}
): ReceivedEvent => {
  const known = typeof secrets === "string" ? [secrets] : secrets
  if (known.length === 0 || known.some((secret) => secret === "")) throw new TypeError("verifySignature needs a signing secret")
  const header = lookup(headers)
  const body = typeof rawBody === "string" ? Buffer.from(rawBody) : rawBody
  const [service, standard] = [header("x-service-signature"), header("webhook-signature")]
  const schemes = [
    ...(service === undefined ? [] : [serviceScheme(service, body)]),
    ...(standard === undefined ? [] : [standardScheme(standard, header("webhook-id"), header("webhook-timestamp"), body)])
  ]
  if (schemes.length === 0) throw new SignatureError("missing", "The request carries no signature.")
  for (const { given, sign, time } of schemes) {
    if (!anyMatches(given, known.map(sign))) throw new SignatureError("no_match", "No signature matches the given secrets.")
    inTime(time, options)
  }
  try {
    // The signed text was serialized by the service from the contract's types.
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as ReceivedEvent
  } catch {
    throw new SignatureError("malformed", "The body is not JSON.")
  }
}
