/**
 * First attempts that share a workflow: completed ones stay there, everything else continues in its own workflow, and each
 * request has its attempt. Architecture, What must hold 1 and 7.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Client } from "@temporalio/client"
import { type Answer, useApp } from "../../support/app.ts"
import { deliveriesOf, feedOrganization, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { transaction } from "../../support/records.ts"
import { operator } from "../../support/temporal.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({
  ...receiverEnv(receiver),
  WEBHOOK_RETRY_SCHEDULE: "0s,1s,1h"
}))
let key = "",
  client: Client,
  close: () => Promise<void>

beforeAll(async () => {
  ;({ client, close } = await operator())
  key = await feedOrganization(app, 9)
})
afterAll(() => close())

const ended = async (webhookId: string, count: number, status: string) =>
  until(`${count} deliveries as ${status}`, async () => {
    const all = await deliveriesOf(app, key, webhookId)
    return all.length === count && all.every((one) => one.status === status) && all
  })
let hashes = 10_000
const feed = (entity: number, count: number) => app.feed(Array.from({ length: count }, () => transaction(`vault_${entity}`, ++hashes)))
const groups = async () => {
  const found: Array<{ readonly id: string; readonly status: string }> = []
  for await (const { status, workflowId } of client.workflow.list({
    query: `WorkflowType = "deliver" AND TaskQueue = "${app.env["TEMPORAL_TASK_QUEUE"]}"`
  }))
    if (workflowId.startsWith("group/")) found.push({ id: workflowId, status: status.name })
  return found
}

describe("a group of first attempts", () => {
  test("delivers each event once, in one shared workflow that operators find by delivery", async () => {
    receiver.on("/fast", () => new Response("ok"))
    const webhook = await webhookOf(app, key, 0, receiver.url("/fast"))
    await feed(0, 60)
    const deliveries = await ended(webhook.id, 60, "DELIVERED")
    expect(receiver.to("/fast")).toHaveLength(60)
    expect(deliveries.map(({ attempts }) => attempts.length)).toEqual(Array.from({ length: 60 }, () => 1))
    let inGroups = 0
    for (const { id } of deliveries) {
      const query = `DeliveryIds = "${id}" OR WorkflowId = "${id}"`
      const carriers = await until("its workflow in the list", async () => {
        const found: Array<string> = []
        for await (const { workflowId } of client.workflow.list({ query })) found.push(workflowId)
        return found.length > 0 && found
      })
      const [group] = carriers.filter((workflowId) => workflowId.startsWith("group/"))
      // A delivery that was claimed alone has a workflow with its own id.
      if (group === undefined) continue
      const results: Answer["json"] = await client.workflow.getHandle(group).result()
      if (carriers.includes(id)) expect(results[id]?.next).not.toBe("delivered")
      // One that found the limit in flight taken waits for its turn in the webhook's queue.
      else if (results[id]?.next === "held") expect(results[id]?.because).toBe("TURN")
      // One that another group, started because this one took long to begin, has claimed.
      else if (results[id]?.next === "in flight") continue
      else expect(results[id]).toEqual({ next: "delivered", number: 1, result: "2xx" })
      if (results[id]?.next === "delivered") inGroups++
    }
    // A busy machine may take over a second for some of them.
    expect(inGroups).toBeGreaterThan(0)
    expect((await groups()).length).toBeLessThanOrEqual(inGroups)
  })

  test("hands over a delivery that fails, which is retried by its own workflow", async () => {
    receiver.on("/once", ({ headers }) => new Response("", { status: headers["x-service-attempt"] === "1" ? 500 : 200 }))
    const webhook = await webhookOf(app, key, 1, receiver.url("/once"))
    await feed(1, 20)
    const deliveries = await ended(webhook.id, 20, "DELIVERED")
    for (const { attempts, id } of deliveries) {
      expect(attempts.map(({ result }: { result: string }) => result)).toEqual(["5xx", "2xx"])
      await until("a completed workflow", async () => (await client.workflow.getHandle(id).describe()).status.name === "COMPLETED")
    }
    expect(receiver.to("/once")).toHaveLength(40)
  })

  test("sends the notice of an attempt that ended before its own workflow began", async () => {
    receiver.on("/late", async () => {
      await Bun.sleep(1_500)
      return new Response("", { status: 500 })
    })
    // They keep the group busy for longer than that.
    receiver.on("/crowd", async () => {
      await Bun.sleep(400)
      return new Response("ok")
    })
    const late = await webhookOf(app, key, 7, receiver.url("/late"))
    const crowd = await webhookOf(app, key, 8, receiver.url("/crowd"))
    await feed(7, 1)
    await until("two failed attempts", async () => (await deliveriesOf(app, key, late.id))[0]?.attempts.length === 2)
    await app.sql(
      "UPDATE webhook_health SET failing_since = failing_since - interval '121 hours', consecutive_failures = consecutive_failures + 8 WHERE webhook_id = $1",
      [late.id]
    )
    await app.feed([transaction("vault_7", ++hashes), ...Array.from({ length: 49 }, () => transaction("vault_8", ++hashes))])
    await until("the notice", async () => {
      const [notice] = await app.sql("SELECT sent_at, subject FROM notices WHERE webhook_id = $1 AND sent_at IS NOT NULL", [late.id])
      return String(notice?.["subject"]).includes("was disabled")
    })
    await ended(crowd.id, 49, "DELIVERED")
  })

  test("is not held up by a slow endpoint, whose attempts continue separately", async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    receiver.on("/slow", async () => {
      await answered
      return new Response("ok")
    })
    receiver.on("/beside", () => new Response("ok"))
    const slow = await webhookOf(app, key, 2, receiver.url("/slow"))
    const beside = await webhookOf(app, key, 3, receiver.url("/beside"))
    await app.feed(Array.from({ length: 20 }, (_, index) => transaction(`vault_${index % 2 === 0 ? 2 : 3}`, ++hashes)))
    await ended(beside.id, 10, "DELIVERED")
    expect((await deliveriesOf(app, key, slow.id)).some(({ status }) => status === "DELIVERED")).toBe(false)
    await until("its groups to end", async () => (await groups()).every(({ status }) => status !== "RUNNING"))
    answer()
    const deliveries = await ended(slow.id, 10, "DELIVERED")
    expect(deliveries.map(({ attempts }) => attempts.length)).toEqual(Array.from({ length: 10 }, () => 1))
    expect(receiver.to("/slow")).toHaveLength(10)
  })

  test("leaves canceled deliveries canceled and failed ones failed, each with a workflow that shows it", async () => {
    receiver.on("/gone", () => new Response("", { status: 500 }))
    const webhook = await webhookOf(app, key, 4, receiver.url("/gone"))
    await feed(4, 5)
    const retried = async () => (await deliveriesOf(app, key, webhook.id)).filter(({ attempts }) => attempts.length === 2).length
    await until("their retries", async () => (await retried()) === 5)
    await app.request("PATCH", `/v1/webhooks/${webhook.id}`, { key, body: { status: "DISABLED" } })
    const canceled = await ended(webhook.id, 5, "CANCELED")
    for (const { id } of canceled)
      await until("a canceled workflow", async () => (await client.workflow.getHandle(id).describe()).status.name === "CANCELLED")
  })
})

describe("a group whose worker is unavailable", () => {
  const stateOf = (id: string) =>
    client.workflow
      .getHandle(id)
      .describe()
      .then(() => "there")
      .catch(() => "none")
  /** Makes a delivery overdue that has no workflow: one that was delivered by its group. */
  const lose = async () => {
    for (const { id } of await app.sql("SELECT id FROM deliveries WHERE status = 'DELIVERED'")) {
      if ((await stateOf(String(id))) === "there") continue
      await app.sql(
        "UPDATE deliveries SET status = 'PENDING', delivered_at = NULL, next_attempt_at = now() - interval '1 minute' WHERE id = $1",
        [id]
      )
      return String(id)
    }
    throw new Error("every delivery has a workflow")
  }

  test("keeps its deliveries: a dispatcher that starts meanwhile starts no second workflow for them", async () => {
    receiver.on("/away", () => new Response("ok"))
    const webhook = await webhookOf(app, key, 5, receiver.url("/away"))
    await app.main?.end()
    const [api, first] = await Promise.all([app.start(["api"]), app.start(["dispatcher"])])
    await fetch(`${api.platformUrl}/platform/v1/records`, {
      method: "POST",
      headers: { authorization: `Bearer ${app.env.PLATFORM_TOKEN}`, "content-type": "application/x-ndjson" },
      body: Array.from({ length: 20 }, () => JSON.stringify(transaction("vault_5", ++hashes))).join("\n")
    })
    await until("its groups", async () => (await groups()).filter(({ status }) => status === "RUNNING").length > 0)
    await until("its deliveries", async () => (await app.sql("SELECT 1 FROM deliveries WHERE webhook_id = $1", [webhook.id])).length === 20)
    await first.end()
    await app.sql("UPDATE deliveries SET next_attempt_at = now() - interval '2 minutes' WHERE webhook_id = $1", [webhook.id])
    const lost = await lose()
    const second = await app.start(["dispatcher"])
    // Its first sweep finds the delivery that is lost.
    await until("the sweep", async () => (await stateOf(lost)) === "there")
    const ids = (await app.sql("SELECT id FROM deliveries WHERE webhook_id = $1", [webhook.id])).map(({ id }) => String(id))
    const states = await Promise.all(ids.map(stateOf))
    expect(new Set(states)).toEqual(new Set(["none"]))
    const worker = await app.start(["worker"])
    await until(
      "its deliveries as DELIVERED",
      async () => (await app.sql("SELECT 1 FROM deliveries WHERE webhook_id = $1 AND status = 'DELIVERED'", [webhook.id])).length === 20
    )
    expect(receiver.to("/away")).toHaveLength(20)
    await Promise.all([api.end(), second.end(), worker.end()])
  })
})
