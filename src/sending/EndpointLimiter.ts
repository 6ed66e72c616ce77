/**
 * Admission at the endpoints. A webhook has at most 8 attempts in flight in a process, so that one endpoint never takes
 * the room of another. Past that a few attempts wait in line for the next room, and all others are told when to come
 * again, so that a dead endpoint with thousands of deliveries costs a few steps a second and not thousands. Finding no
 * room uses up no attempt.
 *
 * A delivery keeps its place: whenever it asks, it is behind what was due before it and ahead of what was due after it,
 * however often it was woken or sent away. It is told to come as long before its turn as the line covers, so that a slow
 * endpoint always has its next request at hand.
 *
 * What an endpoint took lately also decides where its attempts run: inside a workflow task, which is cheap and must
 * not take long, or on a queue for what may. An endpoint that was fast is not any more from the moment on that an
 * attempt at it hangs. Reliability F26, F27.
 */
import { Effect } from "effect"
import * as Id from "../values/Id.ts"
import { insert, type Place, precedes, remove, WaitingList } from "./WaitingList.ts"

/** Attempts in flight for one webhook in one process. */
export const PER_WEBHOOK = 8
/** Attempts inside workflow tasks of endpoints that have not proved to be fast, in one process. */
const UNPROVEN = 64
/** An endpoint whose answers take less than this on average is fast, in ms. */
const FAST_MS = 500
/** An attempt in flight for longer than this says that its endpoint is not fast now, in ms. */
const HANGS_MS = 1_000
/** Time that the line covers, and the fewest and most attempts that wait in it. */
const COVERED_MS = 2_000,
  LINE_MIN = 2,
  LINE_MAX = 64
/** Longest wait in line, in ms, at a fast endpoint and at any other. */
const LINE_MS = 2_000,
  SLOW_LINE_MS = 10_000
/** Shortest and longest wait of what is told to come again, in ms. */
const MIN_WAIT = 250,
  MAX_WAIT = 1_800_000
/** A wait that is longer than this, in ms, is cut to a part of it. */
const SURE_MS = 5_000,
  EARLY = 0.75
/** Least time between two turns, in ms. */
const SPACING = 20
/** Endpoints that are remembered; a forgotten one merely has to prove itself again. */
const REMEMBERED = 20_000

interface InFlight {
  readonly since: number
}

/** An attempt that waits in line. */
interface InLine extends Place {
  readonly enter: () => void
  /** Sends it away, as another one takes its place. */
  readonly leave: () => void
}

interface Endpoint {
  /** The attempts in flight, oldest first. */
  readonly inFlight: Set<InFlight>
  /** Whether an attempt is finding out, inside a workflow task, how fast the endpoint is. */
  probing: boolean
  /** Moving average of latencies in ms; undefined before the first answer. */
  average: number | undefined
  /** What waits in line, the first to go first. */
  readonly line: Array<InLine>
  /** What was told to come again. */
  readonly away: WaitingList
}

/** Who asks for room. */
export interface Asking {
  readonly webhookId: string
  readonly deliveryId: string
  /** Whether it is the delivery's first attempt, which was due when its event was recorded. */
  readonly first: boolean
  /** Whether it asks inside a workflow task. */
  readonly local: boolean
}

/** Admission for one attempt, or where or when to try. */
export type Admission =
  | { readonly go: "here"; readonly release: (latencyMs: number | undefined) => void }
  | { readonly go: "elsewhere" }
  | { readonly go: "later"; readonly waitMs: number }

const isFast = ({ average, inFlight }: Endpoint): boolean => {
  if (average === undefined || average > FAST_MS) return false
  for (const { since } of inFlight) return performance.now() - since < HANGS_MS
  return true
}

/**
 * Time between two answers of a busy endpoint, in ms: by what it took lately, and where that is not known by what a fast one
 * takes at the most. One that hangs although its average is good is judged by what hangs.
 */
const spacingOf = ({ average, inFlight }: Endpoint): number => {
  const [oldest] = inFlight
  const hanging = oldest === undefined ? 0 : performance.now() - oldest.since
  return Math.max(SPACING, Math.max(average ?? FAST_MS, hanging < HANGS_MS ? 0 : hanging) / PER_WEBHOOK)
}

const lineOf = (endpoint: Endpoint): number => Math.min(LINE_MAX, Math.max(LINE_MIN, Math.ceil(COVERED_MS / spacingOf(endpoint))))

