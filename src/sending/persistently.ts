/** Writing what must not be lost, for as long as it takes Postgres to come back. */
import { Effect } from "effect"
import { whileUnavailable } from "../database/unavailable.ts"
import type { Answer } from "./Answer.ts"

/** Tries again while Postgres cannot answer. */
export const whenBack = whileUnavailable("500 millis")

/**
 * Writes an outcome, however long Postgres is away. An outcome that Postgres refuses for what the endpoint said is
 * written without it, so that no answer can make an attempt unrecordable.
 */
export const persistently = <A, E>(answer: Answer, write: (answer: Answer) => Effect.Effect<A, E>) =>
  Effect.catchAll(whenBack(write(answer)), (error) =>
    Effect.zipRight(Effect.logError("an outcome could not be recorded as it was", error), whenBack(write({ ...answer, bodySnippet: null })))
  )
