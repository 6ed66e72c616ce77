/**
 * The retry schedule: a table of waits that each delivery keeps, with jitter of ±20 %. An overloaded endpoint gets at
 * least a minute, and its `Retry-After` is honored within bounds. Decision D-20.
 */
import { Duration } from "effect"
import type { Result } from "./Delivery.ts"

/** Shortest wait after a timeout or a 429, in ms. */
const PATIENCE_MS = 60_000
/** Longest `Retry-After`, in ms; or twice the scheduled wait, if that is longer. */
const RETRY_AFTER_MS = 3_600_000
const SPREAD = 0.2
/** Shortest wait after interruptions, in ms. */
const INTERRUPTED_MS = 5_000

/** Longest wait after a failure of the service's own proxy, in ms; the attempt follows within 30 s. */
const PROXY_MS = 25_000

const spreadOf = (millis: number, jitter: number): number => millis * (1 - SPREAD + 2 * SPREAD * jitter)

/** The wait before the first attempt, in seconds: the delivery is due after it. */
export const firstWait = (waits: ReadonlyArray<Duration.Duration>): number => Duration.toSeconds(waits[0] ?? Duration.zero)

/**
 * The wait in ms after the `number`th attempt of the schedule (from 1) failed, or undefined if the schedule is used up.
 * `waitsMs[n]` is the wait before attempt n + 1; `jitter` is from 0 to 1.
 */
export const waitAfter = (
  number: number,
  {
    httpStatus,
    result,
    retryAfterSeconds
  }: { readonly httpStatus: number; readonly result: Result; readonly retryAfterSeconds: number | undefined },
  waitsMs: ReadonlyArray<number>,
  jitter: number
): number | undefined => {
  const scheduled = waitsMs[number]
  if (scheduled === undefined) return undefined
  const spread = spreadOf(scheduled, jitter)
  const patient = result === "timeout" || httpStatus === 429 ? Math.max(PATIENCE_MS, spread) : spread
  if (retryAfterSeconds === undefined) return Math.round(patient)
  const asked = Math.min(retryAfterSeconds * 1_000, Math.max(2 * scheduled, RETRY_AFTER_MS))
  return Math.round(Math.max(patient, asked))
}

/**
 * The wait in ms after interruptions in a row: as if the last one were the failed attempt after `failed` others. The caller
 * counts earlier interruptions in a row as failed, so a delivery that keeps crashing its worker is attempted ever less often.
 * It does not use up the schedule. Decision D-21.
 */
export const waitAfterInterruption = (failed: number, waitsMs: ReadonlyArray<number>, jitter: number): number =>
  Math.round(spreadOf(Math.max(INTERRUPTED_MS, waitsMs[failed + 1] ?? waitsMs.at(-1) ?? 0), jitter))

/** The wait in ms after the service's own proxy failed: at most half a minute. It does not use up the schedule. C-8. */
export const waitAfterProxyError = (jitter: number): number => Math.round(PROXY_MS * (0.5 + jitter / 2))
