/**
 * When attempts feedTransactions and how deliveries end: the schedule with its jitter and `Retry-After`, the end of waiting deliveries
 * when their webhook is disabled or deleted, and waits that outlive the process. Decisions D-20, D-22.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Client } from "@temporalio/client"
import { Duration, Either } from "effect"
import fc from "fast-check"
import { waitAfter } from "../../../src/delivery/deliveries/retrySchedule.ts"
import { schedule } from "../../../src/runtime/settings/readers.ts"
import { table } from "../../../src/runtime/settings/table.ts"
import { long } from "../../faults/Rig.ts"
import { type Answer, useApp } from "../../support/app.ts"
import { deliveriesOf, deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { operator, signalsOf } from "../../support/temporal.ts"

const MINUTE = 60_000,
  HOUR = 60 * MINUTE
const usual = Either.getOrThrow(schedule("0 seconds")(table.webhookRetrySchedule.fallback ?? "")).map(Duration.toMillis)

describe("the retry schedule", () => {
  test("10 attempts over 75 h 35 min", () => {
    expect(usual).toHaveLength(10)
    expect(usual.reduce((sum, wait) => sum + wait, 0)).toBe(75 * HOUR + 35 * MINUTE + 5_000)
  })

  const failure = { result: "5xx", httpStatus: 500, retryAfterSeconds: undefined } as const
  const jitter = fc.double({ min: 0, max: 1, noNaN: true })
  const number = fc.integer({ min: 1, max: usual.length - 1 })

  test("each wait is randomized by 20 %, over that whole range", () => {
    fc.assert(
      fc.property(number, jitter, (after, spread) => {
        const scheduled = usual[after] ?? 0
        const wait = waitAfter(after, failure, usual, spread) ?? 0
        expect(wait).toBeGreaterThanOrEqual(Math.floor(scheduled * 0.8))
        expect(wait).toBeLessThanOrEqual(Math.ceil(scheduled * 1.2))
      })
    )
    expect(waitAfter(2, failure, usual, 0)).toBe(4 * MINUTE)
    expect(waitAfter(2, failure, usual, 1)).toBe(6 * MINUTE)
  })

  test("after the last attempt there is none, whatever the endpoint requests", () => {
    fc.assert(
      fc.property(jitter, fc.option(fc.nat(), { nil: undefined }), (spread, retryAfterSeconds) => {
        expect(waitAfter(usual.length, { ...failure, retryAfterSeconds }, usual, spread)).toBeUndefined()
      })
    )
  })

  test("after a timeout or a 429 the wait is at least a minute", () => {
    for (const answer of [
      { result: "timeout", httpStatus: 0, retryAfterSeconds: undefined },
      { result: "4xx", httpStatus: 429, retryAfterSeconds: 1 }
    ] as const)
      fc.assert(
        fc.property(number, jitter, (after, spread) => {
          expect(waitAfter(after, answer, usual, spread)).toBeGreaterThanOrEqual(MINUTE)
        })
      )
  })

  test("Retry-After is honoured from the wait to the larger of twice it and an hour", () => {
    fc.assert(
      fc.property(number, jitter, fc.nat({ max: 1_000_000 }), (after, spread, retryAfterSeconds) => {
        const scheduled = usual[after] ?? 0
        const without = waitAfter(after, failure, usual, spread) ?? 0
        const wait = waitAfter(after, { ...failure, retryAfterSeconds }, usual, spread) ?? 0
        expect(wait).toBe(Math.max(without, Math.min(retryAfterSeconds * 1_000, Math.max(2 * scheduled, HOUR))))
      })
    )
  })
})

const receiver = useReceiver()
// With a rate limit, pings are limited, too.
const app = useApp(["api"], () => ({
  ...receiverEnv(receiver),
  WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s,12s,1h",
  RATE_LIMIT: "1000/1s burst 100000"
}))
let key = ""
let worker: Awaited<ReturnType<typeof app.start>>
let client: Client, close: () => Promise<void>
beforeAll(async () => {
  ;({ client, close } = await operator())
  worker = await app.start(["worker", "dispatcher"])
  key = await feedOrganization(app, 13)
})
afterAll(() => close())

const fails = (path: string, times = Number.POSITIVE_INFINITY) => {
  receiver.on(path, (_, count) => new Response("no", { status: count <= times ? 500 : 200 }))
  return receiver.url(path)
}

/** A webhook whose delivery has failed this many times, or more often on a busy machine, and waits. */
const waiting = async (
  entity: number,
  path: string,
  attempts: number
): Promise<{ readonly webhook: Answer["json"]; readonly delivery: Answer["json"] }> => {
  const webhook = await webhookOf(app, key, entity, fails(path))
  await feedTransactions(app, [entity])
  const waits = (one: Answer["json"]) => one.attempts.length >= attempts && one.nextAttemptAt !== null
  const delivery = await deliveryWhen(app, key, webhook.id, waits)
  // One that a group attempted first gets its own workflow afterwards.
  await until("its workflow", () =>
    stateOf(delivery.id).then(
      () => true,
      () => false
    )
  )
  return { webhook, delivery }
}

