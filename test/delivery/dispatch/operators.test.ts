/**
 * What operators see of deliveries in Temporal, and what they can do: search attributes, summary, details, final states, the
 * filters documented in docs/temporal.md, and the signals. Architecture, What must hold 4.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as path from "node:path"
import type { Client } from "@temporalio/client"
import { useApp } from "../../support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { detailsOf, operator, signalsOf } from "../../support/temporal.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1s,1h" }))
let key = "",
  client: Client,
  close: () => Promise<void>

beforeAll(async () => {
  ;({ client, close } = await operator())
  key = await feedOrganization(app, 9)
})
afterAll(() => close())

const statuses = new Map<string, number>()
const urlOf = (name: string, status: number) => {
  statuses.set(name, status)
  receiver.on(`/${name}`, () => new Response("", { status: statuses.get(name) ?? 200 }))
  return receiver.url(`/${name}`)
}

/** A webhook whose newest delivery has made this many attempts. */
const after = async (entity: number, name: string, status: number, attempts: number) => {
  const webhook = await webhookOf(app, key, entity, urlOf(name, status))
  await feedTransactions(app, [entity])
  const delivery = await deliveryWhen(app, key, webhook.id, (one) => one.attempts.length === attempts)
  const handle = client.workflow.getHandle(delivery.id)
  // The row exists a moment before the workflow waits, and a signal is meant for a waiting one.
  if (status >= 300) await until("its wait", async () => (await detailsOf(client, delivery.id)).startsWith(`attempt ${attempts} of`))
  return { webhook, delivery, handle }
}

const ends = (id: string, status: string) =>
  until(`${id} as ${status}`, async () => {
    const description = await client.workflow.getHandle(id).describe()
    return description.status.name === status && description
  })

/** Ids of the workflows that a filter finds; the list is updated a moment after the workflow. */
const found = async (query: string, wanted: ReadonlyArray<string>) => {
  const ids = async () => {
    const list: Array<string> = []
    for await (const { workflowId } of client.workflow.list({ query })) list.push(workflowId)
    return list
  }
  return await until(`the list of ${query}`, async () => {
    const list = await ids()
    return wanted.every((id) => list.includes(id)) && list
  })
}

describe("what operators see in the Temporal UI", () => {
  test("a waiting delivery has a summary, search attributes and current details", async () => {
    const { delivery, handle, webhook } = await after(0, "waits", 503, 2)
    const description = await until("its status", async () => {
      const now = await handle.describe()
      return now.typedSearchAttributes.getAll().some(({ value }) => value === "RETRYING") && now
    })
    expect(await description.staticSummary()).toBe("transaction.confirmed → localhost")
    expect(Object.fromEntries(description.typedSearchAttributes.getAll().map(({ key: { name }, value }) => [name, value]))).toMatchObject({
      OrganizationId: "org_a",
      WebhookId: webhook.id,
      EventId: delivery.eventId,
      EventKind: "transaction.confirmed",
      EntityId: "entity_0",
      DeliveryStatus: "RETRYING"
    })
    const { currentDetails, definition } = await handle.query<{
      currentDetails: string
      definition: { signalDefinitions: ReadonlyArray<{ name: string; description: string }> }
    }>("__temporal_workflow_metadata")
    expect(currentDetails).toMatch(/^attempt 2 of 3: 5xx; next at \d{4}-\d\d-\d\dT/)
    expect(definition.signalDefinitions.map(({ name }) => name).sort()).toEqual(["cancel", "retryNow", "wake"])
    for (const { description: text } of definition.signalDefinitions) expect(text.length).toBeGreaterThan(20)
  })

  test("the log of a failed delivery links to its workflow", async () => {
    const { delivery, handle } = await after(1, "fails", 500, 2)
    await handle.signal("retryNow")
    await ends(delivery.id, "FAILED")
    const line = await until("the log line", () =>
      app.main
        ?.output()
        .split("\n")
        .find((one) => one.includes("failed permanently") && one.includes(delivery.id))
    )
    expect(line).toContain(`/namespaces/default/workflows/${delivery.id}`)
  })

  test("DELIVERED is Completed, FAILED is Failed, CANCELED is Canceled", async () => {
    const delivered = await after(2, "delivered", 200, 1)
    expect(await delivered.handle.result()).toEqual({ attempts: 1, result: "2xx" })
    await ends(delivered.delivery.id, "COMPLETED")
    const canceled = await after(3, "canceled", 500, 2)
    await app.request("PATCH", `/v1/webhooks/${canceled.webhook.id}`, { key, body: { status: "DISABLED" } })
    await ends(canceled.delivery.id, "CANCELLED")
    expect((await deliveryWhen(app, key, canceled.webhook.id, () => true)).failureReason).toBe("WEBHOOK_DISABLED")
  })
})

