/**
 * Hundreds of endpoints that are down and hang: they accept each probe's request and never answer. Their probes take no slot that
 * the resume of another organization's webhook waits for. Reliability F26. Architecture, What must hold.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { App } from "../support/app.ts"
import { feedOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { feedEach, manyWebhooks, statusesOf } from "../support/manyWebhooks.ts"
import { Receiver, receiverEnv, until } from "../support/receiver.ts"
import { long, report } from "./Rig.ts"

const ENDPOINTS = long ? 500 : 100
/** Failures after which an endpoint is down, and deliveries and attempts of each with which it gets them. */
const FAILURES = 10,
  DELIVERIES = 2
/** Probes that hang at once, at least, and for how long each does, in ms: a little longer than an attempt waits. */
const HANGING = 20,
  HANGS_MS = 12_000
/** Resumes, one after the other, and how long the median may take to its first delivery, in ms. */
const RESUMES = 5,
  SOON_MS = 2_000
/** Where a test of a program that keeps nobody waiting for less gives up, in seconds. */
const GIVEN_UP = 15
const receiver = new Receiver()
const app = new App()
/** The end of the tests, at which the endpoints answer: a stop of the service waits for attempts in flight. */
const over = Promise.withResolvers<void>()
let hang = false,
  hanging = 0

beforeAll(async () => {
  await receiver.open()
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    WEBHOOK_RETRY_SCHEDULE: `0s${",1s".repeat(FAILURES)},1h`,
    WEBHOOK_HOLD_AFTER: "1s",
    // Few probes until all of them are held, and then one each second.
    WEBHOOK_PROBE_SCHEDULE: long ? "240s,1s" : "15s,1s"
  })
})
afterAll(async () => {
  over.resolve()
  await app.close()
  await receiver.close()
})

test(`beside ${ENDPOINTS} held endpoints that hang, a resumed webhook's first delivery arrives within 2 s`, async () => {
  const key = await feedOrganization(app, RESUMES)
  const paused: Array<string> = []
  for (let number = 0; number < RESUMES; number++) {
    const { id } = await webhookOf(app, key, number, receiver.url(`/resumed-${number}`), { status: "PAUSED" })
    for (let event = 0; event < 5; event++) await feedTransactions(app, [number])
    paused.push(id)
  }
  for (let number = 0; number < ENDPOINTS; number++)
    receiver.on(`/hangs-${number}`, async () => {
      if (!hang) return new Response("", { status: 503 })
      hanging++
      await Promise.race([Bun.sleep(HANGS_MS), over.promise])
      hanging--
      return new Response("")
    })
  const startedAt = performance.now()
  const webhooks = await manyWebhooks(app, "hangs", ENDPOINTS, (number) => receiver.url(`/hangs-${number}`))
  await feedEach(app, webhooks, DELIVERIES)
  const held = DELIVERIES * ENDPOINTS + 5 * RESUMES
  await until("all of them to be held", async () => (await statusesOf(app))["HELD"] === held, long ? 300 : 150)
  const seconds = (performance.now() - startedAt) / 1_000
  hang = true
  // As many as are sent at all.
  await until(
    "probes that hang",
    async () => {
      const before = hanging
      await Bun.sleep(1_000)
      return hanging >= HANGING && hanging <= before
    },
    long ? 400 : 150
  )

  const times: Array<number> = []
  for (const [number, id] of paused.entries()) {
    const resumedAt = performance.now()
    await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "ACTIVE" } })
    await until("the first delivery", () => receiver.to(`/resumed-${number}`).length > 0, GIVEN_UP).catch(() => undefined)
    times.push(Math.round(performance.now() - resumedAt))
  }
  report("F26 probes that hang", { endpoints: ENDPOINTS, heldInSeconds: seconds, hanging, resumedInMs: times })
  expect(times.toSorted((a, b) => a - b)[Math.floor(RESUMES / 2)]).toBeLessThan(SOON_MS)
}, 1_200_000)
