/**
 * Responses that their clients have not read. They take memory: of the process until the system takes them, then of the system
 * until the client acknowledges them. So they count for their caller and organization until the system says that they were
 * acknowledged, which is looked up only when somebody has reached the limit. Otherwise one key could request pages and read none of
 * them, or end its half of a stream's connection and leave what was sent to the system. docs/security.md, T18.
 */

import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import { networkOf, siteOf } from "./ClientAddress.ts"
import { nameOf, type Peer, unacknowledged } from "./connectionTable.ts"
import { problem } from "./Problem.ts"
import { currentRequest, type RequestState } from "./RequestContext.ts"

/**
 * Most bytes of an organization, or of the strangers of a site, and the largest share of one of its callers or networks. A caller always
 * has its own share, whatever the others of its organization leave unread, and may always have one response of any size.
 */
const LIMIT = 64 * 1_048_576,
  SHARE = 1 / 4,
  OWN_SHARE = 1 / 64
/** Responses of more bytes are streams: the system takes smaller ones at once, whoever reads them, 45 KB with the segments of a network. */
const STREAMED = 32 * 1_024
/** Bytes that the headers of a response have, about. */
const HEADERS = 512
/** Bytes that are given to a connection at a time. */
const PIECE = 64 * 1_024
/** Milliseconds without progress after which a response breaks off. The listener does not see a client that never began to read. */
const STALLED = 60_000
/** Time between two looks at the system's table of connections: at least so many milliseconds, and so many times as long as a look. */
const LOOK_MS = 10,
  LOOK_TIMES = 10
/** Connections beyond those of the last look after which there is another: what was sent on ended connections goes then. */
const CONNECTIONS = 10_000

/** Who gets a response. */
export interface Receiver extends Pick<RequestState, "client" | "keyId" | "organizationId" | "userId"> {
  readonly peer: Peer
}

/** What was sent on a connection. */
interface Sent {
  /** Of the connection and its owners: a proxy's connection has requests of several. */
  readonly name: string
  readonly peer: Peer
  /** The caller and its organization, or the network and the site of a stranger. */
  readonly owners: readonly [one: string, all: string]
  /** Bytes in the process. */
  held: number
  /** Bytes that the system has taken, less those of which it said that they were acknowledged. */
  taken: number
}