describe("docs/temporal.md: what operators can do", () => {
  test("retryNow makes the next attempt now, and the schedule continues from there", async () => {
    const { delivery, handle, webhook } = await after(4, "now", 500, 2)
    expect(Date.parse(delivery.nextAttemptAt) - Date.now()).toBeGreaterThan(40 * 60_000)
    statuses.set("now", 200)
    await handle.signal("retryNow")
    const { attempts } = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
    expect(attempts).toHaveLength(3)
    await ends(delivery.id, "COMPLETED")
  })

  test("a retry before the workflow waits makes the next attempt at once", async () => {
    const answers = [() => 500, () => signaled.promise, () => 200]
    const signaled = Promise.withResolvers<number>()
    receiver.on("/between", async (_, count) => new Response("", { status: (await answers[count - 1]?.()) ?? 200 }))
    const webhook = await webhookOf(app, key, 8, receiver.url("/between"))
    // As if the row was changed right after the outcome was written: the workflow is made to wait for an hour.
    await app.sql(
      `CREATE FUNCTION due_now() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.next_attempt_at := clock_timestamp(); RETURN NEW; END $$`
    )
    await app.sql(
      `CREATE TRIGGER due_now BEFORE UPDATE ON deliveries FOR EACH ROW WHEN (NEW.webhook_id = '${webhook.id}' AND NEW.next_attempt_at > now() + interval '30 minutes') EXECUTE FUNCTION due_now()`
    )
    await feedTransactions(app, [8])
    await until("the second attempt", () => receiver.to("/between").length === 2)
    const { id } = await deliveryWhen(app, key, webhook.id, () => true)
    await client.workflow.getHandle(id).signal("retryNow")
    signaled.resolve(500)
    const { attempts } = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
    expect(attempts).toHaveLength(3)
    await ends(id, "COMPLETED")
    // The sweep would wake a delivery that is overdue for longer.
    expect(await signalsOf(client, id)).toEqual(["retryNow"])
  })

  for (const [entity, way] of [
    [5, "signal"],
    [6, "cancellation"]
  ] as const)
    test(`a ${way} cancels a waiting delivery: CANCELED by MANUAL, and nothing more is sent`, async () => {
      const { delivery, handle, webhook } = await after(entity, way, 500, 2)
      await (way === "signal" ? handle.signal("cancel") : handle.cancel())
      const ended = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "CANCELED")
      expect(ended).toMatchObject({ failureReason: "MANUAL", nextAttemptAt: null })
      // Nothing else would send it.
      await ends(delivery.id, "CANCELLED")
      expect(receiver.to(`/${way}`)).toHaveLength(2)
    })

  test("a cancel during an attempt that succeeds is ignored: the delivery is DELIVERED", async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    receiver.on("/slow", async () => {
      await answered
      return new Response("ok")
    })
    const webhook = await webhookOf(app, key, 7, receiver.url("/slow"))
    await feedTransactions(app, [7])
    const request = await until("the request", () => receiver.to("/slow")[0])
    const handle = client.workflow.getHandle(request.headers["x-service-delivery-id"] ?? "")
    await handle.signal("cancel")
    await until("the workflow to read the signal", async () => {
      const { events } = await handle.fetchHistory()
      const at = (events ?? []).findIndex((one) => one.workflowExecutionSignaledEventAttributes != null)
      return at >= 0 && (events ?? []).slice(at).some((one) => one.workflowTaskCompletedEventAttributes != null)
    })
    answer()
    await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
    await ends(handle.workflowId, "COMPLETED")
    expect(receiver.to("/slow")).toHaveLength(1)
  })

  test("the server accepts every filter of the page, and each finds what the page says", async () => {
    const page = await Bun.file(path.resolve(import.meta.dir, "../../../docs/temporal.md")).text()
    const filters = [...page.matchAll(/^\| [^|]+ \| `(.+)` \|$/gm)].map(([, filter = ""]) => filter)
    expect(filters.length).toBeGreaterThanOrEqual(12)
    for (const query of filters) await found(query, [])
    const rows = await app.sql("SELECT id, webhook_id, event_id, status FROM deliveries ORDER BY id")
    const idsOf = (status: string) => rows.filter((row) => row["status"] === status).map(({ id }) => String(id))
    const filterOf = (question: string) => /\| `(.+)` \|$/m.exec(page.slice(page.indexOf(`| ${question}`)))?.[1] ?? ""
    const [failed] = rows.filter(({ status }) => status === "FAILED")
    for (const [question, wanted] of [
      ["Which deliveries failed permanently?", idsOf("FAILED")],
      ["Which deliveries are retrying?", idsOf("RETRYING")],
      ["Which deliveries were canceled?", idsOf("CANCELED")]
    ] as const) {
      expect([question, wanted.length]).not.toEqual([question, 0])
      const list = await found(filterOf(question), wanted)
      // Workflows of other tests may be listed; of this test's, none in another state.
      for (const { id } of rows) expect([question, id, list.includes(String(id))]).toEqual([question, id, wanted.includes(String(id))])
    }
    const mine = { webhook: String(failed?.["webhook_id"]), event: String(failed?.["event_id"]) }
    // With its notice.
    expect(await found(filterOf("What was started for one webhook?").replace(/whs_\w+/, mine.webhook), [String(failed?.["id"])])).toContain(
      String(failed?.["id"])
    )
    expect(
      await found(filterOf("Which deliveries does one event have, redeliveries included?").replace(/evt_\w+/, mine.event), [
        String(failed?.["id"])
      ])
    ).toHaveLength(1)
  })

  test("everything of a tenant is found by its organization, in Temporal and the database", async () => {
    const page = await Bun.file(path.resolve(import.meta.dir, "../../../docs/temporal.md")).text()
    const filter = /^\| Everything of one tenant.+ \| `(.+)` \|$/m.exec(page)?.[1]?.replaceAll(/org_01\w+/g, "org_a") ?? ""
    const [webhook] = await app.sql("SELECT id FROM webhooks WHERE status = 'ACTIVE' ORDER BY id LIMIT 1")
    const ping = await app.request("POST", `/v1/webhooks/${webhook?.["id"]}/ping`, { key })
    expect(ping.status).toBe(200)
    const ids = async (table: string) => (await app.sql(`SELECT id FROM ${table} ORDER BY id`)).map(({ id }) => String(id))
    const notices = await ids("notices")
    expect(notices.length).toBeGreaterThan(0)
    await found(filter, [...(await ids("deliveries")), ...notices, `ping/${ping.json.eventId}`])
    for (const table of ["deliveries", "delivery_attempts", "notices"])
      expect([table, await app.sql(`SELECT DISTINCT organization_id FROM ${table}`)]).toEqual([table, [{ organization_id: "org_a" }]])
  })
})
