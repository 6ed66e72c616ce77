/**
 * `bun run bench feed-read [--large] [--quick] [--part pages|idle|latency] [--profile]`: reads of the event feed against a bare floor, in
 * one run. Pages of a log of 10 thousand events beside those of one of 1 million (10 million with --large), round by round;
 * 1,000 idle streams; and from the commit of an event to its receipt on a stream. `--profile`: pages of 20 events under Bun's
 * CPU profiler, and nothing else.
 */
import * as path from "node:path"
import { cpuMs, cpuOfService, residentKb } from "./support/cpu.ts"
import { percentile } from "./support/deliveries.ts"
import { type FeedLog, feedLog } from "./support/feedLog.ts"
import { options } from "./support/options.ts"
import { largest } from "./support/profile.ts"
import { end, environment, folder, load, median, start, stop } from "./support/servers.ts"
import { transactionLine } from "./support/transactions.ts"

const SMALL = 10_000,
  LARGE = options.large ? 10_000_000 : 1_000_000
const ROUNDS = options.quick ? 2 : 5,
  SECONDS = 2,
  CONNECTIONS = 16
const STREAMS = 1_000,
  STREAMS_OF_A_KEY = 5,
  IDLE_SECONDS = options.quick ? 16 : 45,
  SETTLE_SECONDS = options.quick ? 4 : 10
const EVENTS_PER_SECOND = 20,
  EVENT_SECONDS = options.quick ? 20 : 60

const jsonLine = <A>(line: string): A | undefined => (line.startsWith("{") ? JSON.parse(line) : undefined)
const floorOf = ({ databaseUrl }: FeedLog) =>
  start("bench/support/feedFloor.ts", [], { ...environment(), DATABASE_URL: databaseUrl }, jsonLine<{ readonly port: number }>)

const readersOf = async (url: string, keys: ReadonlyArray<string>, each: number) => {
  const env = { ...environment(), BUN_CONFIG_MAX_HTTP_REQUESTS: "4096" }
  const { control, process } = await start(
    "bench/support/feedReaders.ts",
    [JSON.stringify({ url, keys, each })],
    env,
    jsonLine<{ readonly control: number }>
  )
  return {
    arrived: async () => (await (await fetch(`http://127.0.0.1:${control}`)).json()) as ReadonlyArray<readonly [string, number]>,
    stop: () => stop(process)
  }
}

interface Case {
  readonly name: string
  readonly key: keyof FeedLog["keys"]
  readonly limit: number
  /** How far into the log it begins, from 0 to 1. */
  readonly share: number
  /** Begins where the key sees one event in 10,000, so that a page goes over a million events. */
  readonly sparse?: true
  readonly floor?: "organization" | "vault"
}

/** Pages of both logs, each with its floor where it has one. */
const pages = async (logs: ReadonlyArray<FeedLog>) => {
  const floors = await Promise.all(logs.map(floorOf))
  const cases: ReadonlyArray<Case> = [
    { name: "20 events, oldest", key: "owner", limit: 20, share: 0, floor: "organization" },
    { name: "100 events, oldest", key: "owner", limit: 100, share: 0, floor: "organization" },
    { name: "100 events, in the middle", key: "owner", limit: 100, share: 0.5 },
    { name: "100 events of a key that sees one in 10,000", key: "rare", limit: 100, share: 0, sparse: true, floor: "vault" },
    { name: "no event, of a key that sees none", key: "empty", limit: 100, share: 0 }
  ]
  // Programs that have run for a while are measured.
  for (const [index, { keys, port }] of logs.entries()) {
    const ask = { key: keys.owner, connections: CONNECTIONS, seconds: SECONDS }
    await load({ ...ask, port, paths: ["/v1/event-feed?limit=20"] })
    await load({ ...ask, port: floors[index]?.port, paths: ["/page?of=organization&limit=20&after=0"] })
  }
  const results = []
  for (const one of cases) {
    const { floor, key, limit, name, share, sparse } = one
    const measured = logs.map(() => ({ ours: [] as Array<number>, floor: [] as Array<number>, p99: [] as Array<number> }))
    for (let round = 0; round < ROUNDS; round++) {
      for (const [index, log] of logs.entries()) {
        const after = sparse === true && log.count > SMALL ? SMALL : Math.floor(share * log.count)
        const ask = { key: log.keys[key], connections: CONNECTIONS, seconds: SECONDS }
        const asked = { ...ask, port: log.port, paths: [`/v1/event-feed?limit=${limit}&after=${log.cursor(after)}`] }
        const ours = await load(asked).catch((cause) => Promise.reject(new Error(`${name}, of ${log.count}`, { cause })))
        measured[index]?.ours.push(ours.perSecond)
        measured[index]?.p99.push(ours.p99Ms)
        if (floor === undefined) continue
        const bare = await load({ ...ask, port: floors[index]?.port, paths: [`/page?of=${floor}&limit=${limit}&after=${after}`] })
        measured[index]?.floor.push(bare.perSecond)
      }
    }
    const [small, large] = measured
    if (small === undefined || large === undefined) throw new Error("two logs are measured")
    const ratio = (over: ReadonlyArray<number>, under: ReadonlyArray<number>) =>
      over.length === 0 || under.length === 0
        ? null
        : Math.round(median(over.map((value, round) => value / (under[round] ?? 1))) * 100) / 100
    results.push({
      page: name,
      small: median(small.ours),
      large: median(large.ours),
      p99Ms: median(large.p99),
      floor: floor === undefined ? null : median(large.floor),
      oursOverFloor: ratio(large.ours, large.floor),
      costAgainstSmall: ratio(small.ours, large.ours),
      floorCostAgainstSmall: ratio(small.floor, large.floor)
    })
  }
  await Promise.all(floors.map(({ process }) => stop(process)))
  return results
}

