/**
 * Room at the endpoints. A webhook has at most 8 attempts in flight in a process, so that one endpoint never takes
 * the room of another. At an endpoint that answers fast, an attempt waits in line for a moment; at any other it is
 * told when to come again, on a turn of its own, so that a dead endpoint with thousands of deliveries costs a few
 * steps a second and not thousands. Finding no room uses up no attempt.
 *
 * What an endpoint took lately also decides where its attempts run: inside a workflow task, which is cheap and must
 * not take long, or on a queue for what may. An endpoint that was fast is not any more from the moment on that an
 * attempt at it hangs. Reliability F26, F27.
 */
import { Effect } from "effect"

/** Attempts in flight for one webhook in one process. */
export const PER_WEBHOOK = 8
/** Attempts inside workflow tasks of endpoints that have not proved to be fast, in one process. */
const UNPROVEN = 64
/** An endpoint whose answers take less than this on average is fast, in ms. */
const FAST_MS = 500
/** An attempt in flight for longer than this says that its endpoint is not fast now, in ms. */
const HANGS_MS = 1_000
/** Longest wait in line at a fast endpoint, in ms, and most that wait there. */
const LINE_MS = 2_000,
  LINE = 64
/** Shortest and longest wait for a turn at any other, in ms. */
const MIN_WAIT = 250,
  MAX_WAIT = 1_800_000
/** Least time between two turns, in ms. */
const SPACING = 20
/** Endpoints that are remembered; a forgotten one merely has to prove itself again. */
const REMEMBERED = 20_000

interface InFlight {
  readonly since: number
}

interface Endpoint {
  /** The attempts in flight, oldest first. */
  readonly inFlight: Set<InFlight>
  /** Whether an attempt is finding out, inside a workflow task, how fast the endpoint is. */
  probing: boolean
  /** Moving average of latencies in ms; undefined before the first answer. */
  average: number | undefined
  /** When the last turn that was given out comes, in ms since an arbitrary point. */
  lastTurn: number
  line: Array<() => void>
}

/** Room for one attempt, or where or when to try. */
export type Room =
  | { readonly go: "here"; readonly release: (latencyMs: number | undefined) => void }
  | { readonly go: "elsewhere" }
  | { readonly go: "later"; readonly waitMs: number }

const isFast = ({ average, inFlight }: Endpoint): boolean => {
  if (average === undefined || average > FAST_MS) return false
  for (const { since } of inFlight) return performance.now() - since < HANGS_MS
  return true
}

export class Permits {
  readonly #endpoints = new Map<string, Endpoint>()
  #probes = 0

  #of(webhookId: string): Endpoint {
    const known = this.#endpoints.get(webhookId)
    if (known !== undefined) return known
    if (this.#endpoints.size >= REMEMBERED) {
      for (const [id, { inFlight, line }] of this.#endpoints) if (inFlight.size === 0 && line.length === 0) this.#endpoints.delete(id)
    }
    const fresh: Endpoint = { inFlight: new Set(), probing: false, average: undefined, lastTurn: 0, line: [] }
    this.#endpoints.set(webhookId, fresh)
    return fresh
  }

  /** Asks for room, `local` inside a workflow task. Who gets it gives it back by `release`, with what the attempt took. */
  ask(webhookId: string, local: boolean): Effect.Effect<Room> {
    return Effect.suspend(() => {
      const endpoint = this.#of(webhookId)
      const fast = isFast(endpoint)
      if (endpoint.inFlight.size >= PER_WEBHOOK)
        return fast && endpoint.line.length < LINE ? this.#wait(endpoint) : Effect.succeed(turn(endpoint, fast))
      if (local && !fast && (endpoint.probing || this.#probes >= UNPROVEN)) return Effect.succeed<Room>({ go: "elsewhere" })
      return Effect.succeed(this.#take(endpoint, local && !fast))
    })
  }

  #take(endpoint: Endpoint, probe: boolean): Room {
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
        // Whoever comes to an endpoint that is fast again does not queue behind the turns of the time when it was not.
        if (isFast(endpoint)) endpoint.lastTurn = 0
        endpoint.line.shift()?.()
      }
    }
  }

  /** Waits in line; after too long a wait, a turn like any other's. */
  #wait(endpoint: Endpoint): Effect.Effect<Room> {
    return Effect.async((resume) => {
      const mine = () => {
        clearTimeout(timer)
        resume(Effect.succeed(this.#take(endpoint, false)))
      }
      const leave = () => {
        endpoint.line = endpoint.line.filter((other) => other !== mine)
      }
      const timer = setTimeout(() => {
        leave()
        resume(Effect.succeed(turn(endpoint, isFast(endpoint))))
      }, LINE_MS)
      endpoint.line.push(mine)
      return Effect.sync(() => {
        clearTimeout(timer)
        leave()
      })
    })
  }
}

/** The next turn at an endpoint without room: as far off as those before it take. */
const turn = (endpoint: Endpoint, fast: boolean): Room => {
  const now = performance.now()
  // An endpoint that hangs although its average is good is judged by what hangs.
  const takes = fast ? (endpoint.average ?? 0) : Math.max(HANGS_MS, endpoint.average ?? 0)
  const next = Math.max(now, endpoint.lastTurn) + Math.max(SPACING, takes / PER_WEBHOOK)
  if (next - now > MAX_WAIT) return { go: "later", waitMs: Math.round(MAX_WAIT * (0.5 + Math.random() / 2)) }
  endpoint.lastTurn = next
  return { go: "later", waitMs: Math.max(MIN_WAIT, Math.round(next - now)) }
}
