import { problem } from "../../http/Problem.ts"

/** A `rate_limited` error with the time until a retry. */
export const tooMany = (what: string, seconds: number) => {
  const minutes = Math.ceil(seconds / 60)
  const wait = minutes === 1 ? "a minute" : minutes <= 120 ? `${minutes} minutes` : `${Math.ceil(minutes / 60)} hours`
  return problem("rate_limited", `${what} Try again in ${wait}.`, { headers: { "retry-after": String(seconds) } })
}