export class EndpointLimiter {
  readonly #endpoints = new Map<string, Endpoint>()
  #probes = 0

  #of(webhookId: string): Endpoint {
    const known = this.#endpoints.get(webhookId)
    if (known !== undefined) return known
    if (this.#endpoints.size >= REMEMBERED) {
      for (const [id, { inFlight, line }] of this.#endpoints) if (inFlight.size === 0 && line.length === 0) this.#endpoints.delete(id)
    }
    const fresh: Endpoint = { inFlight: new Set(), probing: false, average: undefined, line: [], away: new WaitingList() }
    this.#endpoints.set(webhookId, fresh)
    return fresh
  }

  /** Asks for room. Who gets it gives it back by `release`, with what the attempt took. */
  admit({ deliveryId, first, local, webhookId }: Asking): Effect.Effect<Admission> {
    return Effect.suspend(() => {
      const endpoint = this.#of(webhookId)
      const place: Place = {
        id: deliveryId,
        since: endpoint.away.take(deliveryId)?.since ?? (first ? Id.time(deliveryId) : undefined) ?? Date.now()
      }
      const fast = isFast(endpoint)
      if (endpoint.inFlight.size < PER_WEBHOOK) {
        if (local && !fast && (endpoint.probing || this.#probes >= UNPROVEN)) return Effect.succeed<Admission>({ go: "elsewhere" })
        return Effect.succeed(this.#take(endpoint, local && !fast))
      }
      const youngest = endpoint.line.length < lineOf(endpoint) ? undefined : endpoint.line.at(-1)
      if (youngest !== undefined && !precedes(place, youngest)) return Effect.succeed(this.#later(endpoint, place))
      // A workflow task does not wait for an endpoint that is slow.
      if (local && !fast) return Effect.succeed<Admission>({ go: "elsewhere" })
      youngest?.leave()
      return this.#wait(endpoint, place, fast ? LINE_MS : SLOW_LINE_MS)
    })
  }

  #take(endpoint: Endpoint, probe: boolean): Admission {
    const mine: InFlight = { since: performance.now() }
    endpoint.inFlight.add(mine)
    if (probe) {
      endpoint.probing = true
      this.#probes++
    }
    return {
      go: "here",
      release: (latencyMs) => {
        if (!endpoint.inFlight.delete(mine)) return
        if (probe) {
          endpoint.probing = false
          this.#probes--
        }
        if (latencyMs !== undefined)
          endpoint.average = endpoint.average === undefined ? latencyMs : endpoint.average * 0.8 + latencyMs * 0.2
        // Whoever comes to an endpoint that is fast again does not queue behind those who were sent away when it was not.
        if (isFast(endpoint)) endpoint.away.clear()
        endpoint.line.shift()?.enter()
      }
    }
  }

  /** Waits in line; after too long a wait it is told to come again, like any other. */
  #wait(endpoint: Endpoint, place: Place, longest: number): Effect.Effect<Admission> {
    return Effect.async((resume) => {
      const stop = () => {
        clearTimeout(timer)
        remove(endpoint.line, mine)
      }
      const leave = () => {
        stop()
        resume(Effect.succeed(this.#later(endpoint, place)))
      }
      const mine: InLine = {
        ...place,
        enter: () => {
          clearTimeout(timer)
          resume(Effect.succeed(this.#take(endpoint, false)))
        },
        leave
      }
      const timer = setTimeout(leave, longest)
      insert(endpoint.line, mine)
      return Effect.sync(stop)
    })
  }

  /** When to come again: as far off as what is ahead takes, less the time that the line covers. */
  #later(endpoint: Endpoint, place: Place): Admission {
    const ahead = endpoint.line.filter((other) => precedes(other, place)).length + endpoint.away.ahead(place)
    const wait = (ahead + 1 - Math.floor(lineOf(endpoint) / 2)) * spacingOf(endpoint)
    // The further off, the less is known: it asks again on the way, and the endpoint may be faster by then.
    const early = wait > SURE_MS ? Math.max(SURE_MS, wait * EARLY) : Math.max(MIN_WAIT, spacingOf(endpoint), wait)
    const waitMs = Math.round(early > MAX_WAIT ? MAX_WAIT * (0.5 + Math.random() / 2) : early)
    endpoint.away.add(place, waitMs)
    return { go: "later", waitMs }
  }
}
