/**
 * When the next attempt is. A table of waits that each delivery takes along, spread by ±20 %; an overloaded endpoint
 * is given at least a minute, and what it asks for by `Retry-After` is honoured within bounds. Decision D-20.
 */
import { Duration } from "effect"
import type { Answer } from "./post.ts"

/** Least wait after a timeout or a 429, in ms. */
const PATIENCE_MS = 60_000
/** `Retry-After` is honoured up to this, or up to twice the scheduled wait where that is longer, in ms. */
const RETRY_AFTER_MS = 3_600_000
const SPREAD = 0.2

/** The wait before the first attempt, in seconds: a delivery is due when it is over. */
export const firstWait = (waits: ReadonlyArray<Duration.Duration>): number => Duration.toSeconds(waits[0] ?? Duration.zero)

/**
 * The wait in ms after attempt `number` (from 1) failed, or undefined when the schedule is used up. `waitsMs[n]` is the
 * wait before attempt n + 1; `jitter` is from 0 to 1.
 */
export const waitAfter = (
  number: number,
  { httpStatus, result, retryAfterSeconds }: Pick<Answer, "httpStatus" | "result" | "retryAfterSeconds">,
  waitsMs: ReadonlyArray<number>,
  jitter: number
): number | undefined => {
  const scheduled = waitsMs[number]
  if (scheduled === undefined) return undefined
  const spread = scheduled * (1 - SPREAD + 2 * SPREAD * jitter)
  const patient = result === "timeout" || httpStatus === 429 ? Math.max(PATIENCE_MS, spread) : spread
  if (retryAfterSeconds === undefined) return Math.round(patient)
  const asked = Math.min(retryAfterSeconds * 1_000, Math.max(2 * scheduled, RETRY_AFTER_MS))
  return Math.round(Math.max(patient, asked))
}
