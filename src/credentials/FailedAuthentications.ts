/**
 * Guessing is slowed per address: 30 failed authentications in an hour, and the address is refused for 15
 * minutes, before the database is asked. Decision D-10. Kept in memory, per process, by the monotonic clock; the oldest
 * addresses are forgotten first when there are too many to remember.
 */
import type { IPv4, IPv6 } from "ipaddr.js"

const LIMIT = 30
const WINDOW_MS = 3_600_000
const BLOCK_MS = 900_000
const REMEMBERED = 50_000

interface Record {
  failures: number
  since: number
  blockedUntil: number
}

/** An IPv6 caller has a whole /64 to call from, so the /64 is what counts. */
const keyOf = (address: IPv4 | IPv6): string =>
  address.kind() === "ipv4" ? address.toString() : address.toByteArray().slice(0, 8).join(".")

export class FailedAuthentications {
  readonly #records = new Map<string, Record>()

  /** Seconds until the address may try again; 0 when it may now. */
  blockedFor(address: IPv4 | IPv6): number {
    const now = performance.now()
    const until = this.#records.get(keyOf(address))?.blockedUntil ?? 0
    return until > now ? Math.ceil((until - now) / 1000) : 0
  }

  /** Counts a failure of the address. */
  failed(address: IPv4 | IPv6): void {
    const now = performance.now()
    const key = keyOf(address)
    const known = this.#records.get(key)
    const record = known !== undefined && now - known.since < WINDOW_MS ? known : { failures: 0, since: now, blockedUntil: 0 }
    record.failures++
    if (record.failures >= LIMIT) Object.assign(record, { failures: 0, since: now, blockedUntil: now + BLOCK_MS })
    this.#records.delete(key)
    this.#records.set(key, record)
    const oldest = this.#records.keys().next()
    if (this.#records.size > REMEMBERED && oldest.done !== true) this.#records.delete(oldest.value)
  }
}
