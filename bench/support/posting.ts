/** Posts of single records by the separate load generator, and their outcome at the receiver. */
import * as path from "node:path"
import { percentile, type Receiver } from "./deliveries.ts"
import type { Answer, Ask } from "./post.ts"
import { environment } from "./servers.ts"
import { hashOf, reserve } from "./transactions.ts"

/** A posted record: when it was due and answered, in epoch milliseconds. */
export interface Posted {
  readonly hash: string
  readonly due: number
  readonly answered: number
  readonly status: number
}

/** The address for single records. */
export type Target = Pick<Ask, "port" | "path" | "token">

/** Posts new transactions of a vault one by one, and returns when the last one is answered. */
export const post = async (
  target: Target,
  ask: Pick<Ask, "vaultId" | "count" | "connections" | "perSecond">
): Promise<ReadonlyArray<Posted>> => {
  const first = reserve(ask.count)
  const child = Bun.spawn([process.execPath, path.join(import.meta.dir, "post.ts"), JSON.stringify({ ...target, ...ask, first })], {
    env: environment(),
    stderr: "inherit"
  })
  const answer: Answer = JSON.parse(await new Response(child.stdout).text())
  return answer.map(([due, answered, status], index) => ({ hash: hashOf(first + index), due, answered, status }))
}

/** How long after a post was due its response counts as late, in ms. */
const LATE_MS = 1_000

/** The responses to the posts: rate, latency from due time to response, and how many were refused (not 200) and late. */
export const answersOf = (posts: ReadonlyArray<Posted>) => {
  const taken = posts.filter(({ status }) => status === 200)
  const times = taken.map(({ answered, due }) => answered - due)
  const from = Math.min(...posts.map(({ due }) => due))
  const to = Math.max(...posts.map(({ answered }) => answered))
  return {
    posts: posts.length,
    perSecond: Math.round(taken.length / ((to - from) / 1_000)),
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    refused: posts.length - taken.length,
    late: times.filter((ms) => ms > LATE_MS).length
  }
}

/**
 * The arrival of accepted posts at the receiver: deliveries per second from the first post to the last receipt, and
 * latency from due time to receipt. A post that has not arrived counts as `missing`, with its waiting time so far.
 */
export const receiptsOf = (posts: ReadonlyArray<Posted>, seen: ReadonlyArray<readonly [hash: string, at: number]>, now: number) => {
  const arrived = new Map<string, number>()
  for (const [hash, at] of seen) if (!arrived.has(hash)) arrived.set(hash, at)
  const taken = posts.filter(({ status }) => status === 200)
  const missing = taken.filter(({ hash }) => !arrived.has(hash)).length
  const times = taken.map(({ due, hash }) => (arrived.get(hash) ?? now) - due)
  const from = Math.min(...taken.map(({ due }) => due))
  const to = Math.max(...taken.map(({ hash }) => arrived.get(hash) ?? now))
  return {
    deliveries: taken.length - missing,
    perSecond: Math.round(((taken.length - missing) / ((to - from) / 1_000)) * 10) / 10,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    missing
  }
}

/** The receiver's record of the accepted posts among these, once all have arrived or the time is over. */
export const receipts = async (receiver: Receiver, posts: ReadonlyArray<Posted>, seconds = 300) => {
  await receiver.reaches(posts.filter(({ status }) => status === 200).length, seconds)
  return receiver.seen()
}
