/** Failures of work that is repeated anyway. */
import { Effect } from "effect"

/** Logs a failure of `what`, for example `sealing checkpoints`, as a warning. */
export const loggingFailure = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>) =>
  Effect.catchAllCause(effect, (cause) => Effect.logWarning(`${what} failed and will be retried`, cause))
