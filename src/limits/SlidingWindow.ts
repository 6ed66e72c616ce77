/**
 * Sliding windows in bounded memory: counts how often something happened recently, per key. Anybody can make up addresses
 * and names, so the least recently used keys are forgotten first. Times are on the monotonic clock, which cannot be set
 * back.
 */
import { LRUCache } from "lru-cache"

/** Most keys that are remembered. */
export const REMEMBERED = 50_000

/** The times of the last `windowMs`, per key: how often something happened in any stretch of that length. */
export class SlidingWindow {
  readonly #times = new LRUCache<string, Array<number>>({ max: REMEMBERED, memoMethod: () => [] })
  readonly #windowMs: number

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** Records an occurrence. Returns how many there were within the window. */
  note(key: string): number {
    const now = performance.now()
    const times = this.#times.memo(key)
    this.#trim(times, now)
    return times.push(now)
  }

  /** Milliseconds until there are fewer than `limit` occurrences within the window; 0 if there are. */
  roomIn(key: string, limit: number): number {
    const now = performance.now()
    const times = this.#times.peek(key)
    if (times === undefined) return 0
    this.#trim(times, now)
    const leaving = times.at(-limit)
    return leaving === undefined ? 0 : leaving + this.#windowMs - now
  }

  /** Forgets the key. */
  clear(key: string): void {
    this.#times.peek(key)?.splice(0)
  }

  #trim(times: Array<number>, now: number): void {
    const kept = times.findIndex((time) => time > now - this.#windowMs)
    times.splice(0, kept < 0 ? times.length : kept)
  }
}
