/**
 * Limits guessing per address: after 30 failed authentications in an hour, requests from the address are rejected for 15
 * minutes, without a query. Clients whose address is unknown, because a trusted proxy did not send it, count as one
 * address. Decision D-10. Kept in memory, per process.
 */
import type { IPv4, IPv6 } from "ipaddr.js"
import { LRUCache } from "lru-cache"
import { networkOf } from "../http/ClientAddress.ts"
import { REMEMBERED, SlidingWindow } from "../limits/SlidingWindow.ts"

const LIMIT = 30
const WINDOW_MS = 3_600_000
const BLOCK_MS = 900_000

const clientOf = (address: IPv4 | IPv6 | undefined): string => (address === undefined ? "unknown" : networkOf(address))

export class FailedAuthentications {
  readonly #failures = new SlidingWindow(WINDOW_MS)
  /** When each block ends, on the monotonic clock. */
  readonly #blocks = new LRUCache<string, number>({ max: REMEMBERED })

  /** Seconds until the address may try again; 0 if it may now. */
  blockedFor(address: IPv4 | IPv6 | undefined): number {
    const left = (this.#blocks.peek(clientOf(address)) ?? 0) - performance.now()
    return left > 0 ? Math.ceil(left / 1_000) : 0
  }

  /** Counts a failure of the address. */
  failed(address: IPv4 | IPv6 | undefined): void {
    const key = clientOf(address)
    if (this.#failures.note(key) < LIMIT) return
    this.#failures.clear(key)
    this.#blocks.set(key, performance.now() + BLOCK_MS)
  }
}
