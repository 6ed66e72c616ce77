/**
 * Distinguishes an outage of this process's own network from endpoints that are down: attempts at most webhooks failed
 * before they reached any network (no resolver responds, no route, no socket). Those attempts do not count. During the
 * outage one attempt a second is made, to find out whether it is over. It is here and not in sending/ because readiness reads
 * it, and nothing but the worker may import sending/. C-5.
 */
import { Metric } from "effect"

/** How long an attempt is significant, in ms, and the minimum number of webhooks with such failures. */
const WINDOW_MS = 30_000,
  WEBHOOKS = 3
/** Time between two attempts during an outage, in ms. */
const EVERY_MS = 1_000

const gauge = Metric.gauge("custody_network_outage", {
  description: "1 while attempts to most webhooks fail before they reach any network, because of a fault in the service's own network"
})

export class NetworkOutage {
  /** The newest attempt of each webhook: its time, and whether it failed before it reached a network. */
  readonly #tried = new Map<string, { readonly at: number; readonly local: boolean }>()
  #isActive = false
  #attemptedAt = Number.NEGATIVE_INFINITY

  /** Whether there is an outage. */
  get isActive(): boolean {
    return this.#isActive
  }

  /** Records an attempt; `local`: it reached no network. Returns whether the outage continues. */
  note(webhookId: string, local: boolean): boolean {
    const now = performance.now()
    this.#tried.delete(webhookId)
    this.#tried.set(webhookId, { at: now, local })
    for (const [id, { at }] of this.#tried) {
      if (now - at < WINDOW_MS) break
      this.#tried.delete(id)
    }
    // An attempt that reached an endpoint ends the outage: later failures are judged anew.
    if (!local && this.#isActive) for (const [id, tried] of this.#tried) if (tried.local) this.#tried.delete(id)
    let failed = 0
    for (const tried of this.#tried.values()) if (tried.local) failed++
    this.#isActive = failed >= WEBHOOKS ? failed * 2 > this.#tried.size : this.#isActive && local
    gauge.unsafeUpdate(this.#isActive ? 1 : 0, [])
    return this.#isActive
  }

  /** Whether an attempt may be made now. */
  admits(): boolean {
    if (!this.#isActive) return true
    const now = performance.now()
    if (now - this.#attemptedAt < EVERY_MS) return false
    this.#attemptedAt = now
    return true
  }
}

/** The instance of this process. */
export const networkOutage = new NetworkOutage()
