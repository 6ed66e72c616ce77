/** The deliveries that were sent away from a busy endpoint and will return, by due time. */

/** The place of a delivery: behind those that were due earlier. */
export interface Place {
  readonly id: string
  /** Due time of its attempt, in ms since 1970. */
  readonly since: number
}

/** How long a delivery that does not return in time still counts, in ms: another worker may have it. */
const LATE_MS = 5_000
/** How often missing ones are removed, in ms. */
const PRUNE_MS = 1_000

/** Whether one place is before another. */
export const precedes = (one: Place, other: Place): boolean => one.since < other.since || (one.since === other.since && one.id < other.id)

/** How many of a sorted list are before a place. */
const countBefore = (sorted: ReadonlyArray<Place>, place: Place): number => {
  let low = 0,
    high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = sorted[middle]
    if (other !== undefined && precedes(other, place)) low = middle + 1
    else high = middle
  }
  return low
}

/** Puts a place into a sorted list. */
export const insert = <P extends Place>(sorted: Array<P>, place: P): void => {
  sorted.splice(countBefore(sorted, place), 0, place)
}

/** Removes a place from a sorted list, if it is in the list. */
export const remove = <P extends Place>(sorted: Array<P>, place: P): void => {
  const index = countBefore(sorted, place)
  if (sorted[index]?.id === place.id) sorted.splice(index, 1)
}

interface Away extends Place {
  /** When it is expected, on the clock of `performance.now`. */
  readonly until: number
}

export class WaitingList {
  #sorted: Array<Away> = []
  readonly #byId = new Map<string, Away>()
  #prunedAt = 0

  /** Records that the delivery will return after the wait. */
  add(place: Place, waitMs: number): void {
    const away = { ...place, until: performance.now() + waitMs + LATE_MS }
    this.#byId.set(place.id, away)
    insert(this.#sorted, away)
  }

  /** Removes a delivery that has returned; undefined if it was not expected. */
  take(id: string): Place | undefined {
    const away = this.#byId.get(id)
    if (away === undefined) return undefined
    this.#byId.delete(id)
    remove(this.#sorted, away)
    return away
  }

  /** How many deliveries that are expected are before this one. */
  ahead(place: Place): number {
    this.#prune()
    return countBefore(this.#sorted, place)
  }

  clear(): void {
    this.#sorted = []
    this.#byId.clear()
  }

  #prune(): void {
    const now = performance.now()
    if (now - this.#prunedAt < PRUNE_MS) return
    this.#prunedAt = now
    this.#sorted = this.#sorted.filter(({ id, until }) => until > now || !this.#byId.delete(id))
  }
}
