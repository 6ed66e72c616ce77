/**
 * The access log: one line per response, with the request and its outcome. It has the key's id, never the secret, and no
 * query, which may contain a cursor.
 */
import { Effect, Runtime } from "effect"
import { pathOf } from "./errorBoundary.ts"
import { targetOf } from "./listener.ts"
import type { RequestState } from "./RequestContext.ts"

/**
 * Logs a response; not an Effect, for speed. Successful reads are logged only if `reads` is set, at debug level, because
 * there can be thousands per second.
 */
export const accessLog = (reads: boolean, runtime: Runtime.Runtime<never>) => {
  const run = Runtime.runFork(runtime)
  return (request: Request, { client, keyId, requestId, startedAt }: RequestState, status: number): void => {
    const quiet = status < 300 && request.method === "GET"
    if (quiet && !reads) return
    run(
      (quiet ? Effect.logDebug : Effect.logInfo)("request").pipe(
        Effect.annotateLogs({
          requestId,
          method: request.method,
          path: pathOf(targetOf(request.url)),
          status,
          ms: Math.round((performance.now() - startedAt) * 10) / 10,
          ...(keyId === undefined ? {} : { keyId }),
          client: client?.toString() ?? "unknown"
        })
      )
    )
  }
}
