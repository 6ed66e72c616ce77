/**
 * `bun run bench deliveries`: 1,000 events to one fast local HTTPS receiver, compared with the bare workflow in one run:
 * deliveries per second and CPU per delivery; then the latency from record to receipt at 20 events a second.
 */
import * as path from "node:path"
import { cpuMs, cpuOfService, descendant } from "./support/cpu.ts"
import { delivering, now, percentile, receiver, service, settled, transactions } from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { database, embedded, end, folder, median, start } from "./support/servers.ts"

const ROUNDS = options.quick ? 2 : 5,
  EVENTS = 1_000
const PACE_MS = 50,
  PACED = 600

try {
  const target = await receiver()
  const env = delivering(target)
  const ours = await service(env, "api,worker,dispatcher", target.url)
  const client = await database()
  client.on("error", () => {})
  const pid = ours.process.pid ?? 0
  const temporal = descendant(pid, "temporal")
  const parts = cpuOfService(pid)
  const floor = await start(
    "bench/support/workflowFloor.ts",
    [],
    { ...env, FLOOR_TEMPORAL: embedded().temporalAddress, FLOOR_URL: target.url, FLOOR_CA: path.join(folder, "ca.pem") },
    (line): { port: number } | undefined => (line.startsWith('{"port"') ? JSON.parse(line) : undefined)
  )
  const rate = (seen: ReadonlyArray<readonly [string, number]>, from: number) =>
    Math.round(seen.length / ((Math.max(...seen.map(([, at]) => at)) - from) / 1_000))

  const runOurs = async (count: number) => {
    const before = parts()
    const { answered } = await ours.feed(transactions(count).map(({ line }) => line))
    await target.reaches(count)
    await settled(client)
    const seen = await target.seen()
    const after = parts()
    const of = (part: keyof typeof after) => (after[part] - before[part]) / count
    return {
      perSecond: rate(seen, answered),
      cpuMs: of("all"),
      serviceCpuMs: of("service"),
      temporalCpuMs: of("temporal"),
      postgresCpuMs: of("postgres"),
      requests: seen.length
    }
  }
  const runFloor = async (count: number) => {
    const worker = floor.process.pid ?? 0
    const before = { worker: cpuMs([worker]), temporal: cpuMs([temporal]) }
    const from = now()
    await fetch(`http://127.0.0.1:${floor.port}/?count=${count}`, { method: "POST" })
    await target.reaches(count)
    await Bun.sleep(1_500)
    const workerCpuMs = (cpuMs([worker]) - before.worker) / count
    const temporalCpuMs = (cpuMs([temporal]) - before.temporal) / count
    return { perSecond: rate(await target.seen(), from), cpuMs: workerCpuMs + temporalCpuMs, workerCpuMs, temporalCpuMs }
  }

  // Both sides are warm before they are measured.
  for (let round = 0; round < 2; round++) {
    await runFloor(EVENTS)
    await runOurs(EVENTS)
  }
  const pairs: Array<{ floor: Awaited<ReturnType<typeof runFloor>>; ours: Awaited<ReturnType<typeof runOurs>> }> = []
  for (let round = 0; round < ROUNDS; round++) pairs.push({ floor: await runFloor(EVENTS), ours: await runOurs(EVENTS) })

  const fed = new Map<string, number>()
  for (const { hash, line } of transactions(PACED)) {
    const due = now() + PACE_MS
    const { begun } = await ours.feed([line])
    fed.set(hash, begun)
    await Bun.sleep(Math.max(0, due - now()))
  }
  await target.reaches(PACED)
  const times = (await target.seen()).map(([hash, at]) => at - (fed.get(hash) ?? 0))
  await client.end()

  const figure = (of: (pair: (typeof pairs)[number]) => number) => Math.round(median(pairs.map(of)) * 100) / 100
  const results = {
    floorPerSecond: figure((_) => _.floor.perSecond),
    oursPerSecond: figure((_) => _.ours.perSecond),
    ratio: figure((_) => _.ours.perSecond / _.floor.perSecond),
    floorCpuMs: figure((_) => _.floor.cpuMs),
    oursCpuMs: figure((_) => _.ours.cpuMs),
    floorWorkerCpuMs: figure((_) => _.floor.workerCpuMs),
    floorTemporalCpuMs: figure((_) => _.floor.temporalCpuMs),
    oursServiceCpuMs: figure((_) => _.ours.serviceCpuMs),
    oursTemporalCpuMs: figure((_) => _.ours.temporalCpuMs),
    oursPostgresCpuMs: figure((_) => _.ours.postgresCpuMs),
    cpuRatio: figure((_) => _.ours.cpuMs / _.floor.cpuMs),
    requestsPerDelivery: figure((_) => _.ours.requests / EVENTS),
    recordToReceiptP50Ms: percentile(times, 0.5),
    recordToReceiptP99Ms: percentile(times, 0.99)
  }
  console.log(JSON.stringify({ bench: "deliveries", rounds: ROUNDS, events: EVENTS, paced: PACED, pairs, results }, null, 2))
  console.table(results)
} finally {
  await end()
}