/** Counts what has not been read of this process's responses. */
export const unreadResponses = (limit = LIMIT, stalled = STALLED, queues = unacknowledged) => {
  /** By name, in the order in which something was last sent. */
  const sent = new Map<string, Sent>()
  const unread = new Map<string, number>()
  let nextLook = Number.NEGATIVE_INFINITY,
    sizeAtLook = 0

  const ownersOf = ({ client, keyId, organizationId, userId }: Receiver): Sent["owners"] =>
    organizationId === undefined
      ? [`network ${client && networkOf(client)}`, `site ${client && siteOf(client)}`]
      : [`caller ${keyId ?? userId}`, organizationId]
  const change = (one: Sent, held: number, taken: number) => {
    one.held += held
    one.taken += taken
    for (const name of one.owners) {
      const sum = (unread.get(name) ?? 0) + held + taken
      if (sum === 0) unread.delete(name)
      else unread.set(name, sum)
    }
  }
  /** Counts what is sent now. The last look may have forgotten what a stream sent before. */
  const add = (given: Sent, held: number, taken: number) => {
    const one = sent.get(given.name) ?? given
    sent.delete(one.name)
    sent.set(one.name, one)
    change(one, held, taken)
  }
  const isFull = ({ organizationId }: Receiver, [one, all]: Sent["owners"], bytes: number) => {
    const before = unread.get(one) ?? 0
    const fits = before === 0 || before + bytes <= limit * OWN_SHARE
    // A site has any number of networks: they have no share of their own.
    if (fits && organizationId !== undefined) return false
    return (before > 0 && before + bytes > limit * SHARE) || (unread.get(all) ?? 0) + bytes > limit
  }

  /** Forgets what was acknowledged. */
  const look = () => {
    const from = performance.now()
    if (from < nextLook) return
    const waiting = new Map(queues())
    // What waits on a connection is what was sent last.
    for (const one of [...sent.values()].reverse()) {
      const connection = nameOf(one.peer)
      const queue = waiting.get(connection) ?? 0
      const taken = Math.min(one.taken, queue)
      waiting.set(connection, queue - taken)
      change(one, 0, taken - one.taken)
      if (one.held + one.taken === 0) sent.delete(one.name)
    }
    sizeAtLook = sent.size
    const now = performance.now()
    nextLook = now + Math.max(LOOK_MS, LOOK_TIMES * (now - from))
  }

  /** Counts a response, which the process holds or the system takes at once; undefined if its receiver has too much else to read. */
  const enter = (receiver: Receiver, bytes: number, isHeld: boolean): Sent | undefined => {
    const { peer } = receiver
    const owners = ownersOf(receiver)
    const name = `${peer.address} ${peer.port} ${owners[0]}`
    if (isFull(receiver, owners, bytes) || sent.size > 2 * sizeAtLook + CONNECTIONS) look()
    if (isFull(receiver, owners, bytes)) return undefined
    const one = sent.get(name) ?? { name, peer, owners, held: 0, taken: 0 }
    add(one, isHeld ? bytes : 0, isHeld ? 0 : bytes)
    return one
  }

  /** A body that the process holds until the system has taken it. */
  const streamOf = (one: Sent, body: Uint8Array): ReadableStream<Uint8Array> => {
    let rest: Uint8Array | undefined = body
    let watch: Timer | undefined
    const end = () => {
      clearTimeout(watch)
      if (rest === undefined) return
      rest = undefined
      add(one, -body.length, body.length)
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
          if (rest === undefined) return
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

  /** A stream of unknown length, of which each piece counts once the system has taken it. Before, its source limits it. */
  const passedOn = (one: Sent, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> => {
    const reader = body.getReader()
    let last = 0
    const taken = () => {
      if (last > 0) add(one, 0, last)
      last = 0
    }
    return new ReadableStream<Uint8Array>(
      {
        start(controller) {
          // Also if the connection does not ask for more.
          reader.closed.catch((error) => {
            taken()
            controller.error(error)
          })
        },
        async pull(controller) {
          taken()
          const { done, value } = await reader.read()
          if (done) return controller.close()
          last = value.length
          controller.enqueue(value)
        },
        cancel(reason) {
          taken()
          return reader.cancel(reason)
        }
      },
      { highWaterMark: 0 }
    )
  }

  /** Milliseconds until the next look. */
  const untilLook = () => Math.max(0, nextLook - performance.now())

  return { enter, streamOf, passedOn, untilLook }
}

const unread = unreadResponses()

const tooMuch = () =>
  problem("service_unavailable", "Too many of your responses were not read yet. Read them, and try again.", {
    headers: { "retry-after": "1" }
  })

/** Counts a response of this many bytes without its headers; undefined without a socket or if its receiver has too much else to read. */
const counted = ({ client, keyId, organizationId, peer, userId }: RequestState, bytes: number, isHeld: boolean) =>
  peer && unread.enter({ client, keyId, organizationId, userId, peer }, isHeld ? bytes : HEADERS + bytes, isHeld)

/**
 * The response, counted, and a large one as a stream. Fails with 503 `service_unavailable` if its receiver has too much else to read,
 * unless the request changed something.
 */
export const asRead = (response: HttpServerResponse.HttpServerResponse, method: string) => {
  if (method !== "GET" && method !== "HEAD") return lastIfUnread(response)
  const { body } = response
  const given = method === "GET" && (body._tag === "Uint8Array" || body._tag === "Raw") ? body.body : undefined
  const stream = given instanceof ReadableStream ? given : undefined
  const whole = typeof given === "string" || given instanceof Uint8Array ? given : undefined
  // All readers of a `Blob` share it.
  const bytes = given instanceof Blob ? given.size : whole === undefined ? 0 : Buffer.byteLength(whole)
  const isHeld = whole !== undefined && bytes > STREAMED
  const streamed = (one: Sent) => {
    if (stream !== undefined) return unread.passedOn(one, stream)
    return isHeld ? unread.streamOf(one, typeof whole === "string" ? Buffer.from(whole) : whole) : undefined
  }
  return Effect.flatMap(currentRequest, (state) => {
    if (state.peer === undefined) return Effect.succeed(response)
    const answer = (one: Sent) => {
      const sending = streamed(one)
      return Effect.succeed(sending === undefined ? response : HttpServerResponse.setBody(response, HttpBody.raw(sending)))
    }
    const one = counted(state, bytes, isHeld)
    if (one !== undefined) return answer(one)
    // What a client has read meanwhile is only known after the next look.
    return Effect.delay(
      Effect.suspend(() => {
        const later = counted(state, bytes, isHeld)
        return later === undefined ? tooMuch() : answer(later)
      }),
      unread.untilLook() + 1
    ).pipe(Effect.onError(() => Effect.promise(async () => stream?.cancel())))
  })
}

/** A response that cannot be refused, counted. If its receiver has too much to read, it is the connection's last. */
export const lastIfUnread = (response: HttpServerResponse.HttpServerResponse) =>
  Effect.map(currentRequest, (state) =>
    state.peer === undefined || counted(state, response.body.contentLength ?? 0, false) !== undefined
      ? response
      : HttpServerResponse.setHeader(response, "connection", "close")
  )
