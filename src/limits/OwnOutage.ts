/**
 * Whether it is this process that cannot reach the network, and not the endpoints that are down: attempts at most webhooks
 * failed before they reached any network (no resolver answers, no route, no socket). Those attempts do not count. While it
 * lasts one attempt a second is made, to find out whether it is over. C-5.
 */
import { Metric } from "effect"

/** How long an attempt says something, in ms, and how many webhooks at least have to have failed so. */
const WINDOW_MS = 30_000,
  WEBHOOKS = 3
/** Time between two attempts while it lasts, in ms. */
const EVERY_MS = 1_000

const gauge = Metric.gauge("custody_network_outage", {
  description: "1 while attempts to most webhooks fail before they reach any network, which is a fault of the service's own"
})

export class OwnOutage {
  /** The newest attempt of each webhook: when it was, and whether it reached no network. */
  readonly #tried = new Map<string, { readonly at: number; readonly local: boolean }>()
  #lasts = false
  #attemptedAt = Number.NEGATIVE_INFINITY

  /** Whether it lasts. */
  get lasts(): boolean {
    return this.#lasts
  }

  /** Notes an attempt; `local` says that it reached no network. Returns whether the outage lasts. */
  note(webhookId: string, local: boolean): boolean {
    const now = performance.now()
    this.#tried.delete(webhookId)
    this.#tried.set(webhookId, { at: now, local })
    for (const [id, { at }] of this.#tried) {
      if (now - at < WINDOW_MS) break
      this.#tried.delete(id)
    }
    // What reached an endpoint ends it: from then on each failure is judged anew.
    if (!local && this.#lasts) for (const [id, tried] of this.#tried) if (tried.local) this.#tried.delete(id)
    let failed = 0
    for (const tried of this.#tried.values()) if (tried.local) failed++
    this.#lasts = failed >= WEBHOOKS ? failed * 2 > this.#tried.size : this.#lasts && local
    gauge.unsafeUpdate(this.#lasts ? 1 : 0, [])
    return this.#lasts
  }

  /** Whether an attempt may be made now. */
  admits(): boolean {
    if (!this.#lasts) return true
    const now = performance.now()
    if (now - this.#attemptedAt < EVERY_MS) return false
    this.#attemptedAt = now
    return true
  }
}

/** That of this process. */
export const ownOutage = new OwnOutage()
