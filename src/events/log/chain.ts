/**
 * The hash chain of an entity's events. It starts with 32 zero bytes. For each event, in the order of recording, its next
 * state is `SHA-256(previous state ‖ SHA-256(payload bytes))`. Anyone with the events can compute it; changing, omitting,
 * repeating or swapping an event changes it. A checkpoint is the state of the chain at a midnight (UTC). C-3.
 */
import { createHash } from "node:crypto"

/** An entity's chain. */
export interface Chain {
  readonly entityId: string
  /** Number of events. */
  readonly count: number
  /** 32 bytes. */
  readonly hash: Buffer
  /** The midnight in ms up to which checkpoints were written. */
  readonly sealedUntil: number
}

/** An organization's newest event at some time. */
export interface Newest {
  /** Its position; 0 if there is none. */
  readonly position: number
  /** Its id; null if there is none. */
  readonly eventId: string | null
}

/** A chain at a midnight. */
export interface Sealed {
  readonly entityId: string
  /** The midnight in ms. */
  readonly at: number
  readonly count: number
  readonly hash: Buffer
  /** The organization's newest event at that time: every event of the entity up to it is counted, and none after it. */
  readonly newest: Newest
}

/** The hash of a chain without events. */
export const ZERO = Buffer.alloc(32)

const DAY = 86_400_000

/** The midnight at or before a time, both in ms. */
export const midnight = (at: number): number => Math.floor(at / DAY) * DAY

const sha256 = (...parts: ReadonlyArray<Buffer | string>): Buffer => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** The hash after an event. */
export const next = (hash: Buffer, payload: string): Buffer => sha256(hash, sha256(payload))

/** An event to add to its entity's chain. */
export interface Link {
  readonly entityId: string
  readonly payload: string
  /** When it was recorded, in ms. */
  readonly at: number
  /** The organization's newest event before it. */
  readonly before: Newest
}

/** Adds events in order. Returns the changed chains, and the checkpoints of the midnights between the events. */
export const extend = (known: ReadonlyArray<Chain>, links: ReadonlyArray<Link>) => {
  const chains = new Map(known.map((chain) => [chain.entityId, chain]))
  const sealed: Array<Sealed> = []
  for (const { at, before, entityId, payload } of links) {
    const { count, hash, sealedUntil } = chains.get(entityId) ?? { count: 0, hash: ZERO, sealedUntil: midnight(at) }
    const today = Math.max(sealedUntil, midnight(at))
    for (let day = sealedUntil + DAY; day <= today; day += DAY) sealed.push({ entityId, at: day, count, hash, newest: before })
    chains.set(entityId, { entityId, count: count + 1, hash: next(hash, payload), sealedUntil: today })
  }
  const changed = new Set(links.map(({ entityId }) => entityId))
  return { chains: [...chains.values()].filter(({ entityId }) => changed.has(entityId)), sealed }
}
