/** The log's line of an answer: who asked what, and how it ended. It names the key, never the secret, and no query, which may hold a cursor. */
import { Effect, Runtime } from "effect"
import { pathOf } from "./errorBoundary.ts"
import { targetOf } from "./listener.ts"
import type { RequestState } from "./RequestContext.ts"

/** Logs an answer, in plain code. Reads that succeed are logged where `reads` says so, at debug level: there are thousands a second of them. */
export const answerLog = (reads: boolean, runtime: Runtime.Runtime<never>) => {
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