/** What idle streams cost beyond the same process without them. */
const idle = async (log: FeedLog) => {
  const keys = (await log.otherKeys()).slice(0, STREAMS / STREAMS_OF_A_KEY)
  const cost = async (who: string, pid: number, url: string, cpu: () => { readonly service: number; readonly postgres: number }) => {
    const of = async () => {
      await Bun.sleep(SETTLE_SECONDS * 1_000)
      const [before, kb] = [cpu(), residentKb(pid)]
      await Bun.sleep(IDLE_SECONDS * 1_000)
      const after = cpu()
      const percent = (part: "service" | "postgres") => Math.round((after[part] - before[part]) / IDLE_SECONDS / 0.1) / 100
      return { kb, service: percent("service"), postgres: percent("postgres") }
    }
    const without = await of()
    const readers = await readersOf(url, keys, STREAMS_OF_A_KEY)
    const held = await of()
    await readers.stop()
    return {
      who,
      streams: STREAMS,
      cpuPercentWithout: without.service,
      cpuPercent: held.service,
      postgresPercentWithout: without.postgres,
      postgresPercent: held.postgres,
      kbEach: Math.round((held.kb - without.kb) / STREAMS)
    }
  }
  const floor = await floorOf(log)
  const floorCost = await cost("floor", floor.process.pid ?? 0, `http://127.0.0.1:${floor.port}/stream`, () => ({
    service: cpuMs([floor.process.pid ?? 0]),
    postgres: 0
  }))
  await stop(floor.process)
  const pid = log.process.pid ?? 0
  const ours = await cost("service", pid, `http://127.0.0.1:${log.port}/v1/event-feed/stream?from=now`, cpuOfService(pid))
  return [floorCost, ours]
}

/** Posts records one by one, and compares when they were committed with when they arrived on a stream. */
const latency = async (log: FeedLog) => {
  let next = 0
  const measure = async (who: string, url: string, key: string) => {
    const readers = await readersOf(url, [key], 1)
    const post = async () => {
      const answer = await fetch(`http://127.0.0.1:${log.platformPort}/platform/v1/records`, {
        method: "POST",
        headers: { authorization: `Bearer ${log.token}`, "content-type": "application/x-ndjson" },
        body: transactionLine(2_000_000_000 + next++, "vault_1")
      })
      if (answer.status !== 200) throw new Error(await answer.text())
    }
    for (let count = 0; count < EVENTS_PER_SECOND; count++) await post()
    const warm = (await readers.arrived()).length
    const count = EVENTS_PER_SECOND * EVENT_SECONDS
    const startedAt = performance.now()
    const posts = []
    for (let index = 0; index < count; index++) {
      await Bun.sleep(Math.max(0, startedAt + (index * 1_000) / EVENTS_PER_SECOND - performance.now()))
      posts.push(post())
    }
    await Promise.all(posts)
    await Bun.sleep(2_000)
    const arrived = (await readers.arrived()).slice(warm)
    await readers.stop()
    const committed = await log.committed(arrived.map(([id]) => id))
    const times = arrived.map(([id, at]) => at - (committed.get(id) ?? Number.NaN))
    if (times.some(Number.isNaN) || times.length < count) throw new Error(`${times.length} of ${count} events arrived`)
    return { who, perSecond: EVENTS_PER_SECOND, events: times.length, p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) }
  }
  const results = []
  const floor = await floorOf(log)
  results.push(await measure("floor", `http://127.0.0.1:${floor.port}/stream`, ""))
  await stop(floor.process)
  results.push(await measure("service", `http://127.0.0.1:${log.port}/v1/event-feed/stream?from=now`, log.keys.owner))
  return results
}

const isAsked = (part: string) => options.part === undefined || options.part === part

/** Where the service's main thread spends its time while it serves pages of 20 events. */
const profiled = async () => {
  const log = await feedLog("small", SMALL, ["--cpu-prof", `--cpu-prof-dir=${folder}`, "--cpu-prof-name=service.cpuprofile"])
  const ask = { key: log.keys.owner, port: log.port, connections: CONNECTIONS, paths: ["/v1/event-feed?limit=20"] }
  await load({ ...ask, seconds: SECONDS })
  const from = Date.now()
  const { perSecond } = await load({ ...ask, seconds: 5 * SECONDS })
  const to = Date.now()
  await log.client.end()
  await stop(log.process)
  const costs = largest(path.join(folder, "service.cpuprofile"), from, to)
  console.log(JSON.stringify({ bench: "feed-read", profile: true, perSecond, ...costs }, null, 2))
  console.table(costs.functions)
  console.table(costs.packages)
}

const measured = async () => {
  const small = await feedLog("small", SMALL)
  const pagesOfBoth = async () => {
    const large = await feedLog("large", LARGE)
    console.log(`seeded ${SMALL} and ${LARGE}`)
    const results = await pages([small, large])
    await large.client.end()
    return results
  }
  const results = {
    pages: isAsked("pages") ? await pagesOfBoth() : [],
    idle: isAsked("idle") ? await idle(small) : [],
    latency: isAsked("latency") ? await latency(small) : []
  }
  await small.client.end()
  console.log(
    JSON.stringify(
      { bench: "feed-read", rounds: ROUNDS, secondsEach: SECONDS, connections: CONNECTIONS, sizes: [SMALL, LARGE], results },
      null,
      2
    )
  )
  for (const table of Object.values(results)) if (table.length > 0) console.table(table)
}

try {
  await (options.profile ? profiled : measured)()
} finally {
  await end()
}
