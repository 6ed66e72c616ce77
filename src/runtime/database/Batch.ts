/**
 * Combines calls into one statement. Calls that arrive while a batch is running wait for the next one, so a busy process
 * runs one query instead of fifty, and an idle one is not delayed. Nothing is cached: each call is answered by a
 * statement that began after it.
 */
import { Effect, Runtime } from "effect"

interface Waiting<A, B, E> {
  readonly item: A
  readonly resume: (effect: Effect.Effect<B, E>) => void
}

/** How calls are combined. */
export interface BatchShape<A> {
  /** Limit of a batch: items, or their weight. A single item may weigh more. */
  readonly size: number
  /** Concurrent batches. */
  readonly parallel: number
  /** The weight of an item; default 1. */
  readonly weight?: (item: A) => number
}

/**
 * Turns a function of many items into one of a single item. `run` returns results in the order of its items; its failure
 * is the failure of every caller in that batch.
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

    /** How many of the waiting items form the next batch: at least one. */
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
                answer === undefined ? Effect.die(new Error("a batch returned fewer results than it has items")) : Effect.succeed(answer)
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
      // After the current turn's callbacks, so that requests that arrive together share a query.
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
