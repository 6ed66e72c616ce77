/**
 * `bun run bench events [--quick] [--profile]`: records that are posted one by one to a running service with one HTTPS
 * endpoint, from the post to the receipt: a burst, fixed rates, posts that match no webhook, and the service at rest. CPU by
 * process and WAL for each. Floors in the same run: a program on bare Bun and `pg`, the bare workflow, and the bare workflow
 * for a group of 50; at a fixed rate, a group has what arrived while the last one posted.
 */
import * as path from "node:path"
import { cpuMs, cpuOfService, descendant } from "./support/cpu.ts"
import { delivering, dispatched, now, receiver, service, settled } from "./support/deliveries.ts"
import { burst, idle, openLoop, type Side, unmatched, workflows } from "./support/eventParts.ts"
import { options } from "./support/options.ts"
import { largest } from "./support/profile.ts"
import { database, embedded, end, folder, median, start } from "./support/servers.ts"

const ROUNDS = options.quick ? 1 : 3,
  BURST = options.quick ? 500 : 2_000,
  WARM = options.quick ? 200 : 4_000
const RATES = [20, 50, 100, 200],
  RATE_SECONDS = options.quick ? 6 : 20
const UNMATCHED = options.quick ? 1_000 : 6_000,
  /** Deliveries of a floor's round, and of one group. */
  FLOOR = options.quick ? 300 : 1_000,
  GROUP = 50
/** Time for the service to come to rest, garbage collection included, and time over which its rest is measured, in seconds. */
const SETTLE = options.quick ? 5 : 30,
  IDLE = options.quick ? 10 : 60
/** Rows that a burst under the profiler has. */
const PROFILED = options.quick ? 1_000 : 4_000
/** Goals: of a burst, and of 50 and 200 events a second; `cpuOfWorkflow` is CPU by that of the bare workflow. */
const GOALS = {
  burst: { perSecond: 1_300, cpuMs: 1.2 },
  at50: { p50Ms: 10, cpuOfWorkflow: 1.3 },
  at200: { p50Ms: 20, cpuMs: 4 }
}
const VAULT = "vault_bench",
  QUIET = "vault_bench_quiet"

