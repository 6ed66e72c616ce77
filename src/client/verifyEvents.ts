/**
 * Verifies that a copy of an entity's events is complete: the feed's events between two checkpoints are added to the hash
 * chain, and the result is compared with what the service signed. Uses the public API only. C-3, C-9.
 */
import { eachPage } from "./eachPage.ts"
import { NotVerifiable } from "./errors.ts"
import type { Operations } from "./generated/operations.ts"
import type { EventCheckpoint } from "./generated/webhooks.ts"
import { bytesOfHex, hex, isObject, type KeyOptions, type PublishedKeys, sha256, signedClaims, trustedKeys, utf8 } from "./signedClaims.ts"

/** The operations that the verification calls. */
export type Verifier = Pick<Operations, "getSigningKeys" | "listEventCheckpoints" | "getLatestEventCheckpoint" | "readEventFeed">

/** The result of a verification. `from` is the checkpoint that it began at: what came before it is not covered. */
export type Verification =
  | { readonly complete: true; readonly events: number; readonly from: EventCheckpoint | null; readonly to: EventCheckpoint }
  | { readonly complete: false; readonly difference: string }

/** A stored checkpoint: its statement and its signature. */
export type KeptCheckpoint = Pick<EventCheckpoint, "entityId" | "count" | "hash" | "at" | "jws" | "resumeCursor">

/** The hash of an entity's chain after an event: `SHA-256(hash ‖ SHA-256(payload))`, `payload` being the delivered bytes. */
export const chainHash = async (hash: Uint8Array, payload: string | Uint8Array): Promise<Uint8Array> =>
  sha256(hash, await sha256(typeof payload === "string" ? utf8(payload) : payload))

/** The hash of a chain without events. */
export const emptyChain = (): Uint8Array => new Uint8Array(32)

/** A checkpoint without its place in the feed: a statement and its signature. */
export type SignedCheckpoint = Omit<KeptCheckpoint, "resumeCursor">

/** Options of {@link verifyEvents}. */
export interface VerifyEventsOptions extends KeyOptions {
  /** Now, in Unix seconds; default: the clock's. */
  readonly now?: number | undefined
}

/** Most milliseconds between the current checkpoint's time and the clock. */
const CURRENT_MS = 600_000

/** Throws if the current checkpoint is an old one: those are signed too, and what came later would be missing unnoticed. */
const requireCurrent = (to: EventCheckpoint, since: KeptCheckpoint | undefined, now: number): void => {
  const current = `The service returned a checkpoint of ${to.at} as the current one`
  if (since !== undefined && to.at < since.at) throw new NotVerifiable(`${current}, which is before the stored one of ${since.at}.`)
  if (!(Math.abs(now - Date.parse(to.at)) <= CURRENT_MS))
    throw new NotVerifiable(`${current}, but the clock says ${new Date(now).toISOString()}: more than 10 minutes apart.`)
}

/** Whether text is a time as the service writes it, so that times can be compared as text. */
const isTime = (text: unknown): text is string =>
  typeof text === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) && !Number.isNaN(Date.parse(text))

const isCheckpoint = (one: SignedCheckpoint): boolean =>
  isObject(one) &&
  [one.entityId, one.hash, one.jws].every((value) => typeof value === "string") &&
  Number.isSafeInteger(one.count) &&
  isTime(one.at)

/** Why a checkpoint is invalid; undefined if a published key signed its content for this entity. */
export const verifyCheckpoint = async (one: SignedCheckpoint, entityId: string, { keys }: PublishedKeys): Promise<string | undefined> => {
  if (!isCheckpoint(one)) return "a checkpoint has a field that is not valid"
  if (one.entityId !== entityId) return `the checkpoint of ${one.at} is of ${one.entityId} and not of ${entityId}`
  const signed = await signedClaims(one.jws, keys)
  if (signed === undefined) return `the signature of the checkpoint of ${one.at} does not verify`
  const { claims } = signed
  const holds = isObject(claims) && (["entityId", "count", "hash", "at"] as const).every((name) => claims[name] === one[name])
  return holds ? undefined : `the signature of the checkpoint of ${one.at} is for different content`
}

