/** Why a delivery is held, in every response that contains it, and what a retry of a held delivery does. C-5. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { signedIn, type Visitor } from "../../portal/client.ts"
import { type Answer, App } from "../../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { Receiver, receiverEnv, until } from "../../support/receiver.ts"

/** What the tests read of a delivery in a response. */
interface Held {
  readonly id: string
  readonly eventId: string
  readonly status: string
  readonly heldBecause: "PAUSED" | "DOWN" | "TURN" | null
  readonly nextAttemptAt: string | null
  readonly attempts: ReadonlyArray<unknown>
}

const receiver = new Receiver()
const app = new App()
let key = "",
  owner: Visitor
/** The end of the tests, at which slow endpoints answer. */
const over = Promise.withResolvers<void>()
/** More at once than an endpoint has attempts in flight. */
const BURST = 40

beforeAll(async () => {
  await receiver.open()
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    WEBHOOK_RETRY_SCHEDULE: `0s${",1s".repeat(12)},1h`,
    WEBHOOK_HOLD_AFTER: "1s",
    WEBHOOK_PROBE_SCHEDULE: "1h"
  })
  key = await feedOrganization(app, 6)
  owner = await signedIn(app, "user_a")
})
afterAll(async () => {
  over.resolve()
  await app.close()
  await receiver.close()
})

const deliveries = (webhookId: string): Promise<ReadonlyArray<Held>> => deliveriesOf(app, key, webhookId)
const heldOf = (webhookId: string, count: number) =>
  until(
    `${count} held deliveries`,
    async () => {
      const held = (await deliveries(webhookId)).filter(({ status }) => status === "HELD")
      return held.length >= count && held
    },
    40
  )
/** The same delivery in the list of its event's deliveries, and in the portal's list. */
const elsewhere = async (webhookId: string, { eventId, id }: Held): Promise<ReadonlyArray<Held>> => {
  const lists: ReadonlyArray<Answer> = [
    await app.get(`/v1/webhook-events/${eventId}/deliveries`, key),
    await app.get(`/v1/webhooks/${webhookId}/deliveries?status=HELD`, key),
    await owner.get(`/api/v1/webhooks/${webhookId}/deliveries`)
  ]
  return lists.map(({ json }) => json.data.find((one: Held) => one.id === id))
}
const retryNow = (id: string) => owner.request("POST", `/api/deliveries/${id}/retry-now`, {})
/** A webhook that goes down: two deliveries fail until then. */
const goneDown = async (entity: number) => {
  let status = 503
  receiver.on(`/${entity}`, () => new Response("", { status }))
  const { id } = await webhookOf(app, key, entity, receiver.url(`/${entity}`))
  for (let event = 0; event < 2; event++) await feedTransactions(app, [entity])
  await until("the hold", async () => (await app.get(`/v1/webhooks/${id}`, key)).json.health.heldDeliveries === 2)
  return {
    id,
    recover: () => {
      status = 200
    }
  }
}

describe.concurrent("why a delivery is held", () => {
  test("PAUSED while its webhook is paused, in every list and in a redelivery's response", async () => {
    const { id } = await webhookOf(app, key, 0, receiver.url("/0"))
    await feedTransactions(app, [0])
    const delivered = await until("the first", async () => (await deliveries(id)).find(({ status }) => status === "DELIVERED"))
    expect(delivered.heldBecause).toBeNull()
    await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "PAUSED" } })
    await feedTransactions(app, [0])
    const [held] = await heldOf(id, 1)
    if (held === undefined) throw new Error("none is held")
    expect(held).toMatchObject({ heldBecause: "PAUSED", nextAttemptAt: null })
    expect((await elsewhere(id, held)).map(({ heldBecause }) => heldBecause)).toEqual(["PAUSED", "PAUSED", "PAUSED"])
    const again = await app.request("POST", `/v1/webhook-deliveries/${delivered.id}/redeliver`, { key })
    expect([again.status, again.json.status, again.json.heldBecause]).toEqual([202, "HELD", "PAUSED"])
  })

  test("DOWN while its endpoint is down, and PAUSED if its webhook is paused meanwhile", async () => {
    const { id } = await goneDown(1)
    const [held] = await heldOf(id, 2)
    if (held === undefined) throw new Error("none is held")
    expect(held.heldBecause).toBe("DOWN")
    expect((await elsewhere(id, held)).map(({ heldBecause }) => heldBecause)).toEqual(["DOWN", "DOWN", "DOWN"])
    await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "PAUSED" } })
    expect((await deliveries(id)).map(({ heldBecause }) => heldBecause)).toEqual(["PAUSED", "PAUSED"])
  })

  test("TURN while the endpoint has all attempts in flight that it may have", async () => {
    receiver.on("/2", async () => {
      await Promise.race([over.promise, Bun.sleep(5_000)])
      return new Response("")
    })
    const { id } = await webhookOf(app, key, 2, receiver.url("/2"))
    await feedTransactions(
      app,
      Array.from({ length: BURST }, () => 2)
    )
    const [held] = await heldOf(id, BURST / 2)
    if (held === undefined) throw new Error("none is held")
    expect(held).toMatchObject({ heldBecause: "TURN", nextAttemptAt: null, attempts: [] })
    expect((await app.get(`/v1/webhooks/${id}`, key)).json.health.state).toBe("HEALTHY")
  })

  test("null in every other status", async () => {
    receiver.on("/3", () => new Response("", { status: 400 }))
    const { id } = await webhookOf(app, key, 3, receiver.url("/3"))
    await feedTransactions(app, [3])
    const retrying = await until("a failure", async () => (await deliveries(id)).find(({ status }) => status === "RETRYING"))
    expect(retrying.heldBecause).toBeNull()
    await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "DISABLED" } })
    const canceled = await until("the cancellation", async () => (await deliveries(id)).find(({ status }) => status === "CANCELED"))
    expect(canceled.heldBecause).toBeNull()
  })
})

describe.concurrent("a retry of a held delivery", () => {
  test("is refused while its webhook is paused, and changes and logs nothing", async () => {
    const { id } = await webhookOf(app, key, 4, receiver.url("/4"), { status: "PAUSED" })
    await feedTransactions(app, [4])
    const [held] = await heldOf(id, 1)
    const refused = await retryNow(held?.id ?? "")
    expect([refused.status, refused.json.code]).toEqual([409, "webhook_paused"])
    const [entry] = await app.sql("SELECT count(*)::int AS count FROM audit_log WHERE action = 'delivery.retried' AND target_id = $1", [
      held?.id
    ])
    expect(entry?.["count"]).toBe(0)
    expect((await deliveries(id)).map(({ status }) => status)).toEqual(["HELD"])
    expect(receiver.to("/4")).toEqual([])
  })

  test("probes now if its endpoint is down, and a 2xx releases the others", async () => {
    const { id, recover } = await goneDown(5)
    const [held] = await heldOf(id, 2)
    recover()
    expect((await retryNow(held?.id ?? "")).status).toBe(200)
    await until("both", async () => (await deliveries(id)).every(({ status }) => status === "DELIVERED"))
  })
})
