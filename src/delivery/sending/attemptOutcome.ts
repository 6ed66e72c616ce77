/** The outcomes of attempts as workflows see them. */
import { type AttemptOutcome, IN_FLIGHT_MS } from "../../../workflows/contract.ts"
import type { AttemptStart } from "./beforeAttempt.ts"
import { type Decision, meansDown } from "./decide.ts"
import type { Answer } from "./request/Answer.ts"

/** Wait before a step checks again what it could not do now, in ms. */
export const AGAIN_MS = 250

/** The outcome of a step whose delivery is being attempted already, or whose attempt takes long. */
export const IN_FLIGHT: AttemptOutcome = { next: "in flight", waitMs: IN_FLIGHT_MS }

/** The outcome of a step whose delivery has ended. */
export const ended = (status: string): AttemptOutcome => ({
  next: "ended",
  status: status === "DELIVERED" || status === "FAILED" ? status : "CANCELED"
})

/** The outcome of an attempt that was decided and recorded; undefined if the next one follows at once. */
export const outcomeOf = (
  { next }: Decision,
  status: string,
  { begun, httpStatus, number, result }: Pick<Answer, "httpStatus" | "result"> & { readonly number: number; readonly begun: AttemptStart }
): AttemptOutcome | undefined => {
  const down: { readonly down?: true } = meansDown({ httpStatus, result }) ? { down: true } : {}
  switch (next._tag) {
    case "Again":
      return undefined
    case "RetryAt":
      return { next: "retry", number, result, waitMs: next.waitMs, ...down }
    case "Hold":
      return {
        next: "held",
        number,
        result,
        because: begun.paused ? "PAUSED" : begun.down || down.down === true ? "DOWN" : "TURN",
        ...down
      }
    case "Exhausted":
      return { next: "failed", number, result, ...down }
    default:
      if (status === "HELD") return { next: "held", number, result, because: "TURN" }
      return status === "PENDING" || status === "RETRYING"
        ? { next: "later", waitMs: AGAIN_MS, because: "its state changed" }
        : ended(status)
  }
}
