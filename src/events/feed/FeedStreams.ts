/**
 * The feed as server-sent events. A stream first reads recorded events in pages, no faster than its reader receives them,
 * and then waits for new ones (FeedFollower.ts). It ends when its key is rejected, when its reader does not keep up, and
 * when the process stops: always with a comment that has the cursor to resume from. C-1.
 */
import { edenGC } from "bun:jsc"
import { Effect, Metric, Option } from "effect"
import { KeyChecks } from "../../access/credentials/KeyChecks.ts"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { Admission } from "../../access/visibility/Admission.ts"
import { type ProblemOf, problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { type Place, seal } from "./cursor.ts"
import { FeedFollower, type Waiting } from "./FeedFollower.ts"
import { type FeedFilter, FeedRepo, placeOf } from "./FeedRepo.ts"
import type { FeedRow } from "./FeedRow.ts"
import { OpenReaders } from "./OpenReaders.ts"

/** Events per page while a stream reads recorded events. */
const PAGE = 100
/** An idle stream sends its cursor at least this often, in ms. */
const KEEP_ALIVE = 15_000
/** A reader is disconnected if it receives nothing for this long, in ms, while bytes wait, or if this many bytes wait. */
const STALLED = 30_000,
  MOST_WAITING = 1_048_576
/** Idle timeout of a stream's connection in seconds: longer than it takes this service to end a stalled stream. */
const IDLE = 60
/** How often streams are checked, in ms. */
const LOOK_AFTER = 2_500
/**
 * Opened streams after which the garbage of opening them is collected. The runtime alone would wait until memory has
 * doubled, and would not release all of it: a thousand streams would keep twice as much as they need.
 */
const COLLECT_AFTER = 50
/** Longest lifetime of a portal session's stream, in ms: access is evaluated again when it reconnects. */
const SESSION = 4_000

const open = Metric.gauge("custody_feed_streams", { description: "Open streams of the event feed" })

const encoder = new TextEncoder()

/** One open stream. */
class Stream {
  principal: PrincipalState
  readonly filter: FeedFilter
  readonly #cursor: (place: Place) => string
  readonly #leave: () => void
  place: Place
  readonly startedAt = performance.now()
  controller: ReadableStreamDefaultController<Uint8Array> | undefined
  waiting: Waiting | undefined
  ended = false
  #taken = { bytes: 0, at: performance.now() }
  #written = 0
  #saidAt = performance.now()
  /** Called when the reader has received everything. */
  onTaken: () => void = () => {}

  constructor(principal: PrincipalState, filter: FeedFilter, place: Place, cursor: (place: Place) => string, leave: () => void) {
    this.#leave = leave
    this.principal = principal
    this.filter = filter
    this.place = place
    this.#cursor = cursor
  }

  /** Bytes that the reader has not received yet. */
  get backlog(): number {
    return Math.max(0, -(this.controller?.desiredSize ?? 0))
  }

  write(text: string): void {
    if (this.ended || this.controller === undefined) return
    const bytes = encoder.encode(text)
    this.#written += bytes.byteLength
    this.#saidAt = performance.now()
    try {
      this.controller.enqueue(bytes)
    } catch {
      this.ended = true
    }
  }

  events(rows: ReadonlyArray<FeedRow>): void {
    let text = ""
    for (const row of rows) text += `id: ${this.#cursor(placeOf(row))}\nevent: webhook-event\ndata: ${row.json}\n\n`
    if (text !== "") this.write(text)
  }

  comment(): void {
    this.write(`: at ${this.#cursor(this.place)}\n\n`)
  }

  /** Whether the reader keeps up. */
  keepsUp(now: number): boolean {
    const taken = this.#written - this.backlog
    if (taken !== this.#taken.bytes || this.backlog === 0) this.#taken = { bytes: taken, at: now }
    return this.backlog < MOST_WAITING && now - this.#taken.at < STALLED
  }

  /** Marks it as ended, and gives its place to others. */
  release(): void {
    this.ended = true
    this.#leave()
  }

  isSilent(now: number): boolean {
    return now - this.#saidAt > KEEP_ALIVE - LOOK_AFTER
  }
}

export class FeedStreams extends Effect.Service<FeedStreams>()("custody/FeedStreams", {
  scoped: Effect.gen(function* () {
    const master = yield* MasterKey
    const feed = yield* FeedRepo
    const follower = yield* FeedFollower
    const keys = yield* KeyChecks
    const { admitPatiently } = yield* Admission
    const streams = new Set<Stream>()
    const readers = yield* OpenReaders
    let stopping = false
    let opened = 0

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

    /** Ends a stream whose reader does not keep up. */
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
          const { keyId } = stream.principal
          if (keyId !== null && performance.now() - checkedAt > 1_000) {
            const current = (yield* keys.current([stream.principal])).get(stream.principal)
            if (current?.scopes.has("webhook:read") !== true) return end(stream)
            stream.principal = current
            checkedAt = performance.now()
          }
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
        else if (stream.principal.keyId === null && now - stream.startedAt > SESSION) end(stream)
        else if (stream.isSilent(now)) stream.comment()
      }
    }, LOOK_AFTER)

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
          ;(yield* currentRequest).allowIdle(IDLE)
          const stream = new Stream(principal, filter, place, (at) => seal(master, principal.organizationId, at), leave)
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
