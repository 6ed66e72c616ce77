/**
 * How many held deliveries are in flight in a full round of a drain: the fewest that are nearly as fast as the limit. More
 * of them at a fast endpoint would only wait for each other in this process, with other deliveries behind them. C-5.
 */

/** A round that takes longer than this, in ms, is limited by its endpoint: then its width is kept. */
const QUICK = 500
/** The share of the highest rate that half as many must reach. */
const NEARLY = 0.8

export class DrainWidth {
  #width: number
  #highest = 0
  #found = false

  /** Begins with the limit of attempts in flight. */
  constructor(bound: number) {
    this.#width = bound
  }

  get width(): number {
    return this.#width
  }

  /** A full round succeeded: its deliveries, and how long it took in ms. */
  took(deliveries: number, ms: number): void {
    if (this.#found) return
    const rate = deliveries / ms
    if (rate < this.#highest * NEARLY) {
      this.#width *= 2
      this.#found = true
    } else if (ms > QUICK || this.#width % 2 !== 0) this.#found = true
    else {
      this.#highest = Math.max(this.#highest, rate)
      this.#width /= 2
    }
  }
}
