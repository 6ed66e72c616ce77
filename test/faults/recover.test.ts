/**
 * A recovery whose processes are killed, and that is paused and resumed meanwhile: each missed event gets exactly one
 * delivery, all are delivered, and the counts agree with the receiver and with the rows. C-4.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { type Process, useApp } from "../support/app.ts"
import { feedOrganization, webhookOf } from "../support/deliveryFixtures.ts"
import { PostgresServer } from "../support/postgres.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { TemporalServer } from "../support/temporal.ts"
import { long, report } from "./Rig.ts"

const receiver = useReceiver()
const ALL = ["api", "worker", "dispatcher"]
/** In the long run, servers of its own, which are killed too. */
const servers = long ? { postgres: new PostgresServer(), temporal: new TemporalServer() } : undefined
beforeAll(() => Promise.all([servers?.postgres.start(), servers?.temporal.start()]))
const app = useApp([], () => ({
  ...receiverEnv(receiver),
  WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s,1s,5s",
  ...(servers === undefined ? {} : { TEMPORAL_ADDRESS: servers.temporal.address, DATABASE_URL: servers.postgres.url })
}))
beforeAll(async () => {
  if (servers !== undefined) app.databaseUrl = servers.postgres.url
  app.main = await app.start(ALL)
})
afterAll(() => Promise.all([servers?.postgres.close(), servers?.temporal.close()]))
const EVENTS = long ? 20_000 : 150
const KILLS = long ? 10 : 1

test(`a recovery of ${EVENTS} missed events, killed ${KILLS} times and paused, sends every one`, async () => {
  const key = await feedOrganization(app, 1)
  await app.feed(Array.from({ length: EVENTS }, (_, number) => transaction("vault_0", 50_000 + number)))
  await until("the outbox", async () => (await app.sql("SELECT 1 FROM event_outbox LIMIT 1")).length === 0)
  // One in twenty is refused at first, so that retries are in progress, too.
  receiver.on(
    "/hook",
    ({ headers }, count) => new Response("", { status: headers["x-service-attempt"] === "1" && count % 20 === 0 ? 500 : 200 })
  )
  const { id } = await webhookOf(app, key, 0, receiver.url("/hook"))
  const since = new Date(Date.now() - 3_600_000).toISOString()
  const created = await app.request("POST", `/v1/webhooks/${id}/recoveries`, { key, body: { since } })
  expect(created.status).toBe(202)
  const path = `/v1/webhook-recoveries/${created.json.id}`
  const sent = () => new Set(receiver.to("/hook").map(({ headers }) => headers["webhook-id"])).size
  /** The response of a process that was just started: a row may still be locked by the killed one. */
  const answered = (target: string) =>
    until("an answer", async () => {
      const answer = await app.request("POST", target, { key })
      return answer.status !== 503 && answer
    })
  await app.main?.end()
  const startedAt = performance.now()
  // In the middle of a part's transaction.
  const first = await app.start(ALL, { FAIL_AT: "recovery-part:3" })
  app.main = first
  await until("its end", () => first.child.signalCode === "SIGKILL")
  app.main = await app.start(ALL)
  const restarted = async () => {
    await app.main?.end("SIGKILL")
    app.main = await app.start(ALL)
  }
  /** Processes with one role beside the first, in the long run. */
  const single: { worker?: Process; dispatcher?: Process } = {}
  const one = (role: "worker" | "dispatcher") => async () => {
    await single[role]?.end("SIGKILL")
    single[role] = await app.start([role])
  }
  const victims = [
    restarted,
    ...(servers === undefined
      ? []
      : [
          one("worker"),
          one("dispatcher"),
          async () => {
            await servers.temporal.kill("kept")
            await servers.temporal.start()
          },
          async () => {
            // Killing a backend makes the whole server crash and recover.
            const [backend] = await app.sql(
              "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'custody-%' AND datname = current_database() LIMIT 1"
            )
            process.kill(Number(backend?.["pid"]), "SIGKILL")
          }
        ])
  ]
  for (let kill = 1; kill <= KILLS; kill++) {
    await until("a part", () => sent() > (EVENTS / (KILLS + 1)) * kill, 300)
    expect((await answered(`${path}/pause`)).json.status).toBe("PAUSED")
    const strike = victims[(kill - 1) % victims.length]
    if (strike === undefined) throw new Error("nothing to kill")
    await strike()
    expect((await answered(`${path}/resume`)).json.status).toBe("RUNNING")
  }
  const recovery = await until(
    "its end",
    async () => {
      const answer = await app.get(path, key)
      return answer.status === 200 && answer.json.status === "COMPLETED" && answer.json
    },
    600
  )
  const seconds = (performance.now() - startedAt) / 1_000
  expect(recovery.progress).toEqual({ scanned: EVENTS, created: EVENTS, delivered: EVENTS, failed: 0, canceled: 0, pending: 0 })
  const [rows] = await app.sql(
    "SELECT count(*)::int AS deliveries, count(DISTINCT event_id)::int AS events, max(sequence)::int AS last FROM deliveries WHERE recovery_id = $1 AND status = 'DELIVERED'",
    [recovery.id]
  )
  expect(rows).toEqual({ deliveries: EVENTS, events: EVENTS, last: EVENTS })
  expect(sent()).toBe(EVENTS)
  const [row] = await app.sql("SELECT count(*)::int AS attempts FROM delivery_attempts")
  const requests = receiver.to("/hook").length
  report("a recovery that is killed", {
    events: EVENTS,
    kills: KILLS + 1,
    perSecond: Math.round(EVENTS / seconds),
    requests,
    attempts: row?.["attempts"]
  })
  await Promise.all(Object.values(single).map((running) => running.end()))
  // Each request has its row, and so has an attempt that began but was not sent when the process died.
  expect(Number(row?.["attempts"])).toBeGreaterThanOrEqual(requests)
  expect(Number(row?.["attempts"])).toBeLessThanOrEqual(requests + 8 * (KILLS + 1))
}, 1_200_000)
