/**
 * `bun run bench sweep [--quick]`: CPU of a service at rest and its calls to Temporal and Postgres: with nothing waiting,
 * with 100,000 deliveries whose next attempt is far away, and with some thousands more that are overdue at an endpoint that
 * hangs, so that their workflows wait for a slot. Rows are written by SQL as copies of one real event and delivery.
 */
import { Client, Connection } from "@temporalio/client"
import { callsOfService } from "./support/calls.ts"
import { copies } from "./support/copies.ts"
import { cpuOfService } from "./support/cpu.ts"
import { delivering, receiver, service, transactions } from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { database, embedded, end } from "./support/servers.ts"

const WAITING = options.quick ? 10_000 : 100_000,
  OVERDUE = options.quick ? 200 : 2_000
/** Time to settle, and measured time: the sweeper runs every 30 s. */
const SETTLE = 10,
  MEASURED = options.quick ? 35 : 60
/** How long it may take until each overdue delivery has a workflow. */
const STARTED_SECONDS = 600

try {
  const target = await receiver()
  // A hold would take the deliveries away from the sweeper.
  const env = { ...delivering(target), WEBHOOK_HOLD: "off" }
  const ours = await service(env, "api,worker,dispatcher", target.url.replace("/hook", "/hang"))
  const client = await database()
  client.on("error", () => {})
  const temporal = new Client({ connection: await Connection.connect({ address: embedded().temporalAddress }) })
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
  for (const until = Date.now() + STARTED_SECONDS * 1_000; ; await Bun.sleep(1_000)) {
    const { count } = await temporal.workflow.count("ExecutionStatus = 'Running'")
    if (count >= OVERDUE) break
    if (Date.now() > until) throw new Error(`only ${count} of ${OVERDUE} workflows run after ${STARTED_SECONDS} s`)
  }
  const startSeconds = Math.round((performance.now() - startedAt) / 1_000)
  results.push(await atRest(`${WAITING} far, ${OVERDUE} overdue at an endpoint that hangs`))
  await client.end()
  await temporal.connection.close()
  console.log(
    JSON.stringify({ bench: "sweep", waiting: WAITING, overdue: OVERDUE, measuredSeconds: MEASURED, startSeconds, results }, null, 2)
  )
  console.table(results)
} finally {
  await end()
}
