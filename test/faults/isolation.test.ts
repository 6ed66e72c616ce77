/**
 * One endpoint that hangs and one that is dead among a hundred: no other endpoint waits for them, they get no more than their
 * share, and waiting for a slot uses up no attempt. Reliability F26, F27. Architecture, What must hold 7.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Client } from "@temporalio/client"
import { App } from "../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { Receiver, receiverEnv, until } from "../support/receiver.ts"
import { operator } from "../support/temporal.ts"
import { long, report } from "./Rig.ts"

const ENDPOINTS = 100
const HANGS = 0,
  DEAD = 1,
  FAILS = 2
const ROUNDS = long ? 20 : 1
const receiver = new Receiver()
const app = new App()
let key = ""
const webhooks: Array<string> = []
const everybody = Array.from({ length: ENDPOINTS }, (_, number) => number)
const healthy = everybody.slice(3)
/** The end of the tests, at which the hanging endpoint answers: a stop of the service waits for attempts in flight. */
const over = Promise.withResolvers<void>()
/** Duration of a round without the others, in seconds. */
let alone = 0

beforeAll(async () => {
  await receiver.open()
  receiver.on(`/${HANGS}`, async () => {
    await Promise.race([Bun.sleep(30_000), over.promise])
    return new Response("")
  })
  receiver.on(`/${FAILS}`, () => new Response("", { status: 500 }))
  const env = receiverEnv(receiver)
  await app.open(["api", "worker", "dispatcher"], {
    ...env,
    WEBHOOK_ALLOW_PORTS: `${env.WEBHOOK_ALLOW_PORTS},1`,
    WEBHOOK_RETRY_SCHEDULE: `0s${",4s".repeat(29)}`
  })
  key = await feedOrganization(app, ENDPOINTS)
  for (const number of everybody)
    webhooks.push((await webhookOf(app, key, number, number === DEAD ? "https://localhost:1/" : receiver.url(`/${number}`))).id)
})
afterAll(async () => {
  over.resolve()
  await app.close()
  await receiver.close()
})

/** Seconds from the feed to the last request at the healthy endpoints, when all of `numbers` get an event. */
const round = async (numbers: ReadonlyArray<number>) => {
  const before = new Map(healthy.map((number) => [number, receiver.to(`/${number}`).length]))
  const begun = Date.now()
  await feedTransactions(app, numbers)
  await until("every healthy endpoint's request", () =>
    healthy.every((number) => receiver.to(`/${number}`).length > (before.get(number) ?? 0))
  )
  return (Date.now() - begun) / 1_000
}

/**
 * The steps of a delivery's workflow outside of workflow tasks: the queue and the attempt of each; 0 if it made none or is in
 * progress. A workflow that begins late, or whose first step was repeated because a worker stalled, makes a later attempt as
 * its own first one, which is not a retry to it: it counts as none.
 */
const stepsOf = async (client: Client, id: string) => {
  const events = (await client.workflow.getHandle(id).fetchHistory()).events ?? []
  const made = new Map<string, number>()
  let last = 0
  for (const { activityTaskCompletedEventAttributes: done, markerRecordedEventAttributes: local } of events) {
    const [payload] = (done?.result ?? local?.details?.["result"])?.payloads ?? []
    if (payload?.data == null || payload.data.length === 0) continue
    const { number = 0 } = JSON.parse(Buffer.from(payload.data).toString())
    // A step that made no attempt returns the number of the one before.
    if (done != null && number > last && (last > 0 || number === 1)) made.set(String(done.scheduledEventId), number)
    last = Math.max(last, number)
  }
  return events.flatMap(({ activityTaskScheduledEventAttributes: asked, eventId }) =>
    asked == null ? [] : [{ queue: asked.taskQueue?.name, attempt: made.get(String(eventId)) ?? 0 }]
  )
}

describe("isolation of slow and dead endpoints", () => {
  test("97 healthy endpoints get their events in time beside three that fail", async () => {
    await round(healthy)
    alone = await round(healthy)
    const together: Array<number> = []
    for (let count = 0; count < ROUNDS; count++) {
      // The three get ten events for each one of the others.
      for (let more = 0; more < 9; more++) await feedTransactions(app, [HANGS, DEAD, FAILS])
      together.push(await round(everybody))
    }

    report("F26 one hanging, one dead, one failing among 100", { aloneSeconds: alone, togetherSeconds: together })
    // An attempt at the hanging endpoint takes ten seconds, and thirty wait for a slot.
    expect(Math.max(...together)).toBeLessThan(9 + 3 * alone)
  })

  test("at most 8 attempts are in flight at the hanging endpoint at any time", async () => {
    await until("the attempts", () => receiver.to(`/${HANGS}`).length >= 8)
    await Bun.sleep(long ? 30_000 : 3_000)
    const times = receiver.to(`/${HANGS}`).map(({ at }) => at)
    for (const time of times) expect(times.filter((other) => other <= time && other > time - 7_000).length).toBeLessThanOrEqual(8)
  })

  test("a delivery that waits for a slot uses up no attempt", async () => {
    await until("those that wait in the queue", async () => {
      const rows = await deliveriesOf(app, key, webhooks[HANGS] ?? "")
      expect(rows).toHaveLength(ROUNDS * 10)
      const requests = receiver.to(`/${HANGS}`).length
      const attempts = rows.reduce((sum, { attempts }) => sum + attempts.length, 0)
      expect(attempts).toBeLessThanOrEqual(requests)
      const untouched = rows.filter((row) => row.attempts.length === 0 && row.status === "HELD")
      return untouched.length >= ROUNDS * 10 - requests
    })
  })

  test("a first attempt does not queue behind retries", async () => {
    // The failing endpoint's deliveries are retried every four seconds; all others are first attempts.
    const retries = () => receiver.to(`/${FAILS}`).filter(({ headers }) => headers["x-service-attempt"] !== "1").length
    await until("retries at the failing endpoint", () => retries() > ROUNDS)
    expect(await round(healthy)).toBeLessThan(9 + 3 * alone)
  })

  test("retries run on a queue of their own", async () => {
    const { client, close } = await operator()
    try {
      const retries = await until("retries", async () => {
        const rows = (await deliveriesOf(app, key, webhooks[FAILS] ?? "")).slice(-20)
        const made = (await Promise.all(rows.map(({ id }) => stepsOf(client, id)))).flat().filter(({ attempt }) => attempt > 1)
        return made.length > ROUNDS ? made : undefined
      })
      expect([...new Set(retries.map(({ queue }) => queue))]).toEqual([`${app.env["TEMPORAL_TASK_QUEUE"]}-attempts`])
    } finally {
      await close()
    }
  })
})
