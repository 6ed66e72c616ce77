/**
 * Limits how many overdue deliveries of a webhook a sweep wakes. They wait because their endpoint was busy or down when
 * they requested admission, and would return on their own within half an hour. A recovered endpoint gets them sooner:
 * twice as many with every sweep that finds that the previous ones no longer wait. A merely slow endpoint gets few.
 */

/** Fewest and most deliveries of one webhook per sweep. */
const FEW = 25,
  MANY = 2_000
/** The share of woken deliveries that may still be there for the next sweep to wake more. */
const LEFT = 0.1

interface Woken {
  readonly limit: number
  readonly ids: ReadonlySet<string>
}

interface Now {
  readonly ids: Set<string>
  left: number
}

export class WakeLimit {
  #before = new Map<string, Woken>()
  #now = new Map<string, Now>()

  /** Whether to wake an overdue delivery; called once per sweep for each, the most overdue first. */
  wakes(webhookId: string, deliveryId: string): boolean {
    const now = this.#now.get(webhookId) ?? { ids: new Set<string>(), left: 0 }
    this.#now.set(webhookId, now)
    const before = this.#before.get(webhookId)
    if (before?.ids.has(deliveryId) === true) now.left++
    if (now.ids.size >= (before?.limit ?? FEW)) return false
    now.ids.add(deliveryId)
    return true
  }

  /** Ends a sweep: decides how many the next one may wake. */
  end(): void {
    const after = new Map<string, Woken>()
    for (const [webhookId, { ids, left }] of this.#now) {
      const before = this.#before.get(webhookId)
      const limit = before === undefined ? FEW : left <= before.ids.size * LEFT ? before.limit * 2 : before.limit / 2
      after.set(webhookId, { limit: Math.min(MANY, Math.max(FEW, Math.floor(limit))), ids })
    }
    this.#before = after
    this.#now = new Map()
  }
}
