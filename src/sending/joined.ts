/** Work that runs at most once at a time in this process for each key, so that a repeated activity joins the first. */
import { Effect, type Exit, Fiber, FiberMap, Option } from "effect"

/**
 * Work by key. It continues when those that wait for it are interrupted, and ends with the scope. `join` starts the work or
 * waits for that in flight, and has its outcome; `ended` waits until none is in flight.
 */
export const makeJoined = <A, E>() =>
  Effect.map(FiberMap.make<string, Exit.Exit<A, E>, never>(), (inFlight) => ({
    ended: FiberMap.awaitEmpty(inFlight),
    join: (key: string, work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      // Looks up and starts it synchronously: `FiberMap.run` could yield first, and another fiber could start the same work.
      Effect.flatMap(FiberMap.runtime(inFlight)<never>(), (begin) => {
        const fiber = Option.getOrElse(FiberMap.unsafeGet(inFlight, key), () => begin(key, Effect.exit(work)))
        return Effect.flatten(Effect.flatten(Fiber.await(fiber)))
      })
  }))
