/**
 * Verifies that a copy of an entity's events is complete: the feed's events between two checkpoints are added to the hash
 * chain, and the result is compared with what the service signed. Uses the public API only. C-3.
 */
import { createHash, createPublicKey, verify } from "node:crypto"
import type { Operations } from "./generated/operations.ts"
import type { EventCheckpoint } from "./generated/webhooks.ts"

/** The operations that the verification calls. */
export type Verifier = Pick<Operations, "getSigningKeys" | "listEventCheckpoints" | "getLatestEventCheckpoint" | "readEventFeed">

/** The result of a verification. */
export type Verification =
  | { readonly complete: true; readonly events: number; readonly from: EventCheckpoint | null; readonly to: EventCheckpoint }
  | { readonly complete: false; readonly difference: string }

/** The verification was not possible; `message` is the reason. */
export class NotVerifiable extends Error {
  override readonly name = "NotVerifiable"
}

/** A stored checkpoint: its statement and its signature. */
export type KeptCheckpoint = Pick<EventCheckpoint, "entityId" | "count" | "hash" | "at" | "jws" | "resumeCursor">

const sha256 = (...parts: ReadonlyArray<Uint8Array | string>): Buffer => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** The hash of an entity's chain after an event: `SHA-256(hash ‖ SHA-256(payload))`, `payload` being the delivered bytes. */
export const chainHash = (hash: Uint8Array, payload: string | Uint8Array): Buffer => sha256(hash, sha256(payload))

/** The hash of a chain without events. */
export const emptyChain = (): Buffer => Buffer.alloc(32)

/** The fields of a published public key that verification uses. */
interface PublishedKey {
  readonly kty: string
  readonly crv: string
  readonly kid: string
  readonly x: string
}

const json = (part: string): unknown => JSON.parse(Buffer.from(part, "base64url").toString())

/** The payload of a compact JWS signed by one of the keys with Ed25519. Throws if it does not verify. */
const stated = (jws: string, keys: ReadonlyArray<PublishedKey>): unknown => {
  const [head = "", body = "", signature = "", ...rest] = jws.split(".")
  const header = json(head)
  const is = (name: string, value: unknown) => typeof header === "object" && header !== null && Reflect.get(header, name) === value
  const key = keys.find(({ crv, kid, kty }) => kty === "OKP" && crv === "Ed25519" && kid !== undefined && is("kid", kid))
  if (key === undefined || rest.length > 0 || !is("alg", "EdDSA")) throw new NotVerifiable("The signature is not from a published key.")
  const publicKey = createPublicKey({ key: { kty: key.kty, crv: key.crv, x: key.x }, format: "jwk" })
  if (!verify(null, Buffer.from(`${head}.${body}`), publicKey, Buffer.from(signature, "base64url")))
    throw new NotVerifiable("The signature does not verify.")
  return json(body)
}

/** A checkpoint without its place in the feed: a statement and its signature. */
export type SignedCheckpoint = Omit<KeptCheckpoint, "resumeCursor">

/** The published keys, as `getSigningKeys` returns them. */
export interface PublishedKeys {
  readonly keys: ReadonlyArray<PublishedKey>
}

/** Why a checkpoint is invalid; undefined if a published key signed its content for this entity. */
export const verifyCheckpoint = (one: SignedCheckpoint, entityId: string, { keys }: PublishedKeys): string | undefined => {
  if (one.entityId !== entityId) return `the checkpoint of ${one.at} is of ${one.entityId} and not of ${entityId}`
  try {
    const says = stated(one.jws, keys)
    const fields = ["entityId", "count", "hash", "at"] as const
    const holds = typeof says === "object" && says !== null && fields.every((name) => Reflect.get(says, name) === one[name])
    return holds ? undefined : `the signature of the checkpoint of ${one.at} is for different content`
  } catch {
    return `the signature of the checkpoint of ${one.at} does not verify`
  }
}

const isKept = (one: KeptCheckpoint): boolean =>
  typeof one === "object" &&
  one !== null &&
  [one.entityId, one.hash, one.at, one.jws].every((value) => typeof value === "string") &&
  typeof one.count === "number"

/**
 * Verifies the events of an entity between two checkpoints: `since`, or else the oldest one still in the log, and the
 * current one. Rejects with {@link NotVerifiable} if that is not possible.
 */
export const verifyEvents = async (custody: Verifier, entityId: string, since?: KeptCheckpoint): Promise<Verification> => {
  if (since !== undefined && !isKept(since)) throw new NotVerifiable("The stored checkpoint is not a checkpoint.")
  const keys = await custody.getSigningKeys()
  const to = await custody.getLatestEventCheckpoint({ entityId })
  const kept: Array<EventCheckpoint> = []
  for await (const one of custody.listEventCheckpoints({ entityId })) {
    if (one.resumeCursor === null || (since !== undefined && one.at <= since.at)) break
    // A checkpoint sealed between the two requests may count events that the current one does not.
    if (one.count <= to.count) kept.unshift(one)
  }
  const from = since ?? kept.shift() ?? null
  if (from !== null && from.resumeCursor === null) throw new NotVerifiable("The starting checkpoint is no longer in the log.")
  for (const one of [...(from === null ? [] : [from]), ...kept, to]) {
    const fault = verifyCheckpoint(one, entityId, keys)
    if (fault !== undefined) return { complete: false, difference: fault }
  }

  const marks = [...kept, to]
  const seen = new Set<string>()
  let count = from?.count ?? 0,
    hash: Buffer = from === null ? emptyChain() : Buffer.from(from.hash, "hex"),
    last = from?.at ?? "the beginning",
    after = from?.resumeCursor ?? undefined
  /** Compares the chain with the checkpoints of its count. */
  const compare = (): string | undefined => {
    for (let mark = marks[0]; mark !== undefined && mark.count <= count; mark = marks[0]) {
      if (mark.count < count || mark.hash !== hash.toString("hex"))
        return `the events between ${last} and ${mark.at} differ from what was signed`
      last = mark.at
      marks.shift()
    }
    return undefined
  }
  for (;;) {
    const before = compare()
    if (before !== undefined) return { complete: false, difference: before }
    if (count === to.count) break
    const page = await custody.readEventFeed({ entityId: [entityId], limit: 500, ...(after === undefined ? {} : { after }) })
    for (const { id, payload } of page.data) {
      if (count === to.count) break
      if (seen.has(id)) return { complete: false, difference: `the event ${id} is repeated` }
      seen.add(id)
      hash = chainHash(hash, JSON.stringify(payload))
      count++
      const difference = compare()
      if (difference !== undefined) return { complete: false, difference }
    }
    if (count < to.count && page.pagination.nextCursor === null) {
      const missing = to.count - count
      return { complete: false, difference: `${missing} ${missing === 1 ? "event is" : "events are"} missing between ${last} and ${to.at}` }
    }
    after = page.resumeCursor
  }
  // `since` from the caller has the fields of a checkpoint.
  return { complete: true, events: to.count - (from?.count ?? 0), from: from as EventCheckpoint | null, to }
}
