/**
 * Runs the groups of a run: at least one per core, and more while the cores are idle. Most tests wait for a part of their
 * time, for retries, windows and timeouts, and then a core has time for another group.
 */
import * as os from "node:os"

const cores = os.availableParallelism()
/** Groups that always run, and most that run beside each other; each has Postgres connections and programs of its own. */
const LEAST = Math.min(6, cores),
  MOST = Math.min(12, 2 * cores)
/** The share of the cores that must have been idle for another group to start, and for how long. */
const IDLE = 0.3,
  DURING_MS = 2_000

/** Time of all cores so far, and how much of it they were idle, in ms. */
const cpuTimes = () => {
  const all = os.cpus().map(({ times }) => times)
  const sum = (of: (times: (typeof all)[number]) => number) => all.reduce((total, times) => total + of(times), 0)
  return { idle: sum(({ idle }) => idle), total: sum(({ idle, irq, nice, sys, user }) => idle + irq + nice + sys + user) }
}

/** Runs each item once, in their order; starts none after `isOver`. Fails if one fails. */
export const runQueue = async <A>(items: ReadonlyArray<A>, run: (item: A) => Promise<void>, isOver: () => boolean): Promise<void> => {
  const waiting = [...items]
  const running = new Set<Promise<void>>()
  while (waiting.length > 0 && !isOver()) {
    if (running.size >= LEAST) {
      const before = cpuTimes()
      // A group that ends leaves its place to the next one at once.
      const ended = await Promise.race([Promise.race(running).then(() => true), Bun.sleep(DURING_MS).then(() => false)])
      const after = cpuTimes()
      const isIdle = after.idle - before.idle > IDLE * (after.total - before.total)
      if (ended ? running.size >= LEAST : running.size >= MOST || !isIdle) continue
    }
    const item = waiting.shift()
    if (item === undefined) break
    const one = run(item).finally(() => running.delete(one))
    running.add(one)
  }
  await Promise.all(running)
}
