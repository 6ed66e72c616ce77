/**
 * Operators find each delivery by its id in the Temporal UI, wherever it is: in the workflow of a claim, in its own, or in the queue
 * of its webhook; and its history says what each attempt led to. Architecture, What must hold 4.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Client } from "@temporalio/client"
import { type Answer, App } from "../../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { Dns } from "../../support/dns.ts"
import { Receiver, receiverEnv, until } from "../../support/receiver.ts"
import { operator } from "../../support/temporal.ts"

const receiver = new Receiver()
const dns = new Dns()
const app = new App()
/** Webhooks that one event matches: its deliveries are claimed together. */
const TOGETHER = 20
let key = "",
  client: Client,
  close: () => Promise<void>

beforeAll(async () => {
  ;({ client, close } = await operator())
  await receiver.open()
  await dns.open()
  dns.on("localhost", (_, type) => (type === "a" ? { a: ["127.0.0.1"] } : {}))
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    WEBHOOK_DNS_SERVERS: dns.address,
    WEBHOOK_RETRY_SCHEDULE: `0s${",1s".repeat(20)}`,
    WEBHOOK_HOLD_AFTER: "2s"
  })
  key = await feedOrganization(app, 5)
})
afterAll(async () => {
  await close()
  await app.close()
  await receiver.close()
  dns.close()
})

/** The workflows that a query finds, once there are any; the list is updated a moment after the workflow. */
const found = (query: string) =>
  until(`the list of ${query}`, async () => {
    const list: Array<{ readonly id: string; readonly status: string }> = []
    for await (const { status, workflowId } of client.workflow.list({ query })) list.push({ id: workflowId, status: status.name })
    return list.length > 0 && list
  })

/** The results of the completed steps of a workflow, as JSON texts, in order. */
const resultsOf = async (workflowId: string): Promise<ReadonlyArray<string>> => {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory()
  return (events ?? []).flatMap(({ activityTaskCompletedEventAttributes: done, markerRecordedEventAttributes: local }) =>
    ((done?.result ?? local?.details?.["result"])?.payloads ?? []).flatMap(({ data }) =>
      data == null || data.length === 0 ? [] : [Buffer.from(data).toString()]
    )
  )
}

const all = (webhookId: string, wanted: (delivery: Answer["json"]) => boolean, count: number) =>
  until(`${count} deliveries of ${webhookId}`, async () => {
    const list = await deliveriesOf(app, key, webhookId)
    return list.length === count && list.every(wanted) && list
  })

describe("deliveries that operators look up", () => {
  test("deliveries that were claimed together are found by their ids in one list attribute", async () => {
    const ids: Array<string> = []
    for (let number = 0; number < TOGETHER; number++) ids.push((await webhookOf(app, key, 0, receiver.url("/together"))).id)
    await feedTransactions(app, [0])
    const deliveries: Array<string> = []
    for (const id of ids) deliveries.push((await all(id, ({ status }) => status === "DELIVERED", 1))[0]?.id)
    const groups = new Set<string>()
    for (const id of deliveries) for (const { id: group } of await found(`DeliveryIds = "${id}"`)) groups.add(group)
    expect(groups.size).toBeGreaterThan(0)
    expect(groups.size).toBeLessThan(TOGETHER)
  })

  test("a waiting delivery has its own workflow, with its organization's fairness key", async () => {
    receiver.on("/refuses", () => new Response("", { status: 400 }))
    const webhook = await webhookOf(app, key, 1, receiver.url("/refuses"))
    await feedTransactions(app, [1])
    const [delivery] = await all(webhook.id, ({ status }) => status === "RETRYING", 1)
    expect(await found(`WorkflowId = "${delivery?.id}"`)).toEqual([{ id: delivery?.id, status: "RUNNING" }])
    const { events } = await client.workflow.getHandle(delivery?.id).fetchHistory()
    const started = events?.[0]?.workflowExecutionStartedEventAttributes
    expect(started?.priority?.fairnessKey).toBe("org_a")
    await until("a result that names what happened", async () => (await resultsOf(delivery?.id)).some((text) => text.includes('"4xx"')))
  })

  test("while its webhook's queue is sent, one workflow of the webhook runs", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    receiver.on("/queue", async () => {
      await Promise.race([released, Bun.sleep(8_000)])
      return new Response("")
    })
    const webhook = await webhookOf(app, key, 2, receiver.url("/queue"), { status: "PAUSED" })
    for (let event = 0; event < 20; event++) await feedTransactions(app, [2])
    await all(webhook.id, ({ status }) => status === "HELD", 20)
    await app.request("PATCH", `/v1/webhooks/${webhook.id}`, { key, body: { status: "ACTIVE" } })
    await until("the first request", () => receiver.to("/queue").length > 0)
    try {
      expect(await found(`WebhookId = "${webhook.id}" AND ExecutionStatus = "Running"`)).toContainEqual({
        id: `drain/${webhook.id}`,
        status: "RUNNING"
      })
    } finally {
      release()
    }
    await all(webhook.id, ({ status }) => status === "DELIVERED", 20)
    await until(
      "the end of the queue",
      async () => (await client.workflow.getHandle(`drain/${webhook.id}`).describe()).status.name === "COMPLETED"
    )
  })

  test("a history says what each attempt led to: a retry, and then the webhook's queue", async () => {
    // The name does not exist.
    const webhook = await webhookOf(app, key, 3, "https://gone.example.com/hook")
    for (let event = 0; event < 2; event++) await feedTransactions(app, [3])
    const held = await all(webhook.id, ({ status }) => status === "HELD", 2)
    for (const { id } of held) {
      // It is in the queue, so its own workflow has ended.
      await until(`the end of ${id}`, async () => (await client.workflow.getHandle(id).describe()).status.name === "COMPLETED")
      expect(JSON.stringify(await client.workflow.getHandle(id).result())).toContain("held")
      const failures = (await resultsOf(id)).filter((text) => text.includes('"result":"dns_error"'))
      expect(failures.length).toBeGreaterThan(1)
      expect(failures[0]).toMatch(/"next":"retry/i)
    }
    const led = (await Promise.all(held.map(({ id }) => resultsOf(id)))).flat()
    expect(led.filter((text) => /"next":"h[eo]ld/i.test(text)).length).toBeGreaterThan(0)
  })
})
