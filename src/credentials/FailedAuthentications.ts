/**
 * Guessing is slowed per address: 30 failed authentications in an hour, and the address is refused for 15
 * minutes, before the database is asked. Decision D-10. Kept in memory, per process.
 */
import type { IPv4, IPv6 } from "ipaddr.js"
import { networkOf, Recent, SlidingLog } from "../http/Recent.ts"

const LIMIT = 30
const WINDOW_MS = 3_600_000
const BLOCK_MS = 900_000

export class FailedAuthentications {
  readonly #failures = new SlidingLog(WINDOW_MS)
  readonly #blocks = new Recent<{ until: number }>()

  /** Seconds until the address may try again; 0 when it may now. */
  blockedFor(address: IPv4 | IPv6): number {
    const left = (this.#blocks.peek(networkOf(address))?.until ?? 0) - performance.now()
    return left > 0 ? Math.ceil(left / 1_000) : 0
  }

  /** Counts a failure of the address. */
  failed(address: IPv4 | IPv6): void {
    const key = networkOf(address)
    if (this.#failures.note(key) < LIMIT) return
    this.#failures.clear(key)
    this.#blocks.of(key, () => ({ until: 0 })).until = performance.now() + BLOCK_MS
  }
}
