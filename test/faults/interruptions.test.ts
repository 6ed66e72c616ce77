/**
 * Senders that die repeatedly use up nothing of a delivery's schedule, and a delivery that kills its senders is tried
 * alone. Decision D-21; reliability F3.
 */
import { expect, test } from "bun:test"
import { type Answer, useApp } from "../support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { operator } from "../support/temporal.ts"
import { long, report } from "./Rig.ts"

const receiver = useReceiver()
const app = useApp([], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,6s" }))
const ROLES = ["api", "worker", "dispatcher"]

const results = (delivery: Answer["json"]): ReadonlyArray<string> => delivery.attempts.map(({ result }: { result: string }) => result)

/** Starts the program so that it is killed after its next request. */
const startToBeKilled = async () => {
  app.main = await app.start(ROLES, { FAIL_AT: "sent:1" })
  return app.main
}
const dead = ({ child }: { readonly child: { readonly signalCode: string | null } }) =>
  until("the end of the process", () => child.signalCode === "SIGKILL")

test("interrupted attempts do not use up the schedule, and after two in a row the next one waits as after a failure", async () => {
  receiver.on("/kills", () => new Response("", { status: 500 }))
  let process = await startToBeKilled()
  const key = await feedOrganization(app, 2)
  const webhook = await webhookOf(app, key, 0, receiver.url("/kills"))
  await feedTransactions(app, [0])
  const kills = long ? 6 : 2
  for (let count = 1; count <= kills; count++) {
    await dead(process)
    if (count < kills) process = await startToBeKilled()
  }
  app.main = await app.start(ROLES)
  const failed = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "FAILED", 90)
  // A request written just as the process died may have been lost with it.
  expect(results(failed)).toEqual([...Array.from({ length: kills }, () => "interrupted"), "5xx", "5xx"])
  expect(failed.failureReason).toBe("EXHAUSTED")
  const times = failed.attempts.map(({ at }: { at: string }) => Date.parse(at))
  // The third and each one after it wait 6 s ±20 %.
  for (let number = 2; number <= kills; number++) expect(times[number] - times[number - 1]).toBeGreaterThan(4_700)
  report("interrupted again and again", { kills, attempts: results(failed) })
})

test("a delivery whose senders died 20 times in a row is tried alone, every 15 minutes, and reported to the operator", async () => {
  const key = (await app.key("user_a")).secret
  let status = 500
  receiver.on("/poison", () => new Response("", { status }))
  const webhook = await webhookOf(app, key, 1, receiver.url("/poison"))
  await feedTransactions(app, [1])
  const { id } = await deliveryWhen(app, key, webhook.id, ({ attempts, status }) => attempts.length === 1 && status === "RETRYING")
  const plant = (from: number, to: number, result: string | null) =>
    app.sql(
      `INSERT INTO delivery_attempts (delivery_id, number, at, result, organization_id)
       SELECT $1, n, clock_timestamp(), $4, 'org_a' FROM generate_series($2::int, $3::int) n`,
      [id, from, to, result]
    )
  await plant(2, 20, "interrupted")
  await plant(21, 21, null)
  status = 200
  const waiting = await deliveryWhen(
    app,
    key,
    webhook.id,
    ({ attempts }) => attempts.length === 21 && attempts[20].result === "interrupted"
  )
  const due = await until("the wait", async () => {
    const delivery = await deliveryWhen(app, key, webhook.id, () => true)
    return Date.parse(delivery.nextAttemptAt) - Date.now() > 13 * 60_000 && delivery
  })
  expect(waiting.status).toBe("RETRYING")
  expect(Date.parse(due.nextAttemptAt) - Date.now()).toBeLessThan(15 * 60_000 + 1_000)
  await until("the log line", () => app.main?.output().includes("crashed 20 times in a row"))
  const metrics = await (
    await fetch(`${app.main?.platformUrl}/metrics`, { headers: { authorization: `Bearer ${app.env.PLATFORM_TOKEN}` } })
  ).text()
  expect(metrics).toMatch(/custody_deliveries_quarantined_total\S* 1/)
  // It becomes due, and is attempted on the queue where it is alone.
  const { client, close } = await operator()
  await app.sql("UPDATE deliveries SET next_attempt_at = now() WHERE id = $1", [id])
  await client.workflow.getHandle(id).signal("retryNow")
  await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
  const { events } = await client.workflow.getHandle(id).fetchHistory()
  const queues = (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) => scheduled?.taskQueue?.name ?? [])
  expect(queues.at(-1)).toBe(`${app.env.TEMPORAL_TASK_QUEUE}-quarantine`)
  await close()
})
