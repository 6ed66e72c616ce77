/** Calls to the Temporal server, and the gRPC error of a failed call. */
import { isGrpcServiceError, ServiceError } from "@temporalio/client"
import { Data, Effect } from "effect"

/** A call failed; `cause` is the SDK's error, in which {@link grpcErrorOf} finds the server's answer. */
export class TemporalCallFailed extends Data.TaggedError("TemporalCallFailed")<{ readonly cause: unknown }> {
  override get message() {
    return this.cause instanceof Error ? this.cause.message : String(this.cause)
  }
}

/** Makes a call with the SDK. */
export const temporalCall = <A>(call: () => Promise<A>): Effect.Effect<A, TemporalCallFailed> =>
  Effect.tryPromise({ try: call, catch: (cause) => new TemporalCallFailed({ cause }) })

/** gRPC status codes: an invalid call, something that does not exist, and a call that is not allowed. */
export const INVALID_ARGUMENT = 3,
  NOT_FOUND = 5,
  PERMISSION_DENIED = 7

/** The server's answer to a failed call, which the SDK throws itself or as the cause of its own error; undefined if there was none. */
export const grpcErrorOf = (error: unknown) => {
  if (isGrpcServiceError(error)) return error
  return error instanceof ServiceError && isGrpcServiceError(error.cause) ? error.cause : undefined
}

/** Whether the server rejected the call because the namespace lacks a search attribute. */
export const isUnknownAttribute = (cause: unknown): boolean => {
  const error = grpcErrorOf(cause)
  return error?.code === INVALID_ARGUMENT && /search attribute/i.test(error.details || error.message)
}
