/**
 * `bun run bench scale [--part workers|coefficients|waiting] [--quick]`: the cost of each component, with separate processes
 * of the service, on a Temporal server with 512 history shards on Postgres. `workers`: CPU per delivery and at rest with 1, 2
 * and 4 workers, and with 1 and 2 dispatchers and APIs; on few cores, CPU shows how it scales, and the rate does not.
 * `coefficients`: CPU, WAL and disk per event, per delivery and per read. `waiting`: CPU at rest with 100,000 waiting
 * deliveries.
 */
import { Client, Connection } from "@temporalio/client"
import { actionsOf } from "./support/actions.ts"
import { copies } from "./support/copies.ts"
import { delivering, feed, organizationWithKey, receiver, settled, transactions, webhook } from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { type Component, type Cpu, components, production } from "./support/production.ts"
import { atEnd, end } from "./support/servers.ts"

/** Events a second, far below what two cores can deliver, and for how many seconds. */
const RATE = 15,
  SECONDS = options.quick ? 10 : 40
/** Seconds at rest: long enough for a sweep, which runs every 30 s and costs more than all else at rest. */
const REST = options.quick ? 8 : 30
/** Deliveries before a measurement, for each worker: code is compiled while it runs. */
const WARM = options.quick ? 100 : 400
const BATCHES = options.quick ? 3 : 10,
  READS = options.quick ? 500 : 3_000
const WAITING = options.quick ? 10_000 : 100_000,
  WAITING_SECONDS = options.quick ? 35 : 60

const parts = ["workers", "coefficients", "waiting"]
const runs = (part: string) => (options.part ?? part) === part
if (options.part !== undefined && !parts.includes(options.part)) throw new Error(`--part is one of ${parts.join(", ")}`)

const round = (value: number, digits = 2) => Math.round(value * 10 ** digits) / 10 ** digits
const each = <A>(of: (component: Component) => A) =>
  Object.fromEntries(components.map((one) => [one, of(one)])) as { [one in Component]: A }
/** CPU in ms of each component, and of all, divided by this. */
const per = (count: number, used: Cpu) => ({
  ...each((one) => round(used[one] / count)),
  all: round(components.reduce((sum, one) => sum + used[one], 0) / count)
})

