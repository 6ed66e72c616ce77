/**
 * One statement for many callers. Calls that come while a batch is under way wait for the next one, so a busy
 * process asks the database once where it would have asked fifty times, and an idle one is not delayed at all.
 * Nothing is kept: each call is answered by a statement that began after the call.
 */
import { Effect, Runtime } from "effect"

interface Waiting<A, B, E> {
  readonly item: A
  readonly resume: (effect: Effect.Effect<B, E>) => void
}

/** How calls are put together. */
export interface BatchShape<A> {
  /** The most that a batch holds: items, or their weight. A single item may weigh more. */
  readonly size: number
  /** Batches that run at once. */
  readonly parallel: number
  /** What an item counts; 1 when absent. */
  readonly weight?: (item: A) => number
}

/**
 * Turns a function of many items into one of a single item. `run` answers in the order of its items; its failure
 * is the failure of every caller of that batch.
 */
export const batched = <A, B, E, R>(
  run: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, E, R>,
  { parallel, size, weight = () => 1 }: BatchShape<A>
) =>
  Effect.map(Effect.runtime<R>(), (runtime) => {
    const fork = Runtime.runFork(runtime)
    let waiting: Array<Waiting<A, B, E>> = []
    let underWay = 0
    let scheduled = false

    /** How many of those that wait, the first ones, make a batch: at least one. */
    const fitting = (): number => {
      let total = 0
      for (const [index, { item }] of waiting.entries()) {
        total += weight(item)
        if (total > size) return Math.max(1, index)
      }
      return waiting.length
    }

    const flush = () => {
      scheduled = false
      while (waiting.length > 0 && underWay < parallel) {
        const batch = waiting.splice(0, fitting())
        underWay++
        const fiber = fork(Effect.suspend(() => run(batch.map(({ item }) => item))))
        fiber.addObserver((exit) => {
          underWay--
          if (exit._tag === "Success") {
            batch.forEach(({ resume }, index) => {
              const answer = exit.value[index]
              resume(
                answer === undefined ? Effect.die(new Error("a batch answered fewer items than it was asked")) : Effect.succeed(answer)
              )
            })
          } else for (const { resume } of batch) resume(Effect.failCause(exit.cause))
          if (waiting.length > 0) schedule()
        })
      }
    }

    const schedule = () => {
      if (scheduled || underWay >= parallel) return
      scheduled = true
      // After the current turn's callbacks, so that requests that arrive together ask together.
      setImmediate(flush)
    }

    return (item: A): Effect.Effect<B, E> =>
      Effect.async((resume) => {
        const mine: Waiting<A, B, E> = { item, resume }
        waiting.push(mine)
        schedule()
        return Effect.sync(() => {
          waiting = waiting.filter((other) => other !== mine)
        })
      })
  })