try {
  const target = await receiver()
  const env = delivering(target)
  const profile = ["--cpu-prof", `--cpu-prof-dir=${folder}`, "--cpu-prof-name=service.cpuprofile"]
  const ours = await service(env, "api,worker,dispatcher", target.url, options.profile ? profile : [])
  const client = await database()
  client.on("error", () => {})
  const pid = ours.process.pid ?? 0
  const walBytes = async (): Promise<number> => {
    const { rows } = await client.query("SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8 AS bytes")
    return rows[0].bytes
  }
  const allDone = async () => {
    await dispatched(ours)
    await settled(client)
  }
  const service_: Side = { target: ours.target, cpu: cpuOfService(pid), settled: allDone }

  const profiled = async () => {
    await burst(service_, target, VAULT, WARM, walBytes)
    const from = now()
    const run = await burst(service_, target, VAULT, PROFILED, walBytes)
    const to = now()
    await client.end()
    const ended = new Promise((resolve) => ours.process.once("exit", resolve))
    ours.process.kill("SIGTERM")
    await ended
    const costs = largest(path.join(folder, "service.cpuprofile"), from, to)
    console.log(JSON.stringify({ bench: "events", profile: true, run, ...costs }, null, 2))
    console.table(costs.functions)
    console.table(costs.packages)
  }

  const measured = async () => {
    const temporal = descendant(pid, "temporal")
    const postgres = descendant(pid, "bin/postgres")
    const trusted = { FLOOR_URL: target.url, NODE_EXTRA_CA_CERTS: path.join(folder, "ca.pem") }
    const ready = (line: string): { port: number } | undefined => (line.startsWith('{"port"') ? JSON.parse(line) : undefined)
    const bare = await start(
      "bench/support/eventsFloor.ts",
      [],
      { ...env, ...trusted, DATABASE_URL: embedded().databaseUrl, FLOOR_TOKEN: "floor" },
      ready
    )
    const bareSide = (to: string): Side => ({
      target: { port: bare.port, path: to, token: "floor" },
      cpu: () => ({ service: cpuMs([bare.process.pid ?? 0]), postgres: cpuMs([postgres]) }),
      settled: () => Bun.sleep(500)
    })
    const bareWorker = await start(
      "bench/support/workflowFloor.ts",
      [],
      { ...env, ...trusted, FLOOR_TEMPORAL: embedded().temporalAddress, FLOOR_CA: path.join(folder, "ca.pem") },
      ready
    )
    const worker = { port: bareWorker.port, pid: bareWorker.process.pid ?? 0 }
    const workflowSide = (to: string): Side => ({
      target: { port: bareWorker.port, path: to, token: "floor" },
      cpu: () => ({ worker: cpuMs([worker.pid]), temporal: cpuMs([temporal]) }),
      settled: () => Bun.sleep(1_500)
    })

    const round = async (events: number, floor: number, unmatchedPosts: number) => ({
      bare: await burst(bareSide("/deliver"), target, VAULT, events, walBytes),
      ours: await burst(service_, target, VAULT, events, walBytes),
      workflow: await workflows(worker, temporal, target, floor, 1),
      group: await workflows(worker, temporal, target, floor * 2, GROUP),
      bareUnmatched: await unmatched(bareSide("/record"), QUIET, unmatchedPosts),
      oursUnmatched: await unmatched(service_, QUIET, unmatchedPosts)
    })
    // All sides are warm before they are measured.
    await round(WARM, WARM, WARM)
    const rounds: Array<Awaited<ReturnType<typeof round>>> = []
    for (let count = 0; count < ROUNDS; count++) rounds.push(await round(BURST, FLOOR, UNMATCHED))

    const rates = []
    for (const perSecond of RATES) {
      const at = (side: Side) => openLoop(side, target, VAULT, perSecond, RATE_SECONDS)
      rates.push({
        bare: await at(bareSide("/deliver")),
        ours: await at(service_),
        workflow: await at(workflowSide("/deliver")),
        group: await at(workflowSide("/share"))
      })
    }
    bare.process.kill("SIGTERM")
    bareWorker.process.kill("SIGTERM")
    await client.end()
    await Bun.sleep(SETTLE * 1_000)
    const rest = await idle(service_.cpu, IDLE)
    return { rounds, rates, rest }
  }

  const report = ({ rates, rest, rounds }: Awaited<ReturnType<typeof measured>>) => {
    type Round = (typeof rounds)[number]
    const figure = (of: (round: Round) => number) => Math.round(median(rounds.map(of)) * 100) / 100
    const cpuOf = (side: (round: Round) => { readonly cpuMs: Readonly<Record<string, number>> }) => {
      const part = (name: string) => figure((one) => side(one).cpuMs[name] ?? 0)
      return { cpuMs: part("all"), program: part("service") + part("worker"), temporal: part("temporal"), postgres: part("postgres") }
    }
    const bursts = {
      "bare Bun and pg": { perSecond: figure((_) => _.bare.perSecond), ...cpuOf((_) => _.bare), walBytes: figure((_) => _.bare.walBytes) },
      "bare workflow": { perSecond: figure((_) => _.workflow.perSecond), ...cpuOf((_) => _.workflow) },
      [`bare group of ${GROUP}`]: { perSecond: figure((_) => _.group.perSecond), ...cpuOf((_) => _.group) },
      ours: { perSecond: figure((_) => _.ours.perSecond), ...cpuOf((_) => _.ours), walBytes: figure((_) => _.ours.walBytes) }
    }
    const posts = {
      "bare, no webhook": { ...rounds.at(-1)?.bareUnmatched, ...cpuOf((_) => _.bareUnmatched) },
      "ours, no webhook": { ...rounds.at(-1)?.oursUnmatched, ...cpuOf((_) => _.oursUnmatched) }
    }
    const table = rates.flatMap((sides) =>
      Object.entries(sides).map(([side, { answers, cpuMs, missing, p50Ms, p99Ms, perSecond }]) => ({
        perSecond,
        side,
        p50Ms,
        p99Ms,
        refused: answers.refused,
        late: answers.late,
        missing,
        answerP99Ms: answers.p99Ms,
        cpuMs: cpuMs["all"]
      }))
    )
    const setup = {
      rounds: ROUNDS,
      burst: BURST,
      rateSeconds: RATE_SECONDS,
      unmatched: UNMATCHED,
      floor: FLOOR,
      group: GROUP,
      idleSeconds: IDLE
    }
    console.log(
      JSON.stringify(
        { bench: "events", goals: GOALS, ...setup, all: { rounds, rates }, results: { bursts, posts, rates: table, idle: rest } },
        null,
        2
      )
    )
    console.table(bursts)
    console.table(table)
    console.table(posts)
    console.table({ "idle, ms of CPU a second": rest })
  }

  if (options.profile) await profiled()
  else report(await measured())
} finally {
  await end()
}
