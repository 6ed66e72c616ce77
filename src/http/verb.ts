/**
 * A handler of the contract. What fails to fit its schema after the handler began is the service's fault: the
 * framework reports a response that does not fit as a decode error, and the door tells the two apart by this.
 */
import { Context, Effect, Option } from "effect"
import { Exchange } from "./Exchange.ts"

/** The exchange of the running request; the listener provides it to every request. */
export const currentExchange = Effect.map(Effect.context<never>(), (context) => Option.getOrThrow(Context.getOption(context, Exchange)))

const begin = Effect.map(currentExchange, (exchange) => {
  exchange.inHandler = true
})

/** Names a handler after the spec's verb, for traces, and marks that it began. */
export const verb = <Args extends ReadonlyArray<unknown>, A, E, R>(name: string, handler: (...args: Args) => Effect.Effect<A, E, R>) => {
  const traced = Effect.fn(name)(handler)
  return (...args: Args): Effect.Effect<A, E, R> => Effect.zipRight(begin, traced(...args))
}
