/**
 * The text of an API key: `cds_`, 43 base62 characters (256 random bits) and 6 characters of CRC-32, so that secret
 * scanners find leaked keys (`\bcds_[0-9A-Za-z]{49}\b`) and typing errors are detected without a query. Only the SHA-256
 * of the whole text and a few of its characters are stored; with 256 bits of entropy a slow hash would add nothing. Spec:
 * Authentication 4. Decision D-10.
 */

import { createHash, randomBytes } from "node:crypto"
import { Redacted } from "effect"

const PREFIX = "cds_",
  BODY = 43,
  CHECK = 6
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const form = new RegExp(`^${PREFIX}[0-9A-Za-z]{${BODY + CHECK}}$`)

const base62 = (value: bigint, length: number): string => {
  let out = ""
  for (let rest = value; out.length < length; rest /= 62n) out = `${digits.charAt(Number(rest % 62n))}${out}`
  return out
}

const checksum = (body: string): string => base62(BigInt(Bun.hash.crc32(`${PREFIX}${body}`)), CHECK)

/** A new secret. */
export const make = (): Redacted.Redacted => {
  const body = base62(BigInt(`0x${randomBytes(32).toString("hex")}`), BODY)
  return Redacted.make(`${PREFIX}${body}${checksum(body)}`)
}

/** Whether text has the form of a secret and its checksum is right. */
export const isWellFormed = (text: string): boolean => form.test(text) && text.slice(-CHECK) === checksum(text.slice(PREFIX.length, -CHECK))

/** First and last characters of a secret, by which people recognize it; more than 200 random bits stay unknown. */
export const hint = (text: string): string => `${text.slice(0, PREFIX.length + 4)}…${text.slice(-4)}`

/** The SHA-256 of a secret, 32 bytes, which identifies it. */
export const hash = (text: string): Buffer => createHash("sha256").update(text).digest()
