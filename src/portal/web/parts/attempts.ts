/** Attempts of a webhook: where one is shown, and how many there were over time, by result. */
import type { Delivery } from "../../../client/index.ts"
import type { Traffic } from "../../server/Overview.ts"

/** The address of a delivery, or of one of its attempts, counted from 1: its place on the page of its event. */
export const deliveryPath = ({ eventId, id }: Delivery, attemptNumber?: number): string =>
  `/events/${eventId}#${attemptNumber === undefined ? id : `${id}.${attemptNumber}`}`

/** The results that a chart shows, with their labels and colors, from the bottom of a bar to its top. */
export const results = [
  ["succeeded", "2xx", "--chart"],
  ["rejected", "3xx, 4xx", "--wait"],
  ["errored", "5xx", "--bad"],
  ["unanswered", "No response", "--soft"]
] as const

/** Failed attempts, by step. */
export const failedOf = ({ errored, rejected, unanswered }: Traffic): ReadonlyArray<number> =>
  rejected.map((count, step) => count + (errored[step] ?? 0) + (unanswered[step] ?? 0))

/** Hours of {@link recent} attempts. */
export const RECENT_HOURS = 2
/** Fewer failed attempts say nothing. */
const FEW = 3

const total = (counts: ReadonlyArray<number>) => counts.reduce((sum, count) => sum + count, 0)

/**
 * How many of the attempts of the last hours failed, if that is every fourth or more: deliveries may all arrive in the end, and the
 * webhook is not well. Undefined otherwise.
 */
export const unreliable = (traffic: Traffic | undefined): { readonly failed: number; readonly of: number } | undefined => {
  if (traffic === undefined) return undefined
  const steps = Math.round((RECENT_HOURS * 3_600) / traffic.stepSeconds)
  const failed = total(failedOf(traffic).slice(-steps))
  const of = failed + total(traffic.succeeded.slice(-steps))
  return failed >= FEW && failed * 4 >= of ? { failed, of } : undefined
}
