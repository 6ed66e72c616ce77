/** The write-ahead log positions that a server must have reached to serve the reads of a request. Decision D-58. */
import { Context, Effect, Option } from "effect"

/** Needs of a request, and what its reads saw. Mutable on purpose: it lives as long as its request. */
export interface Reading {
  /** The position that a replica must have reached; infinite for the primary only. */
  needs: number
  /** The end of the primary's log when the caller authenticated; undefined without a replica. */
  begun: number | undefined
  /** The position up to which the request's lists are complete; undefined if none of them may come from a replica. */
  seen: number | undefined
}

/** The reading of a new request: from the primary, until its caller is known. */
export const newReading = (): Reading => ({ needs: Number.POSITIVE_INFINITY, begun: undefined, seen: undefined })

/** The reading of the running request. */
export class CurrentReading extends Context.Tag("custody/Reading")<CurrentReading, Reading>() {}

/** The reading of the running request; undefined outside of requests. */
export const currentReading: Effect.Effect<Reading | undefined> = Effect.withFiberRuntime((fiber) =>
  Effect.succeed(Option.getOrUndefined(Context.getOption(fiber.currentContext, CurrentReading)))
)
