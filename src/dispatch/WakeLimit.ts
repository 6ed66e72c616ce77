/**
 * How many of a webhook's overdue deliveries a sweep wakes. They wait because their endpoint was busy or away when they
 * asked, and would come by themselves within half an hour; an endpoint that takes deliveries again gets them sooner, twice as
 * many with every sweep that finds those of the one before gone, and one that is merely slow gets few.
 */

/** Fewest and most deliveries of one webhook that a sweep wakes. */
const FEW = 25,
  MANY = 2_000
/** Part of those woken that may still be there for the next sweep to wake more. */
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

  /** Whether to wake an overdue delivery; asked once a sweep for each that it comes to, the longest overdue first. */
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
