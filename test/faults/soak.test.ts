/**
 * `bun run soak`, for half an hour or for `CUSTODY_SOAK` minutes: half of what one machine can deliver,
 * while every two minutes a worker is killed and Postgres crashes. Nothing may be lost, and neither what the surviving
 * process holds (memory, descriptors) nor what Postgres leaves behind (dead rows) may grow.
 * Reliability F30.
 */
import { expect, test } from "bun:test"
import * as fs from "node:fs"
import type { Process } from "../support/app.ts"
import { rssOf } from "../support/deliveryFixtures.ts"
import { until } from "../support/receiver.ts"
import { sound, useRig } from "./Rig.ts"

const minutes = Number(process.env["CUSTODY_SOAK"] ?? 0)
/** Time between two faults, and between two rests, in ms. */
const FAULT_MS = 120_000,
  REST_MS = 30_000
/** Wait between garbage collection and measurement, in ms: the allocator returns free memory within 100 ms. */
const PURGE_MS = 2_000
/** Events of one second: each is matched by one or two webhooks, so this makes about 35 deliveries a second. */
const RATE = 25
/**
 * Maximum growth of memory, in MB per hour, once the process is warm. The allocators take half an hour to reach the memory
 * that they keep, so a shorter run would measure the warm-up; there, the growth after the first third is
 * bounded, in MB, which a leak of 50 MB an hour would exceed.
 */
const SLOPE = 5,
  WARM_MINUTES = 120,
  GROWTH = 16

/**
 * Memory at rest: nothing is fed or in progress, and garbage was collected. Under load the memory of a process
 * varies by 20 MB with work in flight and uncollected garbage, which hides any slope.
 */
interface Sample {
  readonly second: number
  /** Under load, before the rest, and at rest. */
  readonly loadedMb: number
  readonly rssMb: number
  /** Of it in JavaScript's heaps of all threads. */
  readonly heapMb: number
  readonly descriptors: number
  readonly deadRows: number
}

/** Threads of a program with a worker: the main one and that of the workflows. */
const THREADS = 2

/** Collects garbage in every thread of a process (collect.ts), and returns the MB that JavaScript still holds. */
const collect = async ({ child, output }: Process): Promise<number> => {
  const before = output().length
  child.kill("SIGUSR2")
  const lines = await until("what every thread holds", async () => {
    const said = output()
      .slice(before)
      .split("\n")
      .filter((line) => line.includes('"collected"') && line.endsWith("}"))
    return said.length === THREADS ? said : undefined
  })
  await Bun.sleep(PURGE_MS)
  return lines.reduce((sum, line) => sum + JSON.parse(line).heapMb, 0)
}

/** Least-squares slope of a value over the samples, per hour, and its standard error. */
const slope = (samples: ReadonlyArray<Sample>, of: (sample: Sample) => number): { readonly hourly: number; readonly error: number } => {
  const mean = (values: ReadonlyArray<number>) => values.reduce((a, b) => a + b, 0) / values.length
  const x = mean(samples.map(({ second }) => second)),
    y = mean(samples.map(of))
  const covariance = mean(samples.map((sample) => (sample.second - x) * (of(sample) - y)))
  const variance = mean(samples.map(({ second }) => (second - x) ** 2))
  const each = covariance / variance
  const left = mean(samples.map((sample) => (of(sample) - y - each * (sample.second - x)) ** 2))
  const rounded = (perSecond: number) => Math.round(perSecond * 36_000) / 10
  return { hourly: rounded(each), error: rounded(Math.sqrt(left / variance / (samples.length - 2))) }
}

if (minutes > 0) {
  const rig = useRig({ COLLECT: "1" })
  test(
    `${minutes} minutes at half load with faults: nothing is lost, and memory does not grow`,
    async () => {
      const lasting = rig.app.main
      if (lasting === undefined) throw new Error("the program did not start")
      const pid = lasting.child.pid ?? 0
      let worker = await rig.app.start(["worker", "dispatcher"])
      const startedAt = performance.now()
      const elapsed = () => performance.now() - startedAt
      const samples: Array<Sample> = []
      const rest = async () => {
        const loadedMb = await rssOf(pid)
        await rig.settle()
        const heapMb = await collect(lasting)
        const [row] = await rig.app.sql("SELECT coalesce(sum(n_dead_tup), 0)::int AS dead FROM pg_stat_user_tables")
        samples.push({
          second: elapsed() / 1_000,
          loadedMb,
          rssMb: await rssOf(pid),
          heapMb,
          descriptors: fs.readdirSync(`/proc/${pid}/fd`).length,
          deadRows: Number(row?.["dead"])
        })
      }
      let faults = 0
      const fault = async () => {
        faults++
        await worker.end("SIGKILL")
        // Killing a backend makes the whole server crash and recover.
        const [row] = await rig.app.sql(
          "SELECT pid FROM pg_stat_activity WHERE application_name = 'custody-worker' AND datname = current_database() LIMIT 1"
        )
        if (row === undefined) throw new Error("no worker is connected to Postgres")
        process.kill(Number(row["pid"]), "SIGKILL")
        worker = await rig.app.start(["worker", "dispatcher"])
      }
      const pace = 1_000 / (RATE / 5)
      for (let nextRest = REST_MS; elapsed() < minutes * 60_000; ) {
        await Promise.all([rig.feed(RATE, pace), elapsed() > FAULT_MS * (faults + 1) ? fault() : undefined])
        if (elapsed() < nextRest) continue
        await rest()
        nextRest = elapsed() + REST_MS
      }
      await rig.settle(300)
      const history = await rig.history()
      // The first third warms up: code is compiled and caches fill.
      const warm = samples.slice(Math.floor(samples.length / 3))
      const first = warm[0],
        last = warm.at(-1)
      const memory = slope(warm, ({ rssMb }) => rssMb),
        heap = slope(warm, ({ heapMb }) => heapMb)
      console.log(JSON.stringify({ soak: { minutes, faults, ...history, slopes: { memory, heap }, samples } }))
      expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size })
      expect(history.events).toBeGreaterThan(minutes * 60 * RATE * 0.5)
      expect(lasting.child.exitCode).toBeNull()
      expect(last?.descriptors).toBeLessThan((first?.descriptors ?? 0) + 50)
      expect(last?.deadRows).toBeLessThan(200_000)
      if (minutes >= WARM_MINUTES) expect(memory.hourly).toBeLessThan(SLOPE)
      expect((last?.rssMb ?? Number.NaN) - (first?.rssMb ?? Number.NaN)).toBeLessThan(GROWTH)
    },
    (minutes + 10) * 60_000
  )
}
