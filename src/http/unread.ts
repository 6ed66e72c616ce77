/**
 * Responses that their clients have not read. They take memory: of the process until the system takes them, then of the system
 * until the client acknowledges them. So what was last sent on each connection counts for its caller and organization until the
 * connection's next request, or until the system says that it was acknowledged, which is looked up only when somebody has reached
 * the limit. Otherwise one key could request pages and read none of them. docs/security.md, T18.
 */

import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import { siteOf } from "./ClientAddress.ts"
import { nameOf, type Peer, unreadPeers } from "./connectionTable.ts"
import { problem } from "./Problem.ts"
import { currentRequest, type RequestState } from "./RequestContext.ts"

/** Most bytes of an organization, and the share of a caller or of the strangers of one site. Each may have one response, whatever its size. */
const LIMIT = 64 * 1_048_576,
  SHARE = 1 / 4
/** Responses of more bytes are streams: the system takes smaller ones at once, whoever reads them, 45 KB with the segments of a network. */
const STREAMED = 32 * 1_024
/** Bytes that are given to a connection at a time. */
const PIECE = 64 * 1_024
/** Milliseconds without progress after which a response breaks off. The listener does not see a client that never began to read. */
const STALLED = 60_000
/** Shortest time between two looks at the system's table of connections, in milliseconds. */
const LOOK = 100
/** Connections beyond those of the last look after which there is another: what was sent on ended connections goes then. */
const CONNECTIONS = 10_000

/** Who gets a response. */
export interface Receiver extends Pick<RequestState, "client" | "keyId" | "organizationId"> {
  readonly peer: Peer
}

interface Sent {
  readonly peer: Peer
  readonly bytes: number
  readonly owners: ReadonlyArray<readonly [name: string, most: number]>
  /** Whether the process has a part of it. */
  isHeld: boolean
}

/** Counts what has not been read of this process's responses. */
export const unreadResponses = (limit = LIMIT, stalled = STALLED, peers = unreadPeers) => {
  const sent = new Map<string, Sent>()
  const unread = new Map<string, number>()
  let looking = Promise.resolve(),
    nextLook = Number.NEGATIVE_INFINITY,
    sizeAtLook = 0

  const ownersOf = ({ client, keyId = "", organizationId }: Receiver): Sent["owners"] =>
    organizationId === undefined
      ? [[`site ${client && siteOf(client)}`, limit * SHARE]]
      : [
          [organizationId, limit],
          [`${organizationId} ${keyId}`, limit * SHARE]
        ]
  const count = ({ bytes, owners }: Sent, sign: 1 | -1) => {
    for (const [name] of owners) {
      const sum = (unread.get(name) ?? 0) + sign * bytes
      if (sum === 0) unread.delete(name)
      else unread.set(name, sum)
    }
  }
  const isFull = ({ bytes, owners }: Sent) =>
    owners.some(([name, most]) => (unread.get(name) ?? 0) > 0 && (unread.get(name) ?? 0) + bytes > most)
  const forget = (connection: string) => {
    const before = sent.get(connection)
    if (before !== undefined && sent.delete(connection)) count(before, -1)
  }

  /** Forgets what was acknowledged. A look is short beside the time to the next. */
  const look = () => {
    const from = performance.now()
    if (from < nextLook) return looking
    nextLook = Number.POSITIVE_INFINITY
    looking = peers().then((waiting) => {
      for (const [connection, { isHeld, peer }] of sent) if (!isHeld && !waiting.has(nameOf(peer))) forget(connection)
      sizeAtLook = sent.size
      const now = performance.now()
      nextLook = now + Math.max(LOOK, 20 * (now - from))
    })
    return looking
  }

  /** Counts a response; undefined if its receiver has too much else to read. */
  const enter = (receiver: Receiver, bytes: number, isHeld: boolean): Sent | undefined => {
    const { peer } = receiver
    const connection = `${peer.address} ${peer.port}`
    forget(connection)
    const one: Sent = { peer, bytes, owners: ownersOf(receiver), isHeld }
    if (isFull(one)) return undefined
    sent.set(connection, one)
    count(one, 1)
    if (sent.size > 2 * sizeAtLook + CONNECTIONS) void look()
    return one
  }

  /** A body that the process holds until the system has taken it. */
  const streamOf = (one: Sent, body: Uint8Array): ReadableStream<Uint8Array> => {
    let rest = body
    let watch: Timer | undefined
    const end = () => {
      clearTimeout(watch)
      rest = new Uint8Array()
      one.isHeld = false
    }
    return new ReadableStream<Uint8Array>(
      {
        start(controller) {
          const breakOff = () => {
            controller.error(new Error("the client does not read the response"))
            end()
          }
          watch = setTimeout(breakOff, stalled)
        },
        pull(controller) {
          watch?.refresh()
          if (rest.length > 0) {
            controller.enqueue(rest.subarray(0, PIECE))
            rest = rest.subarray(PIECE)
          } else {
            // Asked for more: the last piece has been taken.
            end()
            controller.close()
          }
        },
        cancel: end
      },
      { highWaterMark: 0 }
    )
  }

  return { enter, look, streamOf }
}

const unread = unreadResponses()

const tooMuch = () =>
  problem("service_unavailable", "Too many of your responses were not read yet. Read them, and try again.", {
    headers: { "retry-after": "1" }
  })

/** The response, counted, and a large one as a stream. Fails with 503 `service_unavailable` if its receiver has too much else to read. */
export const asRead = (response: HttpServerResponse.HttpServerResponse) => {
  const { body } = response
  const whole = body._tag === "Uint8Array" || body._tag === "Raw" ? body.body : undefined
  const isShared = whole instanceof Blob
  if (!(typeof whole === "string" || whole instanceof Uint8Array || isShared)) return Effect.succeed(response)
  return Effect.flatMap(currentRequest, ({ client, keyId, organizationId, peer }) => {
    if (peer === undefined) return Effect.succeed(response)
    const bytes = isShared ? whole.size : Buffer.byteLength(whole)
    const isHeld = !isShared && bytes > STREAMED
    const enter = () => unread.enter({ client, keyId, organizationId, peer }, bytes, isHeld)
    const answer = (one: Sent) =>
      isHeld
        ? HttpServerResponse.setBody(response, HttpBody.raw(unread.streamOf(one, typeof whole === "string" ? Buffer.from(whole) : whole)))
        : response
    const one = enter()
    if (one !== undefined) return Effect.succeed(answer(one))
    return Effect.flatMap(Effect.promise(unread.look), () => {
      const again = enter()
      return again === undefined ? tooMuch() : Effect.succeed(answer(again))
    })
  })
}
