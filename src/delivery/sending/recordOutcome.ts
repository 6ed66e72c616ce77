/** Writes that must not be lost, retried until Postgres is back. */
import { Effect } from "effect"
import { DEADLOCK, hasSqlState } from "../../runtime/database/hasSqlState.ts"
import { whileUnavailable } from "../../runtime/database/unavailable.ts"
import type { Answer } from "./request/Answer.ts"

/** How many times an outcome is written again after a deadlock with another one. */
const DEADLOCKS = 5

/** Retries while Postgres is unavailable. */
export const whenBack = whileUnavailable("500 millis")

/**
 * Writes an outcome, however long Postgres is unavailable. If Postgres rejects it because of the response's content, it is
 * written without the content, so that no response can make an attempt unrecordable.
 */
export const recordOutcome = <A, E>(answer: Answer, write: (answer: Answer) => Effect.Effect<A, E>) => {
  const patiently = (answer: Answer) =>
    whenBack(
      Effect.retry(
        Effect.suspend(() => write(answer)),
        { times: DEADLOCKS, while: (error) => hasSqlState(error, DEADLOCK) }
      )
    )
  return Effect.catchAll(patiently(answer), (error) =>
    Effect.zipRight(
      Effect.logError("an outcome could not be recorded with the body of its response, and is recorded without it", error),
      patiently({ ...answer, bodySnippet: null })
    )
  )
}
