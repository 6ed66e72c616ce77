/**
 * Verification of the service's signatures: compact JWS with Ed25519 and the published keys. It uses Web Crypto and no
 * Node.js module, so it also runs in browsers and workers (a secure context: Chrome 137, Firefox 129, Safari 17 or newer).
 * C-3, C-6.
 */
import { NotVerifiable } from "./errors.ts"

/** The fields of a published public key that verification uses. */
export interface PublishedKey {
  readonly kty: string
  readonly crv: string
  readonly kid: string
  readonly x: string
}

/** The published keys, as `getSigningKeys` returns them. */
export interface PublishedKeys {
  readonly keys: ReadonlyArray<PublishedKey>
}

/** Options of every verification against the service. */
export interface KeyOptions {
  /** Trusts these keys only, instead of those that the service publishes: a JWKS that you stored. */
  readonly keys?: PublishedKeys | undefined
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null

/** @internal */
export const utf8 = (text: string) => new TextEncoder().encode(text)

/**
 * Bytes from base64; throws if it is not base64.
 * @internal
 */
export const bytesOf = (base64: string) => {
  const text = atob(base64)
  return Uint8Array.from(text, (character) => character.charCodeAt(0))
}
const bytesOfUrl = (base64url: string) => bytesOf(base64url.replaceAll("-", "+").replaceAll("_", "/"))
const jsonOf = (base64url: string): unknown => JSON.parse(new TextDecoder().decode(bytesOfUrl(base64url)))

/**
 * Parts as one array.
 * @internal
 */
export const concat = (...parts: ReadonlyArray<Uint8Array>) => {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** @internal */
export const sha256 = async (...parts: ReadonlyArray<Uint8Array>) => new Uint8Array(await crypto.subtle.digest("SHA-256", concat(...parts)))

/** @internal */
export const bytesOfHex = (text: string) => Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))

export const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

/**
 * The content of a compact JWS and the key that signed it; undefined if none of the keys did. Rejects where Web Crypto has
 * no Ed25519.
 */
export const signedClaims = async (jws: unknown, keys: ReadonlyArray<PublishedKey>) => {
  const [head = "", body = "", signature = "", ...rest] = typeof jws === "string" ? jws.split(".") : []
  try {
    const header = jsonOf(head)
    if (!isObject(header) || header["alg"] !== "EdDSA" || rest.length > 0) return undefined
    const found = keys.find(({ crv, kid, kty }) => kty === "OKP" && crv === "Ed25519" && kid !== undefined && kid === header["kid"])
    if (found === undefined) return undefined
    const { crv, kid, kty, x } = found
    const key = await crypto.subtle.importKey("jwk", { kty, crv, x }, { name: "Ed25519" }, false, ["verify"])
    const signed = await crypto.subtle.verify({ name: "Ed25519" }, key, bytesOfUrl(signature), utf8(`${head}.${body}`))
    return signed ? { kid, claims: jsonOf(body) } : undefined
  } catch (error) {
    // Text that does not parse was not signed by the service; an unsupported algorithm proves nothing about the content.
    if (error instanceof Error && error.name === "NotSupportedError") throw error
    return undefined
  }
}

/** The keys to verify with: those that the caller trusts, otherwise the published ones. */
export const trustedKeys = async (
  custody: { readonly getSigningKeys: () => Promise<PublishedKeys> },
  pinned: PublishedKeys | undefined
): Promise<PublishedKeys> => {
  if (pinned === undefined) return custody.getSigningKeys()
  if (!isObject(pinned) || !Array.isArray(pinned.keys) || pinned.keys.length === 0 || !pinned.keys.every(isObject))
    throw new NotVerifiable("The given keys are not a JSON Web Key Set with a key.")
  return pinned
}
