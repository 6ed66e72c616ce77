/**
 * Large responses, sent as their clients read them. What a client has not read takes memory of the process, so an organization has a
 * limit of it: otherwise one key could request large pages and read none of them. docs/security.md, T18.
 */

import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import { problem } from "./Problem.ts"
import { currentRequest } from "./RequestContext.ts"

/** Responses of more bytes are counted. Smaller ones fit into the buffers of a connection. */
const LARGE = 256 * 1_024
/** Bytes that are given to a connection at a time. */
const PIECE = 64 * 1_024
/** Most bytes of an organization's large responses that are not sent to their end; one response is always sent. */
const LIMIT = 64 * 1_048_576
/** Milliseconds without progress after which a response breaks off. The listener does not see a client that never began to read. */
const STALLED = 60_000

/** Counts what has not been read in this process. */
export const unreadBodies = (limit = LIMIT, stalled = STALLED) => {
  const unread = new Map<string, number>()
  const add = (owner: string, bytes: number) => {
    const sum = (unread.get(owner) ?? 0) + bytes
    if (sum === 0) unread.delete(owner)
    else unread.set(owner, sum)
  }

  /** A stream of the body; undefined if its owner has too much else to read. */
  return (owner: string, body: Uint8Array): ReadableStream<Uint8Array> | undefined => {
    const before = unread.get(owner) ?? 0
    if (before > 0 && before + body.length > limit) return undefined
    add(owner, body.length)
    let rest: Uint8Array | undefined = body
    let watch: Timer | undefined
    const end = () => {
      clearTimeout(watch)
      if (rest === undefined) return
      rest = undefined
      add(owner, -body.length)
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
          controller.enqueue(rest.subarray(0, PIECE))
          rest = rest.subarray(PIECE)
          if (rest.length > 0) return
          end()
          controller.close()
        },
        cancel: end
      },
      { highWaterMark: 0 }
    )
  }
}

const streamOf = unreadBodies()

/** The response; a large one as a stream. Fails with 503 `service_unavailable` if its organization has too much else to read. */
export const asRead = (response: HttpServerResponse.HttpServerResponse) => {
  const { body } = response
  const whole = body._tag === "Uint8Array" || body._tag === "Raw" ? body.body : undefined
  if (!(typeof whole === "string" || whole instanceof Uint8Array) || whole.length <= LARGE) return Effect.succeed(response)
  return Effect.flatMap(currentRequest, ({ organizationId = "" }) => {
    const stream = streamOf(organizationId, typeof whole === "string" ? Buffer.from(whole) : whole)
    return stream === undefined
      ? problem("service_unavailable", "Your organization has too many large responses that were not read yet. Read them, and try again.", {
          headers: { "retry-after": "1" }
        })
      : Effect.succeed(HttpServerResponse.setBody(response, HttpBody.raw(stream)))
  })
}
