/**
 * Limits guessing per address: after 30 failed authentications in an hour, requests from the address are rejected for 15
 * minutes, without a query. Clients whose address is unknown, because a trusted proxy did not send it, count as one
 * address. A key that exists and may not be used, such as a revoked one in a forgotten job, is no guess: only that key is then
 * rejected at the address. Decisions D-10, D-51.
 */
import { Effect } from "effect"
import type { IPv4, IPv6 } from "ipaddr.js"
import { networkOf } from "../../http/ClientAddress.ts"
import { slidingWindows } from "../limits/SlidingWindows.ts"

const clientOf = (address: IPv4 | IPv6 | undefined, keyId: string | undefined): string =>
  `${address === undefined ? "unknown" : networkOf(address)}${keyId === undefined ? "" : ` ${keyId}`}`

/** The failures of this process and of all others. */
export const failedAuthentications = Effect.map(
  slidingWindows({ name: "authentication", limit: 30, windowMs: 3_600_000, blockMs: 900_000 }),
  (failures) => ({
    /** Seconds until the address, or a key that exists at this address, may try again; 0 if it may now. */
    blockedFor: (address: IPv4 | IPv6 | undefined, keyId?: string): Effect.Effect<number> =>
      Effect.map(failures.waitFor(clientOf(address, keyId)), (wait) => Math.ceil(wait / 1_000)),

    /** Counts a failure of the address, or of a key that exists at this address. */
    failed: (address: IPv4 | IPv6 | undefined, keyId?: string): void => failures.note(clientOf(address, keyId))
  })
)
