/**
 * Identifiers: a prefix, `_`, and a UUIDv7 as 26 characters of Crockford base32 (TypeID). Ids sort by time, so a list may
 * use the id as its last sort column, and a day is a range of ids. Ids from one process ascend strictly. Decision D-14.
 *
 * Ids from outside are opaque strings: no code here parses them to decide who may see what.
 */

import { createHash } from "node:crypto"
import { Schema } from "effect"
import { fromUUIDBytes, TypeID } from "typeid-js"

/** The kinds of objects with an id of this service or of the custody platform. */
export type Prefix =
  | "org"
  | "entity"
  | "vault"
  | "user"
  | "key"
  | "whs"
  | "evt"
  | "del"
  | "req"
  | "ntc"
  | "inv"
  | "acc"
  | "psk"
  | "aud"
  | "rec"
  | "tx"

/** A new id; later ids of the same process sort after earlier ones. */
export const make = (prefix: Prefix): string => fromUUIDBytes(prefix, uuid7(Date.now()))

let last = { millis: 0, sequence: 0 }

/** UUIDv7 with a 12-bit counter in rand_a, so that ids of one millisecond keep their order. */
const uuid7 = (now: number): Uint8Array => {
  const millis = Math.max(now, last.millis)
  const sequence = millis === last.millis ? last.sequence + 1 : Math.floor(Math.random() * 0x400)
  last = sequence > 0xfff ? { millis: millis + 1, sequence: 0 } : { millis, sequence }
  return uuidOf(last.millis, last.sequence)
}

const uuidOf = (millis: number, sequence: number): Uint8Array => {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  writeTime(bytes, millis)
  bytes[6] = 0x70 | (sequence >> 8)
  bytes[7] = sequence & 0xff
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  return bytes
}

/**
 * `count` new ids for a time (ms since the epoch), ascending. If they do not fit into one millisecond, the last ones have
 * later times. Ids for a later time sort after them.
 */
export const ascending = (prefix: Prefix, at: number, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => fromUUIDBytes(prefix, uuidOf(at + Math.floor(index / 0x1000), index % 0x1000)))

const writeTime = (bytes: Uint8Array, millis: number) => {
  for (let index = 5, rest = millis; index >= 0; index--, rest = Math.floor(rest / 256)) bytes[index] = rest % 256
}

/**
 * The id that is derived from these parts: a UUIDv7-shaped value with the time of `at` (ms since the epoch) and bits of a
 * SHA-256 over the parts. Creating it twice creates the same row twice, and the primary key rejects the second. Used for
 * the first delivery of an event to a webhook.
 */
export const derived = (prefix: Prefix, at: number, ...parts: ReadonlyArray<string>): string => {
  const bytes = new Uint8Array(createHash("sha256").update(JSON.stringify(parts)).digest().subarray(0, 16))
  writeTime(bytes, at)
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  return fromUUIDBytes(prefix, bytes)
}

/**
 * As {@link derived}, with the place of another id instead of a time: ids derived from ascending ids ascend. So the
 * deliveries of a webhook sort as their events do, including those of the same millisecond.
 */
export const derivedFrom = (prefix: Prefix, id: string, ...parts: ReadonlyArray<string>): string => {
  const bytes = TypeID.fromString(derived(prefix, 0, id, ...parts)).toUUIDBytes()
  bytes.set(TypeID.fromString(id).toUUIDBytes().subarray(0, 8))
  return fromUUIDBytes(prefix, bytes)
}

/**
 * The id that stands for a natural key: a UUIDv8 of the SHA-256 over its parts. The same key gives the same id in every database
 * that it is recorded in.
 */
export const ofKey = (prefix: Prefix, ...parts: ReadonlyArray<string>): string => {
  const bytes = new Uint8Array(createHash("sha256").update(JSON.stringify(parts)).digest().subarray(0, 16))
  bytes[6] = 0x80 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  return fromUUIDBytes(prefix, bytes)
}

/** The 16 bytes of an id. */
export const bytesOf = (id: string): Uint8Array => TypeID.fromString(id).toUUIDBytes()

/** The id with these 16 bytes. */
export const ofBytes = (prefix: Prefix, bytes: Uint8Array): string => fromUUIDBytes(prefix, bytes)

/** The UUID of an id with this prefix, in hexadecimal; undefined for text of another form. Any 16 bytes will do. */
export const uuidIn = (prefix: Prefix, id: string): string | undefined => {
  try {
    return Buffer.from(TypeID.fromString(id, prefix).toUUIDBytes()).toString("hex")
  } catch {
    return undefined
  }
}

/** The smallest id of a prefix at a time (ms since the epoch): the lower bound of a day's partition. */
export const floor = (prefix: Prefix, at: number): string => {
  const bytes = new Uint8Array(16)
  writeTime(bytes, Math.max(0, at))
  return fromUUIDBytes(prefix, bytes)
}

/** When an id of this service was created, in ms since the epoch; undefined for text of another form. */
export const time = (id: string): number | undefined => {
  try {
    const bytes = TypeID.fromString(id).toUUIDBytes()
    return bytes.subarray(0, 6).reduce((total, byte) => total * 256 + byte, 0)
  } catch {
    return undefined
  }
}

/**
 * The form in which the custody platform gives its ids: the prefix and 1 to 64 letters, digits, `_` or `-`. The platform
 * owns them, so only the prefix is checked.
 */
export const given = (prefix: Prefix) =>
  Schema.String.pipe(
    Schema.pattern(new RegExp(`^${prefix}_[A-Za-z0-9_-]{1,64}$`), {
      message: () => `must be an id that starts with ${prefix}_`
    })
  )
