/**
 * Admission at endpoints. A webhook has a limited number of attempts in flight across all workers (EndpointPermits.ts), so
 * that one endpoint never takes the capacity of others. Beyond that, a few attempts wait in line, and all others are sent
 * away with a time to return, so that a dead endpoint with thousands of deliveries costs a few steps a second instead of
 * thousands. An attempt that is not admitted does not use up the schedule.
 *
 * A delivery keeps its place: it is always behind deliveries that were due earlier and ahead of those due later, however
 * often it was woken or sent away. It returns before its turn, by the time that the line covers, so that a slow endpoint
 * always has its next request waiting.
 *
 * The endpoint's recent latency also decides where its attempts run: inside a workflow task, which is cheap but must be
 * short, or on a queue for slow ones. An endpoint no longer counts as fast as soon as an attempt at it hangs. Reliability
 * F26, F27. Decision D-52.
 */
import { Effect } from "effect"
import * as Id from "../../values/Id.ts"
import type { Permits } from "./EndpointPermits.ts"
import { insert, type Place, precedes, remove, WaitingList } from "./WaitingList.ts"

/** Attempts inside workflow tasks, per process, at endpoints that are not known to be fast. */
const UNPROVEN = 64
/** An endpoint with a lower average latency is fast, in ms. */
const FAST_MS = 500
/** If an attempt is in flight for longer than this, its endpoint is not fast now, in ms. */
const HANGS_MS = 1_000
/** Time that the line covers, and its shortest and longest length. */
const COVERED_MS = 2_000,
  LINE_MIN = 2,
  LINE_MAX = 64
/** Longest wait in line, in ms, at a fast endpoint and at any other. */
const LINE_MS = 2_000,
  SLOW_LINE_MS = 10_000
/** Shortest and longest wait of an attempt that is sent away, in ms. */
const MIN_WAIT = 250,
  MAX_WAIT = 1_800_000
/** A longer wait than this, in ms, is shortened to a part of it. */
const SURE_MS = 5_000,
  EARLY = 0.75
/** Shortest time between two turns, in ms. */
const SPACING = 20
/** Most endpoints that are remembered; a forgotten one must prove itself again. */
const REMEMBERED = 20_000

interface InFlight {
  readonly since: number
}

/** An attempt in line. */
interface InLine extends Place {
  readonly enter: () => void
  /** Sends it away because another one takes its place. */
  readonly leave: () => void
}

interface Endpoint {
  /** The attempts in flight, oldest first. */
  readonly inFlight: Set<InFlight>
  /** Whether an attempt is measuring the endpoint inside a workflow task. */
  probing: boolean
  /** Moving average of latencies in ms; undefined before the first response. */
  average: number | undefined
  /** The line, in order. */
  readonly line: Array<InLine>
  /** Attempts that were sent away and will return. */
  readonly away: WaitingList
}

/** A request for admission. */
export interface Asking {
  readonly webhookId: string
  readonly deliveryId: string
  /** Whether it is the delivery's first attempt, due since its event was recorded. */
  readonly first: boolean
  /** Whether it would run inside a workflow task. */
  readonly local: boolean
}

/** Admission for an attempt, or where or when to try. */
export type Admission =
  | { readonly go: "here"; readonly release: (latencyMs: number | undefined) => void }
  | { readonly go: "elsewhere" }
  | { readonly go: "later"; readonly waitMs: number }

const isFast = ({ average, inFlight }: Endpoint): boolean => {
  if (average === undefined || average > FAST_MS) return false
  for (const { since } of inFlight) return performance.now() - since < HANGS_MS
  return true
}

export class EndpointLimiter {
  readonly #endpoints = new Map<string, Endpoint>()
  readonly #permits: Permits
  #probes = 0

  constructor(permits: Permits) {
    this.#permits = permits
    permits.serve(
      (webhookId) => {
        const { inFlight, line } = this.#endpoints.get(webhookId) ?? { inFlight: { size: 0 }, line: [] }
        return { inFlight: inFlight.size, waiting: line.length }
      },
      (webhookId) => {
        const endpoint = this.#endpoints.get(webhookId)
        if (endpoint !== undefined) this.#letIn(webhookId, endpoint)
      },
      () => this.#endpoints.keys()
    )
  }

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

  /** Whether the endpoint is known to be slow now: its latency was measured, or an attempt hangs. */
  isSlow(webhookId: string): boolean {
    const endpoint = this.#endpoints.get(webhookId)
    return endpoint?.average !== undefined && !isFast(endpoint)
  }

