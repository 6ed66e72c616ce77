/** The parts of `bench events`, one function for each kind of load. Each measures one side: the service or a floor. */
import { cpuMs, machineCpuMs } from "./cpu.ts"
import { now, percentile, type Receiver } from "./deliveries.ts"
import { answersOf, type Posted, post, receipts, receiptsOf, type Target } from "./posting.ts"

/** CPU milliseconds so far, by process. */
export type Cpu = Readonly<Record<string, number>>

/** One of the compared programs. */
export interface Side {
  readonly target: Target
  readonly cpu: () => Cpu
  /** Waits until all consequences of the posts are done. */
  readonly settled: () => Promise<void>
}

const CONNECTIONS = 32
/** Maximum connections of an open loop: a due record is sent at once, however long earlier ones take. */
const OPEN_CONNECTIONS = 256

const rounded = (value: number) => Math.round(value * 100) / 100

/** CPU used between two readings, divided by a count, in ms; `all` is the sum for a side that reports no parts. */
const cpuEach = (before: Cpu, after: Cpu, count: number): Cpu => {
  const each = Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, rounded((ms - (before[name] ?? 0)) / count)]))
  return { ...each, all: each["all"] ?? rounded(Object.values(each).reduce((a, b) => a + b, 0)) }
}

const accepted = (posts: ReadonlyArray<Posted>) => Math.max(1, posts.filter(({ status }) => status === 200).length)

/** Posts at once over 32 connections: deliveries per second from the first post to the last receipt, CPU and WAL per event. */
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

/** Posts at a fixed rate: latency from the time a post was due to its receipt, and the responses to the posts. */
export const openLoop = async (side: Side, receiver: Receiver, vaultId: string, perSecond: number, seconds: number) => {
  const before = side.cpu()
  const posts = await post(side.target, { vaultId, count: perSecond * seconds, connections: OPEN_CONNECTIONS, perSecond })
  const seen = await receipts(receiver, posts)
  const at = now()
  await side.settled()
  const { deliveries, missing, p50Ms, p99Ms } = receiptsOf(posts, seen, at)
  return { perSecond, deliveries, missing, p50Ms, p99Ms, cpuMs: cpuEach(before, side.cpu(), accepted(posts)), answers: answersOf(posts) }
}

/** Posts that match no webhook, over 32 connections: the responses, and the CPU of each. */
export const unmatched = async (side: Side, vaultId: string, count: number) => {
  const before = side.cpu()
  const posts = await post(side.target, { vaultId, count, connections: CONNECTIONS })
  await side.settled()
  return { ...answersOf(posts), cpuMs: cpuEach(before, side.cpu(), accepted(posts)) }
}

/** CPU of a side at rest, by process, in ms per second; `others` is the rest of the machine, which shows what shared it. */
export const idle = async (cpu: () => Cpu, seconds: number) => {
  const before = cpu(),
    machineBefore = machineCpuMs()
  await Bun.sleep(seconds * 1_000)
  const each = cpuEach(before, cpu(), seconds)
  return { ...each, others: Math.round((machineCpuMs() - machineBefore) / seconds - (each["all"] ?? 0)) }
}

/** Workflows of the floor, `group` deliveries in each: deliveries per second, and CPU of the worker and of Temporal for each. */
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
