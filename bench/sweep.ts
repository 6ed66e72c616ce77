/**
 * `bun run bench sweep [--quick]`: CPU of a service at rest and its calls to Temporal and Postgres: with nothing waiting,
 * with 100,000 deliveries whose next attempt is far away, and with some thousands more that were overdue at an endpoint that
 * hangs, so that they wait in its webhook's queue. Rows are written by SQL as copies of one real event and delivery.
 */
import { callsOfService } from "./support/calls.ts"
import { copies } from "./support/copies.ts"
import { cpuOfService } from "./support/cpu.ts"
import { delivering, receiver, service, transactions } from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { database, end } from "./support/servers.ts"

const WAITING = options.quick ? 10_000 : 100_000,
  OVERDUE = options.quick ? 200 : 2_000
/** Time to settle, and measured time: the sweep runs once a minute. */
const SETTLE = 10,
  MEASURED = 60
/** How long it may take until each overdue delivery is queued. */
const QUEUED_SECONDS = 600

try {
  const target = await receiver()
  // An endpoint that is down would only be probed.
  const env = { ...delivering(target), WEBHOOK_HOLD: "off" }
  const ours = await service(env, "api,worker,dispatcher", target.url.replace("/hook", "/hang"))
  const client = await database()
  client.on("error", () => {})
  const cpu = cpuOfService(ours.process.pid ?? 0)
  const calls = await callsOfService(ours.process.pid ?? 0, client)
  const perSecond = (count: number) => Math.round((count / MEASURED) * 10) / 10
  const atRest = async (waiting: string) => {
    await Bun.sleep(SETTLE * 1_000)
    const [before, callsBefore] = [cpu(), await calls()]
    await Bun.sleep(MEASURED * 1_000)
    const [after, callsAfter] = [cpu(), await calls()]
    const of = (part: keyof typeof after) => perSecond(after[part] - before[part])
    return {
      waiting,
      cpuMsPerSecond: of("all"),
      service: of("service"),
      temporal: of("temporal"),
      postgres: of("postgres"),
      temporalCallsPerSecond: perSecond(callsAfter.temporal - callsBefore.temporal),
      postgresTransactionsPerSecond: perSecond(callsAfter.postgres - callsBefore.postgres)
    }
  }

  const results = [await atRest("nothing")]

  // One real event and its delivery, of which the others are copies. Its attempt hangs for as long as an attempt may take.
  await ours.feed(transactions(1).map(({ line }) => line))
  for (;;) {
    const { rows } = await client.query("SELECT 1 FROM deliveries WHERE status = 'RETRYING'")
    if (rows.length > 0) break
    await Bun.sleep(100)
  }
  const webhookId = String((await client.query("SELECT webhook_id FROM deliveries LIMIT 1")).rows[0]?.webhook_id)
  const due = (seconds: number) => ({ status: "'PENDING'", next_attempt_at: `now() + make_interval(secs => ${seconds})` })
  await copies(client, webhookId, 1_000, WAITING, due(43_200))
  results.push(await atRest(`${WAITING} far`))

  await copies(client, webhookId, 1_000 + WAITING, OVERDUE, due(-120))
  const startedAt = performance.now()
  for (const until = Date.now() + QUEUED_SECONDS * 1_000; ; await Bun.sleep(1_000)) {
    const { rows } = await client.query(
      "SELECT count(*)::int AS count FROM deliveries WHERE status = 'PENDING' AND next_attempt_at < now() - interval '60 seconds'"
    )
    if (rows[0]?.count === 0) break
    if (Date.now() > until) throw new Error(`${rows[0]?.count} of ${OVERDUE} are not queued after ${QUEUED_SECONDS} s`)
  }
  const queueSeconds = Math.round((performance.now() - startedAt) / 1_000)
  results.push(await atRest(`${WAITING} far, ${OVERDUE} queued at an endpoint that hangs`))
  await client.end()
  console.log(
    JSON.stringify({ bench: "sweep", waiting: WAITING, overdue: OVERDUE, measuredSeconds: MEASURED, queueSeconds, results }, null, 2)
  )
  console.table(results)
} finally {
  await end()
}
