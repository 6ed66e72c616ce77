/** One open stream of the feed: what it writes to its reader, and whether that reader keeps up. C-1. */
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { nameOf, type Peer } from "../../http/connectionTable.ts"
import type { Place } from "./cursor.ts"
import type { Waiting } from "./FeedFollower.ts"
import { type FeedFilter, placeOf } from "./FeedRepo.ts"
import type { FeedRow } from "./FeedRow.ts"

/** An idle stream sends its cursor at least this often, in ms. */
const KEEP_ALIVE = 15_000
/** A reader is disconnected if it receives nothing for this long, in ms, while bytes wait, or if this many bytes wait. */
const STALLED = 30_000,
  MOST_WAITING = 1_048_576
/** How often streams are checked, in ms. */
export const LOOK_AFTER = 2_500

const encoder = new TextEncoder()

export class Stream {
  principal: PrincipalState
  readonly filter: FeedFilter
  readonly #cursor: (place: Place) => string
  readonly #leave: () => void
  /** The reader's end of the connection. */
  readonly peer: string | undefined
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

  constructor(
    principal: PrincipalState,
    filter: FeedFilter,
    place: Place,
    peer: Peer | undefined,
    cursor: (place: Place) => string,
    leave: () => void
  ) {
    this.#leave = leave
    this.peer = peer && nameOf(peer)
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
