/**
 * What is remembered of callers, in bounded memory: anybody can make up addresses and names, so the ones that were not
 * used for the longest time are forgotten first. Times are on the monotonic clock, which nobody can set back.
 */
import type { IPv4, IPv6 } from "ipaddr.js"

/** Keys that are remembered at the most. */
const REMEMBERED = 50_000

/** A map of the keys that were used last. */
export class Recent<V> {
  readonly #entries = new Map<string, V>()
  readonly #most: number

  constructor(most = REMEMBERED) {
    this.#most = most
  }

  /** The key's value, which is made where it is not remembered. */
  of(key: string, make: () => V): V {
    const value = this.#entries.get(key) ?? make()
    this.#entries.delete(key)
    this.#entries.set(key, value)
    const oldest = this.#entries.keys().next()
    if (this.#entries.size > this.#most && oldest.done !== true) this.#entries.delete(oldest.value)
    return value
  }

  /** The key's value, where it is remembered. */
  peek(key: string): V | undefined {
    return this.#entries.get(key)
  }
}

/** The times of the last `windowMs`, per key: how often something happened in any stretch of that length. */
export class SlidingLog {
  readonly #times = new Recent<Array<number>>()
  readonly #windowMs: number

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** Notes that it happened now. Returns how often it did within the window. */
  note(key: string): number {
    const now = performance.now()
    const times = this.#times.of(key, () => [])
    this.#trim(times, now)
    return times.push(now)
  }

  /** Milliseconds until it happened fewer than `limit` times within the window; 0 when it did. */
  roomIn(key: string, limit: number): number {
    const now = performance.now()
    const times = this.#times.peek(key)
    if (times === undefined) return 0
    this.#trim(times, now)
    const leaving = times.at(-limit)
    return leaving === undefined ? 0 : leaving + this.#windowMs - now
  }

  /** Begins anew for the key. */
  clear(key: string): void {
    this.#times.peek(key)?.splice(0)
  }

  #trim(times: Array<number>, now: number): void {
    const kept = times.findIndex((time) => time > now - this.#windowMs)
    times.splice(0, kept < 0 ? times.length : kept)
  }
}

/** A caller as limits count them: an IPv6 caller has a whole /64 to call from, so the /64 is what counts. */
export const networkOf = (address: IPv4 | IPv6): string =>
  address.kind() === "ipv4" ? address.toString() : address.toByteArray().slice(0, 8).join(".")
