/**
 * `bun run bench hold [--quick]`: deliveries held for an endpoint that is down, 20,000 and then 200,000: CPU and memory of the
 * service at rest, and when the endpoint is back, the rate and the order in which they are sent, and events of another
 * organization beside it. Floor: the same service when nothing is held. Rows are written by SQL as copies of one real event
 * and delivery.
 */
import { copies } from "./support/copies.ts"
import { cpuOfService, machineCpuMs, residentMb } from "./support/cpu.ts"
import { ask, delivering, now, organizationWithKey, receiver, service, transactions, webhook } from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { post, receiptsOf } from "./support/posting.ts"
import { database, end } from "./support/servers.ts"

const HELD = options.quick ? [1_000, 5_000] : [20_000, 200_000]
/** Time to settle, and measured times at rest and with live events. */
const SETTLE = 5,
  REST = 30,
  LIVE = options.quick ? 10 : 25
const PER_SECOND = 10
/** Goals: CPU at rest in ms per second more than with nothing held, and p99 beside the drain by that without it. */
const GOALS = { cpuMsPerSecond: 20, p99Ratio: 1.3 }

try {
  const target = await receiver()
  const env = delivering(target)
  const ours = await service({ ...env, WEBHOOK_ALLOW_PORTS: `${env["WEBHOOK_ALLOW_PORTS"]},1` }, "api,worker,dispatcher")
  const client = await database()
  client.on("error", () => {})
  // Nothing listens at this address.
  const mine = await webhook(ours.port, ours.key, "bench", "https://localhost:1/numbered")
  await webhook(ours.port, await organizationWithKey(env, "other"), "other", target.url)
  const pid = ours.process.pid ?? 0
  const cpu = cpuOfService(pid)
  const atRest = async (seconds: number) => {
    await Bun.sleep(SETTLE * 1_000)
    const [before, memoryBefore] = [cpu(), residentMb(pid)]
    await Bun.sleep(seconds * 1_000)
    const [after, memoryMb] = [cpu(), residentMb(pid)]
    const of = (part: keyof typeof after) => Math.round(((after[part] - before[part]) / seconds) * 10) / 10
    return { cpuMsPerSecond: of("all"), service: of("service"), temporal: of("temporal"), postgres: of("postgres"), memoryBefore, memoryMb }
  }
  /** Live events of the other organization, from post to receipt, and when each held delivery arrived, in order. */
  const live = async () => {
    const posts = await post(ours.target, { vaultId: "vault_other", perSecond: PER_SECOND, count: PER_SECOND * LIVE, connections: 32 })
    const seen: Array<readonly [string, number]> = []
    for (const until = now() + 30_000; now() < until; await Bun.sleep(200)) {
      seen.push(...(await target.seen()))
      if (receiptsOf(posts, seen, now()).missing === 0) break
    }
    return {
      receipts: receiptsOf(posts, seen, now()),
      numbers: seen.filter(([what]) => /^\d+$/.test(what)).map(([number, at]) => [Number(number), at] as const)
    }
  }
  const count = async (query: string) => Number((await client.query(`SELECT count(*) AS count FROM ${query}`)).rows[0]?.count)

  const nothing = await atRest(REST)
  await live()
  const alone = (await live()).receipts
  await ours.feed(transactions(1).map(({ line }) => line))
  while ((await count("deliveries WHERE status = 'RETRYING'")) === 0) await Bun.sleep(100)

  const steps = []
  let first = 1_000
  for (const held of HELD) {
    await client.query(
      `WITH queue AS (
         INSERT INTO webhook_queues (webhook_id, live, down, down_at, due) VALUES ($1, true, true, now(), now() + interval '20 seconds'))
       INSERT INTO commands (key) VALUES ('drain/' || $1)`,
      [mine.id]
    )
    await copies(client, String(mine.id), first, held, {
      status: "'HELD'",
      next_attempt_at: "NULL::text",
      delivered_at: "NULL::text",
      failure_reason: "NULL::text",
      started: "false"
    })
    first += held
    const resting = await atRest(REST)
    const startedAt = now()
    // The URL works now, and a changed URL is probed at once.
    await ask(ours.port, ours.key, "PATCH", `/v1/webhooks/${mine.id}`, { url: target.url.replace("/hook", "/numbered") })
    const [cpuBefore, machineBefore] = [cpu(), machineCpuMs()]
    const { numbers, receipts } = await live()
    const [cpuAfter, machineAfter, tookMs] = [cpu(), machineCpuMs(), now() - startedAt]
    /** CPU milliseconds a second of a part of the service. */
    const used = (part: keyof typeof cpuAfter) => Math.round(((cpuAfter[part] - cpuBefore[part]) / tookMs) * 1_000)
    const seconds = (Math.max(...numbers.map(([, at]) => at)) - startedAt) / 1_000
    const inOrder = numbers.toSorted(([, a], [, b]) => a - b)
    const sorted = numbers.map(([number]) => number).toSorted((a, b) => a - b)
    const place = new Map(sorted.map((number, index) => [number, index]))
    steps.push({
      held,
      resting,
      moreCpuMsPerSecond: Math.round((resting.cpuMsPerSecond - nothing.cpuMsPerSecond) * 10) / 10,
      drain: {
        delivered: numbers.length,
        perSecond: Math.round(numbers.length / seconds),
        repeated: numbers.length - place.size,
        /** The largest difference between a delivery's place in the order and its place on arrival. */
        displaced: Math.max(...inOrder.map(([number], index) => Math.abs(index - (place.get(number) ?? 0))))
      },
      /** CPU milliseconds a second meanwhile; a core has a thousand. `rest` is the receiver, the load and the system. */
      drainCpu: {
        service: used("service"),
        temporal: used("temporal"),
        postgres: used("postgres"),
        rest: Math.round(((machineAfter - machineBefore) / tookMs) * 1_000) - used("all")
      },
      others: receipts,
      othersP99Ratio: Math.round((receipts.p99Ms / alone.p99Ms) * 100) / 100
    })
    await client.query("UPDATE deliveries SET status = 'CANCELED', failure_reason = 'MANUAL' WHERE status IN ('HELD', 'RETRYING')")
    while ((await count("webhook_queues")) > 0) await Bun.sleep(200)
    await ask(ours.port, ours.key, "PATCH", `/v1/webhooks/${mine.id}`, { url: "https://localhost:1/numbered" })
    await target.seen()
  }
  await client.end()
  console.log(JSON.stringify({ bench: "hold", goals: GOALS, nothing, alone, steps }, null, 2))
  console.table(
    steps.map(({ drain, held, moreCpuMsPerSecond, othersP99Ratio, resting }) => ({
      held,
      cpuMsPerSecond: resting.cpuMsPerSecond,
      moreCpuMsPerSecond,
      memoryMb: resting.memoryMb,
      ...drain,
      othersP99Ratio
    }))
  )
} finally {
  await end()
}