  /**
   * Expected time between two responses of a busy endpoint, in ms: from its recent latency, or if that is unknown, from the
   * limit of a fast one. If attempts hang although the average is good, their time counts.
   */
  #spacing(webhookId: string, { average, inFlight }: Endpoint): number {
    const [oldest] = inFlight
    const hanging = oldest === undefined ? 0 : performance.now() - oldest.since
    return Math.max(SPACING, Math.max(average ?? FAST_MS, hanging < HANGS_MS ? 0 : hanging) / Math.max(1, this.#permits.of(webhookId)))
  }

  /** How many attempts may wait in line. */
  #longest(webhookId: string, endpoint: Endpoint): number {
    return Math.min(LINE_MAX, Math.max(LINE_MIN, Math.ceil(COVERED_MS / this.#spacing(webhookId, endpoint))))
  }

  /** Requests admission. An admitted attempt ends it with `release` and its latency. */
  admit(asking: Asking): Effect.Effect<Admission> {
    return Effect.suspend(() => {
      const { webhookId } = asking
      const endpoint = this.#of(webhookId)
      if (endpoint.inFlight.size < this.#permits.of(webhookId) || !this.#permits.mayGrow(webhookId)) return this.#decide(endpoint, asking)
      return Effect.zipRight(
        this.#permits.grow(webhookId),
        Effect.suspend(() => this.#decide(endpoint, asking))
      )
    })
  }

  #decide(endpoint: Endpoint, { deliveryId, first, local, webhookId }: Asking): Effect.Effect<Admission> {
    const place: Place = {
      id: deliveryId,
      since: endpoint.away.take(deliveryId)?.since ?? (first ? Id.time(deliveryId) : undefined) ?? Date.now()
    }
    const fast = isFast(endpoint)
    if (endpoint.inFlight.size < this.#permits.of(webhookId)) {
      if (local && !fast && (endpoint.probing || this.#probes >= UNPROVEN)) return Effect.succeed<Admission>({ go: "elsewhere" })
      return Effect.succeed(this.#take(webhookId, endpoint, local && !fast))
    }
    const youngest = endpoint.line.length < this.#longest(webhookId, endpoint) ? undefined : endpoint.line.at(-1)
    if (youngest !== undefined && !precedes(place, youngest)) return Effect.succeed(this.#later(webhookId, endpoint, place))
    // A workflow task does not wait for a slow endpoint.
    if (local && !fast) return Effect.succeed<Admission>({ go: "elsewhere" })
    youngest?.leave()
    return this.#wait(webhookId, endpoint, place, fast ? LINE_MS : SLOW_LINE_MS)
  }

  #take(webhookId: string, endpoint: Endpoint, probe: boolean): Admission {
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
        // At an endpoint that is fast again, new attempts do not wait behind those that were sent away earlier.
        if (isFast(endpoint)) endpoint.away.clear()
        this.#letIn(webhookId, endpoint)
      }
    }
  }

  /** Admits as many as there are permits, the first in line first. */
  #letIn(webhookId: string, { inFlight, line }: Endpoint): void {
    while (line.length > 0 && inFlight.size < this.#permits.of(webhookId)) line.shift()?.enter()
  }

  /** Waits in line; after too long it is sent away, like any other. */
  #wait(webhookId: string, endpoint: Endpoint, place: Place, longest: number): Effect.Effect<Admission> {
    return Effect.async((resume) => {
      const stop = () => {
        clearTimeout(timer)
        remove(endpoint.line, mine)
      }
      const leave = () => {
        stop()
        resume(Effect.succeed(this.#later(webhookId, endpoint, place)))
      }
      const mine: InLine = {
        ...place,
        enter: () => {
          clearTimeout(timer)
          resume(Effect.succeed(this.#take(webhookId, endpoint, false)))
        },
        leave
      }
      const timer = setTimeout(leave, longest)
      insert(endpoint.line, mine)
      return Effect.sync(stop)
    })
  }

  /** When to return: when everything ahead is done, minus the time that the line covers. */
  #later(webhookId: string, endpoint: Endpoint, place: Place): Admission {
    const ahead = endpoint.line.filter((other) => precedes(other, place)).length + endpoint.away.ahead(place)
    const spacing = this.#spacing(webhookId, endpoint)
    const wait = (ahead + 1 - Math.floor(this.#longest(webhookId, endpoint) / 2)) * spacing
    // A long wait is only an estimate: it returns earlier, because the endpoint may be faster by then.
    const early = wait > SURE_MS ? Math.max(SURE_MS, wait * EARLY) : Math.max(MIN_WAIT, spacing, wait)
    const waitMs = Math.round(early > MAX_WAIT ? MAX_WAIT * (0.5 + Math.random() / 2) : early)
    endpoint.away.add(place, waitMs)
    return { go: "later", waitMs }
  }
}
