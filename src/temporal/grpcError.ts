/** What Temporal's server says about a failed call. */
import { isGrpcServiceError, ServiceError } from "@temporalio/client"

/** gRPC status of an invalid call. */
export const INVALID_ARGUMENT = 3

/** The server's answer to a failed call; undefined if there was none. */
export const grpcErrorOf = (cause: unknown) => {
  const error = cause instanceof ServiceError ? cause.cause : cause
  return isGrpcServiceError(error) ? error : undefined
}

/** Whether the server rejected the call because the namespace lacks a search attribute. */
export const isUnknownAttribute = (cause: unknown): boolean => {
  const error = grpcErrorOf(cause)
  return error?.code === INVALID_ARGUMENT && /search attribute/i.test(error.details || error.message)
}