try {
  const target = await receiver()
  const ours = await production(delivering(target))
  const { client, processes, settings, token } = ours
  await ours.grow("api", 1)
  const key = await organizationWithKey(settings, "bench")
  const { id: webhookId } = await webhook(processes.api[0]?.port ?? 0, key, "bench", target.url)
  await ours.grow("worker", 1)
  await ours.grow("dispatcher", 1)

  let turn = 0
  const feedNext = (count: number, vaultId?: string, headers?: Record<string, string>) =>
    feed(
      processes.api[turn++ % processes.api.length]?.platformPort ?? 0,
      token,
      transactions(count, vaultId).map(({ line }) => line),
      headers
    )
  const delivered = async (count: number) => {
    await target.reaches(count, 300)
    await settled(client)
    await target.seen()
  }
  const used = (before: Cpu): Cpu => {
    const after = ours.cpu()
    return each((one) => after[one] - before[one])
  }
  const atRest = async (seconds = REST) => {
    const before = ours.cpu()
    await Bun.sleep(seconds * 1_000)
    return per(seconds, used(before))
  }
  /** Runs `work`, and returns its CPU beyond that of the same time at rest, its WAL and its disk space. */
  const measure = async (rest: Cpu, work: () => Promise<unknown>) => {
    const [before, bytesBefore, begunAt] = [ours.cpu(), await ours.bytes(), performance.now()]
    await work()
    const seconds = (performance.now() - begunAt) / 1_000
    const cpu = used(before)
    const bytes = await ours.bytes()
    return {
      cpu: each((one) => cpu[one] - rest[one] * seconds),
      kb: (count: number) => ({
        walKb: round((bytes.wal - bytesBefore.wal) / count / 1_024),
        diskKb: round((bytes.disk - bytesBefore.disk) / count / 1_024),
        temporalWalKb: round((bytes.temporalWal - bytesBefore.temporalWal) / count / 1_024),
        temporalDiskKb: round((bytes.temporalDisk - bytesBefore.temporalDisk) / count / 1_024)
      })
    }
  }
  const paced = async () => {
    const begunAt = performance.now()
    const count = RATE * SECONDS
    for (let fed = 0; fed < count; fed++) {
      await feedNext(1)
      await Bun.sleep(Math.max(0, begunAt + ((fed + 1) * 1_000) / RATE - performance.now()))
    }
    await delivered(count)
  }
  const warm = async () => {
    const count = WARM * processes.worker.length
    for (let left = count; left > 0; left -= 100) await feedNext(Math.min(100, left))
    await delivered(count)
    for (let fed = 0; fed < 60; fed++) await feedNext(1)
    await delivered(60)
  }
  const connection = await Connection.connect({ address: ours.temporalAddress })
  atEnd(() => connection.close())
  const temporal = new Client({ connection })
  /** Actions of Temporal Cloud per delivery, for the workflows of deliveries and queues that started at or after `from`. */
  const actions = async (from: Date, count: number) => {
    let sum = 0
    for await (const { runId, workflowId } of temporal.workflow.list({
      query: `WorkflowType IN ('deliver', 'drain') AND StartTime >= '${from.toISOString()}'`
    }))
      sum += actionsOf((await temporal.workflow.getHandle(workflowId, runId).fetchHistory()).events ?? [])
    return round(sum / count)
  }
  const report = (part: string, rows: ReadonlyArray<object>) => {
    console.log(JSON.stringify({ bench: "scale", part, rate: RATE, seconds: SECONDS, rows }))
    console.table(rows)
  }

  if (runs("workers")) {
    const rest: Array<object> = [],
      deliveries: Array<object> = [],
      sent: Array<object> = []
    for (const [workers, others] of [
      [1, 1],
      [2, 1],
      [4, 1],
      [4, 2]
    ] as const) {
      await ours.grow("worker", workers)
      for (const role of ["dispatcher", "api"] as const) await ours.grow(role, others)
      await warm()
      const run = { workers, dispatchers: others, apis: others }
      const resting = await atRest()
      rest.push({ ...run, ...resting })
      const { cpu, kb } = await measure(resting, paced)
      deliveries.push({ ...run, ...per(RATE * SECONDS, cpu) })
      sent.push({ ...run, ...kb(RATE * SECONDS) })
      console.log(JSON.stringify({ rest: rest.at(-1), delivery: deliveries.at(-1), sent: sent.at(-1) }))
    }
    report("CPU at rest, ms per second of all processes of each component", rest)
    report("CPU per delivery beyond that, ms", deliveries)
    report("WAL and disk per delivery, KB", sent)
  }

  if (runs("coefficients")) {
    await warm()
    const resting = await atRest()
    const rows: Array<object> = []
    const row = async (what: string, count: number, work: () => Promise<unknown>) => {
      const { cpu, kb } = await measure(resting, work)
      rows.push({ what, count, ...per(count, cpu), ...kb(count) })
    }
    const singles = RATE * SECONDS
    await row("a transaction in a batch of 1,000, without an event", BATCHES * 1_000, async () => {
      for (let batch = 0; batch < BATCHES; batch++) await feedNext(1_000, "vault_bench_quiet", { "x-record-events": "none" })
      await Bun.sleep(3_000)
    })
    await row("an event of one post, no webhook", singles, async () => {
      for (let fed = 0; fed < singles; fed++) await feedNext(1, "vault_bench_quiet")
      await Bun.sleep(1_500)
    })
    await row("an event in a batch of 1,000, no webhook", BATCHES * 1_000, async () => {
      for (let batch = 0; batch < BATCHES; batch++) await feedNext(1_000, "vault_bench_quiet")
      await Bun.sleep(3_000)
    })
    const from = new Date()
    await row(`an event and its delivery, at ${RATE} a second`, singles, paced)
    const single = await actions(from, singles)
    const burstFrom = new Date()
    await row("an event and its delivery, in bursts of 500", BATCHES * 500, async () => {
      for (let batch = 0; batch < BATCHES; batch++) {
        await feedNext(500)
        await delivered(500)
      }
    })
    const billed = [
      { what: `deliveries at ${RATE} a second`, actions: single },
      { what: "deliveries in bursts of 500", actions: await actions(burstFrom, BATCHES * 500) }
    ]
    const reads = async (path: string) => {
      let left = READS
      const reading = async () => {
        while (left-- > 0) {
          const answer = await fetch(`http://127.0.0.1:${processes.api[0]?.port}${path}`, { headers: { authorization: `Bearer ${key}` } })
          await answer.arrayBuffer()
          if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}`)
        }
      }
      await Promise.all(Array.from({ length: 8 }, reading))
    }
    for (const path of [
      "/v1/vaults/vault_bench/transactions?limit=20",
      "/v1/vaults/vault_bench/transactions?limit=100",
      "/v1/webhook-events?limit=20",
      "/v1/event-feed?limit=100"
    ]) {
      await reads(path)
      await row(`GET ${path}`, READS, () => reads(path))
    }
    report("per event, delivery and read: CPU in ms, WAL and disk in KB", rows)
    report("Actions of Temporal Cloud per delivery", billed)
  }

  if (runs("waiting")) {
    await ours.grow("worker", 2)
    await ours.grow("dispatcher", 2)
    await warm()
    const rows: Array<object> = [{ waiting: 0, ...(await atRest(WAITING_SECONDS)) }]
    await copies(client, webhookId, 1_000_000, WAITING, {
      status: "'PENDING'",
      delivered_at: "NULL",
      next_attempt_at: "now() + make_interval(secs => 43200)"
    })
    await Bun.sleep(10_000)
    rows.push({ waiting: WAITING, ...(await atRest(WAITING_SECONDS)) })
    report("CPU at rest beside waiting deliveries, ms per second", rows)
  }
} finally {
  await end()
}
