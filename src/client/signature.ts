/**
 * Verifies deliveries on the raw body, before anything else. `X-Service-Signature` is `t=<unix seconds>,v1=<hex>…` over
 * `t.body`, keyed with the secret's text; the Standard Webhooks headers are `v1,<base64>…` over `id.t.body`, keyed with
 * the bytes that the secret encodes. Every scheme in the request must verify. It uses Web Crypto, so it runs in Node.js,
 * browsers and workers. Published vectors: vectors.json. Spec: Delivery contract 3. Decision D-24.
 */
import type { ReceivedEvent } from "./receivedEvent.ts"
import { bytesOf, bytesOfHex, concat, utf8 } from "./signedClaims.ts"

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

/** A number of seconds. A comparison with NaN is false, so it would accept a signature of any age. */
const numberOf = (name: "now" | "tolerance", value: unknown): number => {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new TypeError(`${name} must be a number of seconds, not ${String(value)}`)
  return value
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** The bytes that a secret encodes. */
const keyOf = (secret: string): string => secret.replace(/^whsec_/, "")

const checkedSecrets = (secrets: unknown): ReadonlyArray<string> => {
  const known: ReadonlyArray<unknown> = Array.isArray(secrets) ? secrets : [secrets]
  if (known.length === 0) throw new TypeError("verifySignature needs a signing secret")
  return known.map((secret) => {
    if (typeof secret !== "string" || secret === "") throw new TypeError("the signing secret is empty: is its variable set?")
    if (secret.trim() !== secret)
      throw new TypeError("the signing secret begins or ends with white space, such as the newline of a file: trim it")
    if (/^["']|["']$/.test(secret)) throw new TypeError("the signing secret is in quotes: remove them")
    if (keyOf(secret) === "" || !base64.test(keyOf(secret)))
      throw new TypeError("the signing secret is not whsec_ followed by base64: is it complete?")
    return secret
  })
}

const bodyOf = (rawBody: unknown): Uint8Array => {
  if (typeof rawBody === "string") return utf8(rawBody)
  if (ArrayBuffer.isView(rawBody)) return new Uint8Array(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength)
  if (rawBody instanceof ArrayBuffer) return new Uint8Array(rawBody)
  throw new TypeError("the body was parsed already: pass the raw body of the request, a string or bytes")
}

type Signed = {
  readonly time: number
  readonly given: ReadonlyArray<Uint8Array<ArrayBuffer>>
  readonly text: Uint8Array<ArrayBuffer>
  readonly key: (secret: string) => Uint8Array<ArrayBuffer>
}

const serviceScheme = (header: string, body: Uint8Array): Signed => {
  const parts = header.split(",").map((part) => part.trim().split("=", 2))
  const time = seconds(parts.find(([name]) => name === "t")?.[1])
  return {
    time,
    given: parts.flatMap(([name, value = ""]) => (name === "v1" && /^[0-9a-f]{64}$/.test(value) ? [bytesOfHex(value)] : [])),
    text: concat(utf8(`${time}.`), body),
    key: utf8
  }
}

const standardScheme = (header: string, id: string | undefined, timestamp: string | undefined, body: Uint8Array): Signed => {
  if (id === undefined) throw new SignatureError("malformed", "The webhook-id header is missing.")
  const time = seconds(timestamp)
  const signatures = header.split(" ").flatMap((part) => (part.startsWith("v1,") ? [part.slice(3)] : []))
  return {
    time,
    given: signatures.filter((signature) => base64.test(signature)).map(bytesOf),
    text: concat(utf8(`${id}.${time}.`), body),
    key: (secret) => bytesOf(keyOf(secret))
  }
}

/** Whether any of the secrets made any of the signatures. Every pair is compared, each in constant time. */
const anyMatches = async ({ given, key, text }: Signed, secrets: ReadonlyArray<string>): Promise<boolean> => {
  let matches = false
  for (const secret of secrets) {
    const imported = await crypto.subtle.importKey("raw", key(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"])
    for (const signature of given) if (await crypto.subtle.verify("HMAC", imported, signature, text)) matches = true
  }
  return matches
}

/**
 * Verifies a request's signature and resolves with its event; rejects with a {@link SignatureError} if it is invalid, and
 * with a `TypeError` for arguments with which nothing can be verified. Pass the body exactly as received, before any
 * parsing, and during a rotation every secret that may have signed. Await the result: nothing is verified before.
 */
export const verifySignature = async (
  rawBody: string | Uint8Array | ArrayBuffer,
  headers: ReceivedHeaders,
  secrets: string | ReadonlyArray<string>,
  options: SignatureOptions = {}
): Promise<ReceivedEvent> => {
  const body = bodyOf(rawBody)
  const known = checkedSecrets(secrets)
  const { now: at = Math.floor(Date.now() / 1_000), tolerance: most = 300 } = options
  const [now, tolerance] = [numberOf("now", at), numberOf("tolerance", most)]
  const header = lookup(headers)
  const [service, standard] = [header("x-service-signature"), header("webhook-signature")]
  const schemes = [
    ...(service === undefined ? [] : [serviceScheme(service, body)]),
    ...(standard === undefined ? [] : [standardScheme(standard, header("webhook-id"), header("webhook-timestamp"), body)])
  ]
  if (schemes.length === 0) throw new SignatureError("missing", "The request carries no signature.")
  for (const scheme of schemes) {
    if (!(await anyMatches(scheme, known)))
      throw new SignatureError(
        "no_match",
        "No signature matches the given secrets: the secret is another one, or the body is not the raw body of the request."
      )
    const age = now - scheme.time
    if (age > tolerance) throw new SignatureError("too_old", `The signature is ${age} s old; the tolerance is ${tolerance} s.`)
    if (-age > tolerance) throw new SignatureError("too_new", `The signature is ${-age} s in the future; the tolerance is ${tolerance} s.`)
  }
  try {
    // The signed text was serialized by the service from the contract's types.
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as ReceivedEvent
  } catch {
    throw new SignatureError("malformed", "The body is not JSON.")
  }
}
