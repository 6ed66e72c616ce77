/**
 * Cursors of the event feed. A cursor is a place in an organization's stream of events: after a position. It is sealed
 * for the organization and for nothing else, so any of its keys may go on with it and any filter; every cursor has the
 * same length, and two of one place differ, so nothing of the position shows. C-1.
 */
import type { Sealing } from "../crypto/MasterKey.ts"

/** A place in an organization's stream. */
export interface Place {
  /** The position of the last event before it; events recorded before positions were assigned have positions up to 0. */
  readonly position: number
  /** A time in ms since the epoch: every event after the place was recorded at it or later. */
  readonly at: number
}

/** Before every event. */
export const BEGINNING = -Number.MAX_SAFE_INTEGER

const BYTES = 16

const contextOf = (organizationId: string): string => JSON.stringify(["event-feed", organizationId])

/** The cursor of a place. */
export const seal = (master: Sealing, organizationId: string, { at, position }: Place): string => {
  const plain = Buffer.alloc(BYTES)
  plain.writeBigInt64BE(BigInt(position), 0)
  plain.writeBigInt64BE(BigInt(Math.floor(at)), 8)
  return master.seal("cursor", plain, contextOf(organizationId)).toString("base64url")
}

/** The place of a cursor; undefined for one that was not given out for this organization. */
export const open = (master: Sealing, organizationId: string, cursor: string): Place | undefined => {
  if (cursor.length > 256) return undefined
  const sealed = Buffer.from(cursor, "base64url")
  // The decoder passes over what it does not know and over spare bits: only the text that was given out is a cursor.
  if (sealed.toString("base64url") !== cursor) return undefined
  const plain = master.open("cursor", sealed, contextOf(organizationId))
  if (plain?.length !== BYTES) return undefined
  return { position: Number(plain.readBigInt64BE(0)), at: Number(plain.readBigInt64BE(8)) }
}