const stateOf = async (id: string) => (await client.workflow.getHandle(id).describe()).status.name

const secondsBetween = (earlier: string, later: string) => (Date.parse(later) - Date.parse(earlier)) / 1_000

// Kills the worker that all others need.
describe("waits that outlive the process", () => {
  test("a request is not repeated however often its process is killed during a wait", async () => {
    const { delivery, webhook } = await waiting(4, "/durable", 3)
    await worker.end("SIGKILL")
    worker = await app.start(["worker", "dispatcher"])
    const later = await deliveryWhen(app, key, webhook.id, ({ attempts }) => attempts.length === 4)
    expect(Date.parse(later.attempts[3].at)).toBeGreaterThanOrEqual(Date.parse(delivery.nextAttemptAt) - 50)
    expect(receiver.to("/durable")).toHaveLength(4)
    expect(later.attempts.map(({ result }: Answer["json"]) => result)).toEqual(["5xx", "5xx", "5xx", "5xx"])
  })
})

// Each of these has an entity and an endpoint of its own.
describe.concurrent("the end of a delivery", () => {
  test("DELIVERED after two failures at their waits, which ends the streak of failures", async () => {
    const webhook = await webhookOf(app, key, 0, fails("/recovers", 2))
    await feedTransactions(app, [0])
    const delivery = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
    expect(delivery.attempts.map(({ result }: Answer["json"]) => result)).toEqual(["5xx", "5xx", "2xx"])
    const [first, second, third] = delivery.attempts.map(({ at }: Answer["json"]) => at)
    // 1 s minus 20 %, minus the amount by which a timer may be early on a busy machine.
    for (const gap of [secondsBetween(first, second), secondsBetween(second, third)]) expect(gap).toBeGreaterThan(0.7)
    expect(delivery).toMatchObject({ nextAttemptAt: null, failureReason: null, deliveredAt: expect.any(String) })
    expect((await app.get(`/v1/webhooks/${webhook.id}`, key)).json.health).toMatchObject({
      state: "HEALTHY",
      consecutiveFailures: 0,
      failingSince: null,
      lastResult: "2xx",
      delivered24h: 1,
      pendingDeliveries: 0
    })
  })

  test("RETRYING during a wait, with its next attempt, and the streak in the webhook's health", async () => {
    const { delivery, webhook } = await waiting(1, "/waits", 3)
    expect(delivery).toMatchObject({ status: "RETRYING", failureReason: null, deliveredAt: null })
    const wait = secondsBetween(delivery.attempts[2].at, delivery.nextAttemptAt)
    expect(wait).toBeGreaterThan(9.5)
    expect(wait).toBeLessThan(20)
    expect((await app.get(`/v1/webhooks/${webhook.id}`, key)).json.health).toMatchObject({
      state: "DEGRADED",
      consecutiveFailures: 3,
      lastResult: "5xx",
      pendingDeliveries: 1
    })
  })

  for (const [verb, reason, end] of [
    ["disabled", "WEBHOOK_DISABLED", (id: string) => app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "DISABLED" } })],
    ["deleted", "WEBHOOK_DELETED", (id: string) => app.request("DELETE", `/v1/webhooks/${id}`, { key })]
  ] as const) {
    test(`CANCELED when its webhook is ${verb} during a wait, and nothing more is sent`, async () => {
      const entity = verb === "disabled" ? 2 : 3
      const { delivery, webhook } = await waiting(entity, `/${verb}`, 3)
      expect([200, 204]).toContain((await end(webhook.id)).status)
      // An attempt in flight when the webhook was disabled is finished; none begins afterwards.
      const sent = receiver.to(`/${verb}`).length
      const [row] = (await app.get(`/v1/webhook-events/${delivery.eventId}/deliveries`, key)).json.data
      expect(row).toMatchObject({ id: delivery.id, status: "CANCELED", failureReason: reason, nextAttemptAt: null })
      // Nothing else would send it.
      await until("the end of its workflow", async () => (await stateOf(delivery.id)) === "CANCELLED")
      expect(receiver.to(`/${verb}`).length).toBe(sent)
    })
  }

  test("a wake-up during an attempt does not bring the next one forward", async () => {
    const { promise: looked, resolve: look } = Promise.withResolvers<void>()
    receiver.on("/slow", async (_, count) => {
      if (count === 1) await Promise.race([looked, Bun.sleep(9_000)])
      return new Response("no", { status: 500 })
    })
    const webhook = await webhookOf(app, key, 12, receiver.url("/slow"))
    await feedTransactions(app, [12])
    const request = await until("the first attempt", () => receiver.to("/slow")[0])
    const id = request.headers["x-service-delivery-id"] ?? ""
    // As the sweep does for a delivery that it considers overdue.
    await app.sql("INSERT INTO commands (key) VALUES ($1) ON CONFLICT (key) DO NOTHING", [id])
    await until("the wake-up", async () => (await signalsOf(client, id).catch((): ReadonlyArray<string> => [])).includes("wake"))
    look()
    const { attempts } = await deliveryWhen(app, key, webhook.id, ({ attempts }) => attempts.length >= 2)
    const [first, second] = attempts
    expect(secondsBetween(first.at, second.at) - first.latencyMs / 1_000).toBeGreaterThan(0.7)
  })
})

