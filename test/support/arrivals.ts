/** How long events take to arrive while something else goes on. */
import type { App } from "./app.ts"
import type { Receiver } from "./receiver.ts"
import { hash, transaction } from "./records.ts"

interface Events {
  readonly vaultId: string
  /** The receiver's path of the webhook that gets them. */
  readonly path: string
  readonly count: number
  readonly everyMs: number
}

/** How long events are awaited after the last one was fed, in ms. */
const PATIENCE_MS = 20_000
/** Other events of a test have smaller numbers. */
let hashes = 1_000_000_000

/**
 * Feeds events at a steady pace, whether or not those before have arrived. Returns the median and the 95th percentile of the
 * time from the feed to the request, in ms, and how many are missing; a missing one has waited until now.
 */
export const arrivals = async (app: App, receiver: Receiver, { count, everyMs, path, vaultId }: Events) => {
  const fed = new Map<string, number>()
  const feeds: Array<Promise<unknown>> = []
  for (let next = Date.now(); fed.size < count; next += everyMs) {
    await Bun.sleep(Math.max(0, next - Date.now()))
    const number = ++hashes
    fed.set(hash(number), Date.now())
    feeds.push(app.feed([transaction(vaultId, number)]))
  }
  await Promise.all(feeds)
  const times = () => {
    const arrivedAt = new Map<string, number>()
    for (const { at, body } of receiver.to(path)) arrivedAt.set(JSON.parse(body).data.transaction.hash, at)
    return Array.from(fed, ([text, fedAt]) => ({ took: (arrivedAt.get(text) ?? Date.now()) - fedAt, missing: !arrivedAt.has(text) }))
  }
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end && times().some(({ missing }) => missing); ) await Bun.sleep(50)
  const all = times().toSorted((a, b) => a.took - b.took)
  const part = (share: number) => all[Math.ceil(all.length * share) - 1]?.took ?? 0
  return { p50: part(0.5), p95: part(0.95), missing: all.filter(({ missing }) => missing).length }
}
