/** A rate per second for each key, over about the last second: each occurrence counts less the older it is. */
import { LRUCache } from "lru-cache"

/** Keys that are remembered; a forgotten one counts from zero. */
const REMEMBERED = 10_000

export class RecentRate {
  readonly #counts = new LRUCache<string, { readonly count: number; readonly at: number }>({ max: REMEMBERED })

  /** Adds this many, now. */
  add(key: string, count: number): void {
    this.#counts.set(key, { count: this.of(key) + count, at: performance.now() })
  }

  /** The rate per second now. */
  of(key: string): number {
    const last = this.#counts.get(key)
    return last === undefined ? 0 : last.count * Math.exp((last.at - performance.now()) / 1_000)
  }
}
