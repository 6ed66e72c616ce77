/** What `bench events` measures, one function for each kind of load. Each takes the side that it measures: the service or a floor. */
import { cpuMs, machineCpuMs } from "./cpu.ts"
import { now, percentile, type Receiver } from "./deliveries.ts"
import { answersOf, type Posted, post, receipts, receiptsOf, type Target } from "./posting.ts"

/** CPU milliseconds so far, by process. */
export type Cpu = Readonly<Record<string, number>>

/** One of the programs that are compared. */
export interface Side {
  readonly target: Target
  readonly cpu: () => Cpu
  /** Waits until everything that follows from what was posted is done. */
  readonly settled: () => Promise<void>
}

const CONNECTIONS = 32
/** Connections of an open loop at most: what is due goes out at once, however long those before it take. */
const OPEN_CONNECTIONS = 256

const rounded = (value: number) => Math.round(value * 100) / 100

/** What was used in between for each of so many, in ms; `all` is the sum where a side does not say. */
const cpuEach = (before: Cpu, after: Cpu, count: number): Cpu => {
  const each = Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, rounded((ms - (before[name] ?? 0)) / count)]))
  return { ...each, all: each["all"] ?? rounded(Object.values(each).reduce((a, b) => a + b, 0)) }
}

const accepted = (posts: ReadonlyArray<Posted>) => Math.max(1, posts.filter(({ status }) => status === 200).length)

/** Posts at once over 32 connections: deliveries a second from the first post to the last receipt, CPU and WAL for each event. */
export const burst = async (side: Side, receiver: Receiver, vaultId: string, count: number, walBytes: () => Promise<number>) => {
  const before = side.cpu(),
    walBefore = await walBytes()
  const posts = await post(side.target, { vaultId, count, connections: CONNECTIONS })
  const seen = await receipts(receiver, posts)
  const at = now()
  await side.settled()
  return {
    ...receiptsOf(posts, seen, at),
    requests: seen.length,
    cpuMs: cpuEach(before, side.cpu(), accepted(posts)),
    walBytes: Math.round(((await walBytes()) - walBefore) / accepted(posts)),
    answers: answersOf(posts)
  }
}

/** Posts at a fixed rate: latency from the time a post was due to its receipt, and how the posts were answered. */
export const openLoop = async (side: Side, receiver: Receiver, vaultId: string, perSecond: number, seconds: number) => {
  const before = side.cpu()
  const posts = await post(side.target, { vaultId, count: perSecond * seconds, connections: OPEN_CONNECTIONS, perSecond })
  const seen = await receipts(receiver, posts)
  const at = now()
  await side.settled()
  const { deliveries, missing, p50Ms, p99Ms } = receiptsOf(posts, seen, at)
  return { perSecond, deliveries, missing, p50Ms, p99Ms, cpuMs: cpuEach(before, side.cpu(), accepted(posts)), answers: answersOf(posts) }
}

/** Posts that match no webhook, over 32 connections: how they are answered, and the CPU of each. */
export const unmatched = async (side: Side, vaultId: string, count: number) => {
  const before = side.cpu()
  const posts = await post(side.target, { vaultId, count, connections: CONNECTIONS })
  await side.settled()
  return { ...answersOf(posts), cpuMs: cpuEach(before, side.cpu(), accepted(posts)) }
}

/** CPU of a side at rest, by process, in ms for each second; `others` is the rest of the machine, which says what the run shared it with. */
export const idle = async (cpu: () => Cpu, seconds: number) => {
  const before = cpu(),
    machineBefore = machineCpuMs()
  await Bun.sleep(seconds * 1_000)
  const each = cpuEach(before, cpu(), seconds)
  return { ...each, others: Math.round((machineCpuMs() - machineBefore) / seconds - (each["all"] ?? 0)) }
}

/** Workflows of the floor, `group` deliveries in each: deliveries a second, and CPU of the worker and Temporal for each. */
export const workflows = async (
  floor: { readonly port: number; readonly pid: number },
  temporal: number,
  receiver: Receiver,
  count: number,
  group: number
) => {
  const cpu = () => ({ worker: cpuMs([floor.pid]), temporal: cpuMs([temporal]) })
  const before = cpu(),
    from = now()
  await fetch(`http://127.0.0.1:${floor.port}/?count=${count}&group=${group}`, { method: "POST" })
  await receiver.reaches(count)
  await Bun.sleep(1_500)
  const seen = await receiver.seen()
  return {
    group,
    perSecond: Math.round(count / ((Math.max(...seen.map(([, at]) => at)) - from) / 1_000)),
    p99Ms: percentile(
      seen.map(([, at]) => at - from),
      0.99
    ),
    cpuMs: cpuEach(before, cpu(), count)
  }
}
