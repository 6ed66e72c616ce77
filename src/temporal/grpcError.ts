/** What Temporal's server says about a failed call. */
import { isGrpcServiceError, ServiceError } from "@temporalio/client"

/** gRPC status of an invalid call. */
export const INVALID_ARGUMENT = 3

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
