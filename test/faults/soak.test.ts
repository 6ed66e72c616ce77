/**
 * `bun run soak [minutes]`: half of what one machine delivers, for half an hour, while every two minutes a worker is
 * killed and Postgres crashes. Nothing is lost, and what the process that lives through all of it holds (memory,
 * descriptors) and what Postgres leaves lying about (dead rows) does not grow. Reliability F30.
 */
import { expect, test } from "bun:test"
import * as fs from "node:fs"
import { rssOf } from "../deliveries/verbs.ts"
import { Rig, sound } from "./Rig.ts"

const minutes = Number(process.env["CUSTODY_SOAK"] ?? 0)
/** Time between two faults, and between two samples, in ms. */
const FAULT_MS = 120_000,
  SAMPLE_MS = 10_000
/** Events of one second: each is matched by one or two webhooks, so this makes about 30 deliveries a second. */
const RATE = 20
/** Most that memory may grow, in MB an hour, once the process is warm. */
const SLOPE = 5

interface Sample {
  readonly second: number
  readonly rssMb: number
  readonly descriptors: number
  readonly deadRows: number
}

/** Least-squares slope of a value over the samples, an hour. */
const slope = (samples: ReadonlyArray<Sample>, of: (sample: Sample) => number): number => {
  const mean = (values: ReadonlyArray<number>) => values.reduce((a, b) => a + b, 0) / values.length
  const x = mean(samples.map(({ second }) => second)),
    y = mean(samples.map(of))
  const covariance = mean(samples.map((sample) => (sample.second - x) * (of(sample) - y)))
  const variance = mean(samples.map(({ second }) => (second - x) ** 2))
  return (covariance / variance) * 3_600
}

if (minutes > 0)
  test(
    `${minutes} minutes at half load with a fault every two`,
    async () => {
      const rig = new Rig()
      await rig.open()
      const lasting = rig.app.main
      if (lasting === undefined) throw new Error("the program did not start")
      const pid = lasting.child.pid ?? 0
      let worker = await rig.app.start(["worker", "dispatcher"])
      const startedAt = performance.now()
      const samples: Array<Sample> = []
      let over = false
      const sampling = (async () => {
        while (!over) {
          const dead = await rig.app
            .sql("SELECT coalesce(sum(n_dead_tup), 0)::int AS dead FROM pg_stat_user_tables")
            .then(([row]) => Number(row?.["dead"]))
            .catch(() => undefined)
          if (dead !== undefined)
            samples.push({
              second: (performance.now() - startedAt) / 1_000,
              rssMb: await rssOf(pid),
              descriptors: fs.readdirSync(`/proc/${pid}/fd`).length,
              deadRows: dead
            })
          await Bun.sleep(SAMPLE_MS)
        }
      })()
      let faults = 0
      const breaking = (async () => {
        for (let next = FAULT_MS; !over; await Bun.sleep(500)) {
          if (performance.now() - startedAt < next) continue
          next += FAULT_MS
          faults++
          await worker.end("SIGKILL")
          // A backend that is killed takes the whole server through a crash and its recovery.
          const [row] = await rig.app
            .sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'custody-worker' AND datname = current_database() LIMIT 1")
            .catch(() => [])
          if (row !== undefined) process.kill(Number(row["pid"]), "SIGKILL")
          worker = await rig.app.start(["worker", "dispatcher"])
        }
      })()
      const second = 1_000 / (RATE / 5)
      while (performance.now() - startedAt < minutes * 60_000) await rig.feed(RATE, second)
      over = true
      await Promise.all([sampling, breaking])
      await rig.settle(300)
      const history = await rig.history()
      // The first third warms up: code is compiled and caches fill.
      const warm = samples.slice(Math.floor(samples.length / 3))
      const first = warm[0],
        last = warm.at(-1)
      const grown = slope(warm, ({ rssMb }) => rssMb)
      console.log(
        JSON.stringify({
          soak: { minutes, faults, ...history, rssSlopeMbPerHour: Math.round(grown * 10) / 10, first, last, samples: samples.length }
        })
      )
      expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size })
      expect(history.events).toBeGreaterThan(minutes * 60 * RATE * 0.5)
      expect(lasting.child.exitCode).toBeNull()
      expect(last?.descriptors).toBeLessThan((first?.descriptors ?? 0) + 50)
      expect(last?.deadRows).toBeLessThan(200_000)
      if (minutes >= 30) expect(grown).toBeLessThan(SLOPE)
      await rig.close()
    },
    (minutes + 10) * 60_000
  )
