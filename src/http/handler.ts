/**
 * A handler of the contract. A value that does not match its schema after the handler began is the service's fault: the
 * framework reports an invalid response as a decode error, and this lets the error boundary tell the two apart.
 */
import { Effect, FiberRef } from "effect"
import { current } from "./RequestContext.ts"

/**
 * Names a handler after the spec's verb, for traces, and marks that it began. The span is created only if traces are
 * exported: an unused one costs as much as the rest of a handler.
 */
export const handler =
  <Args extends ReadonlyArray<unknown>, A, E, R>(name: string, run: (...args: Args) => Effect.Effect<A, E, R>) =>
  (...args: Args): Effect.Effect<A, E, R> =>
    Effect.withFiberRuntime((fiber) => {
      current(fiber).inHandler = true
      return fiber.getFiberRef(FiberRef.currentTracerEnabled) ? Effect.withSpan(run(...args), name) : run(...args)
    })
