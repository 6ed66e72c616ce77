/**
 * Turns an Effect into an activity: a failure becomes an `ApplicationFailure` with its tag, a defect a retryable error,
 * cancellation an interruption. Heartbeats are sent if the activity has a heartbeat timeout.
 */
import { Context } from "@temporalio/activity"
import { ApplicationFailure } from "@temporalio/common"
import { Cause, Effect, Exit, Option, Runtime, Schedule } from "effect"

const typeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string" ? error._tag : "Error"

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** An activity of this name. `body` runs in the given runtime; only the tag and message of a failure reach the history. */
export const activity = <R>(runtime: Runtime.Runtime<R>) => {
  const run = Runtime.runPromiseExit(runtime)
  return <I, A, E>(name: string, body: (input: I) => Effect.Effect<A, E, R>) =>
    async (input: I): Promise<A> => {
      const context = Context.current()
      const beats = Effect.schedule(
        Effect.sync(() => context.heartbeat()),
        Schedule.spaced("1 second")
      )
      const done =
        context.info.heartbeatTimeoutMs === undefined ? body(input) : Effect.scoped(Effect.zipRight(Effect.forkScoped(beats), body(input)))
      const exit = await run(Effect.withSpan(done, name), { signal: context.cancellationSignal })
      if (Exit.isSuccess(exit)) return exit.value
      if (context.cancellationSignal.aborted && Cause.isInterruptedOnly(exit.cause)) return await context.cancelled
      const failure = Option.getOrElse(Cause.failureOption(exit.cause), () => Cause.squash(exit.cause))
      throw ApplicationFailure.create({ type: typeOf(failure), message: messageOf(failure) })
    }
}