describe.concurrent("redelivery of an event", () => {
  const redeliver = (id: string, headers: { readonly [name: string]: string } = {}) =>
    app.request("POST", `/v1/webhook-deliveries/${id}/redeliver`, { key, headers })

  test("with the same bytes and id, to the current URL and with the current secret", async () => {
    const webhook = await webhookOf(app, key, 5, receiver.url("/before"))
    await feedTransactions(app, [5])
    const first = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
    await app.request("PATCH", `/v1/webhooks/${webhook.id}`, { key, body: { url: receiver.url("/today") } })
    await app.request("POST", `/v1/webhooks/${webhook.id}/rotate-secret`, { key })
    const answer = await redeliver(first.id)
    expect(answer.status).toBe(202)
    expect(answer.json).toMatchObject({
      eventId: first.eventId,
      webhookId: webhook.id,
      status: "PENDING",
      attempts: [],
      replayedFromDeliveryId: first.id,
      deliveredAt: null
    })
    expect(answer.json.id).not.toBe(first.id)
    const request = await until("the redelivery", () => receiver.to("/today")[0])
    expect(request.body).toBe(receiver.to("/before")[0]?.body ?? "")
    expect(request.headers).toMatchObject({
      "webhook-id": first.eventId,
      "x-service-attempt": "1",
      "x-service-delivery-id": answer.json.id
    })
    // The old secret is in its grace window, so both sign.
    expect(request.headers["webhook-signature"]?.split(" ").filter((one) => one.startsWith("v1,"))).toHaveLength(2)
    await deliveryWhen(app, key, webhook.id, ({ id, status }) => id === answer.json.id && status === "DELIVERED")
    expect((await app.get(`/v1/webhook-events/${first.eventId}`, key)).json).toMatchObject({
      matchedCount: 1,
      deliveryCounts: { DELIVERED: 2 }
    })
  })

  test("of a redelivery, and repeatedly; the same Idempotency-Key makes one", async () => {
    const webhook = await webhookOf(app, key, 6, receiver.url("/thrice"))
    await feedTransactions(app, [6])
    const first = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
    const second = await redeliver(first.id, { "idempotency-key": "one" })
    expect((await redeliver(first.id, { "idempotency-key": "one" })).json).toEqual(second.json)
    const third = await redeliver(second.json.id)
    expect(third.json.replayedFromDeliveryId).toBe(second.json.id)
    const all = await until("their deliveries", async () => {
      const list = await deliveriesOf(app, key, webhook.id)
      return list.every(({ status }) => status === "DELIVERED") && list
    })
    expect([all.length, receiver.to("/thrice").length]).toEqual([3, 3])
  })

  test("409 webhook_disabled while the webhook is disabled, 404 after it is deleted", async () => {
    const webhook = await webhookOf(app, key, 7, receiver.url("/gone"))
    await feedTransactions(app, [7])
    const { id } = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
    await app.request("PATCH", `/v1/webhooks/${webhook.id}`, { key, body: { status: "DISABLED" } })
    expect(await redeliver(id)).toMatchObject({ status: 409, json: { code: "webhook_disabled" } })
    await app.request("DELETE", `/v1/webhooks/${webhook.id}`, { key })
    expect(await redeliver(id)).toMatchObject({ status: 404, json: { code: "not_found" } })
    expect(await redeliver("del_01jz0000000000000000000000")).toMatchObject({ status: 404, json: { code: "not_found" } })
  })
})

