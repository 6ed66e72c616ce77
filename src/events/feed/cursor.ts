/**
 * Cursors of the event feed. A cursor is a position in an organization's stream of events. It is encrypted for the
 * organization only, so any of its keys may continue with it, with any filter. Every cursor has the same length, and two
 * cursors of one position differ, so nothing about the position is visible. C-1.
 */
import type { Sealing } from "../../runtime/crypto/MasterKey.ts"
import * as Id from "../../values/Id.ts"

/** A position in an organization's stream. */
export interface Place {
  /** The position of the last event before it. */
  readonly position: number
  /** The id of that event; null if it is not known. After a restored backup another event may have the position. C-9. */
  readonly id: string | null
  /** A time in ms since the epoch: every event after the position was recorded at it or later. */
  readonly at: number
}

/** Before every event: the first one has position 1. */
export const BEGINNING = 0

const BYTES = 32

const contextOf = (organizationId: string): string => JSON.stringify(["event-feed", organizationId])

/** The bytes of an id that is not known. */
const UNKNOWN = Buffer.alloc(16)

/** The cursor of a position. */
export const seal = (master: Sealing, organizationId: string, { at, id, position }: Place): string => {
  const plain = Buffer.alloc(BYTES)
  plain.writeBigInt64BE(BigInt(position), 0)
  plain.writeBigInt64BE(BigInt(Math.floor(at)), 8)
  if (id !== null) plain.set(Id.bytesOf(id), 16)
  return master.seal("cursor", plain, contextOf(organizationId)).toString("base64url")
}

/** The position of a cursor; undefined if it was not issued for this organization. */
export const open = (master: Sealing, organizationId: string, cursor: string): Place | undefined => {
  if (cursor.length > 256) return undefined
  const sealed = Buffer.from(cursor, "base64url")
  // The base64 decoder ignores unknown characters and spare bits; only the exact text that was issued is a valid cursor.
  if (sealed.toString("base64url") !== cursor) return undefined
  const plain = master.open("cursor", sealed, contextOf(organizationId))
  if (plain?.length !== BYTES) return undefined
  const id = plain.subarray(16)
  return {
    position: Number(plain.readBigInt64BE(0)),
    at: Number(plain.readBigInt64BE(8)),
    id: id.equals(UNKNOWN) ? null : Id.ofBytes("evt", id)
  }
}