/** The fields of an event that its payload has too, each with its name there. The chain covers the payload only. */
const repeated = [
  ["id", "id"],
  ["kind", "kind"],
  ["schemaVersion", "schemaVersion"],
  ["occurredAt", "date"],
  ["entityId", "entityId"],
  ["vaultIds", "vaultIds"]
] as const

/** Why an event of the feed is not one of the entity with this payload; undefined if it is. */
const eventFault = (event: unknown, entityId: string): string | undefined => {
  const payload = isObject(event) ? event["payload"] : undefined
  if (!isObject(event) || !isObject(payload)) return "an event of the feed has no payload"
  const wrong = repeated.find(([name, inPayload]) => JSON.stringify(event[name]) !== JSON.stringify(payload[inPayload]))
  if (wrong !== undefined) return `the field ${wrong[0]} of the event ${payload["id"]} differs from its payload`
  return payload["entityId"] === entityId ? undefined : `the event ${payload["id"]} is of ${payload["entityId"]} and not of ${entityId}`
}

/**
 * Verifies the events of an entity between two checkpoints: `since`, or else the oldest one still in the log, and the
 * current one. Every field that an event repeats from its payload is compared with it. Rejects with {@link NotVerifiable}
 * if that is not possible, or if the current checkpoint is before `since` or more than 10 minutes from the clock.
 */
export const verifyEvents = async (
  custody: Verifier,
  entityId: string,
  since?: KeptCheckpoint,
  { keys: pinned, now }: VerifyEventsOptions = {}
): Promise<Verification> => {
  if (since !== undefined && !isCheckpoint(since)) throw new NotVerifiable("The stored checkpoint is not a checkpoint.")
  const keys = await trustedKeys(custody, pinned)
  const to = await custody.getLatestEventCheckpoint({ entityId })
  const kept: Array<EventCheckpoint> = []
  for await (const one of custody.listEventCheckpoints({ entityId })) {
    if (one.resumeCursor === null || (since !== undefined && one.at <= since.at)) break
    // A checkpoint sealed between the two requests may count events that the current one does not.
    if (one.count <= to.count) kept.unshift(one)
  }
  const from = since ?? kept.shift() ?? null
  if (from !== null && typeof from.resumeCursor !== "string") throw new NotVerifiable("The starting checkpoint is no longer in the log.")
  for (const one of [...(from === null ? [] : [from]), ...kept, to]) {
    const fault = await verifyCheckpoint(one, entityId, keys)
    if (fault !== undefined) return { complete: false, difference: fault }
  }
  requireCurrent(to, since, now === undefined ? Date.now() : now * 1_000)

  const marks = [...kept, to]
  const seen = new Set<string>()
  let count = from?.count ?? 0,
    hash = from === null ? emptyChain() : bytesOfHex(from.hash),
    last = from?.at ?? "the beginning"
  /** Compares the chain with the checkpoints of its count. */
  const compare = (): string | undefined => {
    for (let mark = marks[0]; mark !== undefined && mark.count <= count; mark = marks[0]) {
      if (mark.count < count || mark.hash !== hex(hash)) return `the events between ${last} and ${mark.at} differ from what was signed`
      last = mark.at
      marks.shift()
    }
    return undefined
  }
  const before = compare()
  if (before !== undefined) return { complete: false, difference: before }
  const read = (cursor: string | undefined) =>
    custody.readEventFeed({ entityId: [entityId], limit: 500, ...(cursor === undefined ? {} : { after: cursor }) })
  for await (const { data } of eachPage(read, from?.resumeCursor ?? undefined)) {
    for (const event of data) {
      const fault = eventFault(event, entityId)
      if (fault !== undefined) return { complete: false, difference: fault }
      if (seen.has(event.id)) return { complete: false, difference: `the event ${event.id} is repeated` }
      seen.add(event.id)
      // An event recorded after the current checkpoint is not in the chain, but none of those before may come again.
      if (count === to.count) continue
      hash = await chainHash(hash, JSON.stringify(event.payload))
      count++
      const difference = compare()
      if (difference !== undefined) return { complete: false, difference }
    }
  }
  if (count < to.count) {
    const missing = to.count - count
    return { complete: false, difference: `${missing} ${missing === 1 ? "event is" : "events are"} missing between ${last} and ${to.at}` }
  }
  // `since` from the caller has the fields of a checkpoint.
  return { complete: true, events: to.count - (from?.count ?? 0), from: from as EventCheckpoint | null, to }
}
