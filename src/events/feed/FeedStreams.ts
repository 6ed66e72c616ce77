/**
 * The feed as server-sent events. A stream first reads recorded events in pages, no faster than its reader receives them,
 * and then waits for new ones (FeedFollower.ts). It ends when its key or session is rejected, after an hour, and when the process stops:
 * always with a comment that has the cursor to resume from. It is disconnected when its reader does not keep up or has
 * vanished. C-1.
 */
import { edenGC } from "bun:jsc"
import { Effect, Metric, Option, Schedule } from "effect"
import { AccessChecks } from "../../access/credentials/AccessChecks.ts"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { Admission } from "../../access/visibility/Admission.ts"
import { vanishedPeers } from "../../http/connectionTable.ts"
import { type ProblemOf, problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { type Place, seal } from "./cursor.ts"
import { FeedFollower, type Waiting } from "./FeedFollower.ts"
import { type FeedFilter, FeedRepo } from "./FeedRepo.ts"
import { OpenReaders } from "./OpenReaders.ts"
import { LOOK_AFTER, Stream } from "./Stream.ts"

/** Events per page while a stream reads recorded events. */
const PAGE = 100
/** Idle timeout of a stream's connection in seconds: longer than it takes this service to end a stalled stream. */
const IDLE = 60
/** How often readers are looked for that have vanished, in ms. */
const LOOK_FOR_READERS = 10_000
/**
 * Opened streams after which the garbage of opening them is collected. The runtime alone would wait until memory has
 * doubled, and would not release all of it: a thousand streams would keep twice as much as they need.
 */
const COLLECT_AFTER = 50
/** Longest lifetime of a stream, in ms. It bounds what a reader costs that vanished behind a proxy, or where the system does not tell. */
const LONGEST = 3_600_000

const open = Metric.gauge("custody_feed_streams", { description: "Open streams of the event feed" })

export class FeedStreams extends Effect.Service<FeedStreams>()("custody/FeedStreams", {
  scoped: Effect.gen(function* () {
    const master = yield* MasterKey
    const feed = yield* FeedRepo
    const follower = yield* FeedFollower
    const access = yield* AccessChecks
    const { admitPatiently } = yield* Admission
    const streams = new Set<Stream>()
    const readers = yield* OpenReaders
    let stopping = false
    let opened = 0
    // Exported from the start, and by processes of the API only: an alert asks whether any is there.
    open.unsafeUpdate(0, [])

    const release = (stream: Stream) => {
      if (!streams.delete(stream)) return
      stream.release()
      if (stream.waiting !== undefined) follower.leave(stream.waiting)
      stream.waiting = undefined
      open.unsafeUpdate(streams.size, [])
      stream.onTaken()
    }

    /** Ends a stream gracefully, with the cursor to resume from. */
    const end = (stream: Stream) => {
      if (!stream.ended) stream.comment()
      release(stream)
      try {
        stream.controller?.close()
      } catch {
        // The reader disconnected first.
      }
    }

    /** Ends a stream whose reader does not keep up, or has vanished. */
    const disconnect = (stream: Stream) => {
      release(stream)
      stream.controller?.error(new Error("the reader did not keep up"))
    }

    const taken = (stream: Stream) =>
      Effect.async<void>((resume) => {
        stream.onTaken = () => {
          if (!stream.ended && stream.backlog > 0) return
          stream.onTaken = () => {}
          resume(Effect.void)
        }
        stream.onTaken()
      })

    /** Reads from the stream's position to the end of recorded events, and then waits for more. */
    const follow = (stream: Stream): Effect.Effect<void> =>
      Effect.gen(function* () {
        let checkedAt = performance.now()
        while (!stream.ended) {
          yield* taken(stream)
          if (performance.now() - checkedAt > 1_000) {
            const current = (yield* access.current([stream.principal])).get(stream.principal)
            if (current?.scopes.has("webhook:read") !== true) return end(stream)
            stream.principal = current
            checkedAt = performance.now()
          }
          // The database was restored to an earlier time: the reader learns it from its cursor.
          if (!(yield* feed.has(stream.principal.organizationId, stream.place))) return end(stream)
          // A stream that ended while it waited for its turn no longer reads.
          const read = Effect.suspend(() =>
            stream.ended ? Effect.succeedNone : Effect.asSome(feed.page(stream.principal, stream.filter, stream.place, PAGE))
          )
          const page = Option.getOrUndefined(yield* admitPatiently(stream.principal, read))
          if (page === undefined || stream.ended) return
          stream.events(page.rows)
          stream.place = page.place
          if (page.more) continue
          if (join(stream)) return
        }
      }).pipe(
        // An unavailable database ends the stream: the reader reconnects with its cursor.
        Effect.catchAllCause((cause) => Effect.as(Effect.logWarning("a stream of the event feed was ended", cause), end(stream)))
      )

    const join = (stream: Stream): boolean => {
      const waiting: Waiting = {
        principal: stream.principal,
        filter: stream.filter,
        place: stream.place,
        onEvents: (rows) => {
          stream.place = waiting.place
          stream.events(rows)
        },
        onBehind: () => {
          stream.place = waiting.place
          stream.waiting = undefined
          follower.run(follow(stream))
        },
        onRefused: () => {
          stream.waiting = undefined
          end(stream)
        }
      }
      stream.waiting = waiting
      if (follower.join(waiting)) return true
      stream.waiting = undefined
      return false
    }

    const lookAfter = setInterval(() => {
      const now = performance.now()
      for (const stream of streams) {
        if (stream.waiting !== undefined) {
          stream.place = stream.waiting.place
          stream.principal = stream.waiting.principal
        }
        if (!stream.keepsUp(now)) disconnect(stream)
        else if (now - stream.startedAt > LONGEST) end(stream)
        else if (stream.isSilent(now)) stream.comment()
      }
    }, LOOK_AFTER)

    yield* Effect.forkScoped(
      Effect.schedule(
        Effect.suspend(() => {
          if (streams.size === 0) return Effect.void
          return Effect.map(Effect.sync(vanishedPeers), (vanished) => {
            for (const stream of streams) if (stream.peer !== undefined && vanished.has(stream.peer)) disconnect(stream)
          })
        }),
        Schedule.spaced(LOOK_FOR_READERS)
      )
    )

    /** Ends every stream and rejects new ones. */
    const stop = () => {
      stopping = true
      follower.stop()
      clearInterval(lookAfter)
      for (const stream of [...streams]) end(stream)
    }
    yield* Effect.addFinalizer(() => Effect.sync(stop))

    return {
      stop,

      /** A stream from a position, or from the beginning of the log. */
      open: (
        principal: PrincipalState,
        filter: FeedFilter,
        place: Place
      ): Effect.Effect<ReadableStream<Uint8Array>, ProblemOf<"too_many_streams" | "service_unavailable">> =>
        Effect.gen(function* () {
          if (stopping) return yield* problem("service_unavailable", "The service is stopping.", { headers: { "retry-after": "1" } })
          const leave = yield* readers.enter("stream", principal)
          const request = yield* currentRequest
          request.allowIdle(IDLE)
          const stream = new Stream(principal, filter, place, request.peer, (at) => seal(master, principal.organizationId, at), leave)
          streams.add(stream)
          if (++opened % COLLECT_AFTER === 0) setImmediate(edenGC)
          open.unsafeUpdate(streams.size, [])
          const body = new ReadableStream<Uint8Array>(
            {
              start: (controller) => {
                stream.controller = controller
                stream.comment()
                follower.run(follow(stream))
              },
              pull: () => stream.onTaken(),
              cancel: () => release(stream)
            },
            // The server would reserve a high water mark as a buffer of the connection.
            { highWaterMark: 0, size: (chunk) => chunk?.byteLength ?? 0 }
          )
          return body
        })
    }
  })
}) {
  static readonly layer = this.Default
}