describe.concurrent("a ping with its live result", () => {
  const ping = (id: string) => app.request("POST", `/v1/webhooks/${id}/ping`, { key })

  test("200 even if the endpoint fails, once, even while disabled, without a trace", async () => {
    const webhook = await webhookOf(app, key, 8, fails("/pinged", 1), { status: "DISABLED" })
    const failed = await ping(webhook.id)
    expect(failed.status).toBe(200)
    expect(failed.json).toEqual({
      webhookId: webhook.id,
      eventId: expect.stringMatching(/^evt_/),
      at: expect.any(String),
      success: false,
      result: "5xx",
      httpStatus: 500,
      latencyMs: expect.any(Number),
      bodySnippet: "no",
      detail: null
    })
    // Nothing is left that would send it again.
    expect(await stateOf(`ping/${failed.json.eventId}`)).toBe("COMPLETED")
    expect((await ping(webhook.id)).json).toMatchObject({ success: true, result: "2xx", httpStatus: 200 })
    expect(receiver.to("/pinged")).toHaveLength(2)
    expect((await app.get(`/v1/webhook-events/${failed.json.eventId}`, key)).status).toBe(404)
    expect(await deliveriesOf(app, key, webhook.id)).toEqual([])
    expect((await app.get(`/v1/webhooks/${webhook.id}`, key)).json.health).toMatchObject({
      consecutiveFailures: 0,
      lastResult: null,
      failed24h: 0
    })
  })

  test("at most 6 a minute per webhook, and refused pings are not sent", async () => {
    const [one, other] = [await webhookOf(app, key, 10, receiver.url("/often")), await webhookOf(app, key, 11, receiver.url("/seldom"))]
    for (let count = 1; count <= 6; count++) expect([count, (await ping(one.id)).json.success]).toEqual([count, true])
    const refused = await ping(one.id)
    expect([refused.status, refused.json.code]).toEqual([429, "rate_limited"])
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
    expect((await ping(other.id)).json).toMatchObject({ success: true })
    expect([receiver.to("/often").length, receiver.to("/seldom").length]).toEqual([6, 1])
  })
})

describe("a ping without a worker", () => {
  // Takes as long as the longest ping may.
  test.if(long)("503 with Retry-After within 20 s without a worker, and nothing is sent afterwards", async () => {
    const webhook = await webhookOf(app, key, 9, receiver.url("/later"))
    await worker.end()
    app.patient = false
    const begun = Date.now()
    const answer = await app.request("POST", `/v1/webhooks/${webhook.id}/ping`, { key })
    expect(answer).toMatchObject({ status: 503, json: { code: "service_unavailable" } })
    expect(answer.headers.get("retry-after")).not.toBeNull()
    expect(Date.now() - begun).toBeLessThan(20_000)
    app.patient = true
    worker = await app.start(["worker", "dispatcher"])
    expect((await app.request("POST", `/v1/webhooks/${webhook.id}/ping`, { key })).json).toMatchObject({ success: true })
    expect(receiver.to("/later")).toHaveLength(1)
  })
})
