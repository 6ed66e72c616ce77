/**
 * Recoveries: which events a webhook gets after it was disabled, from before it existed, with other kinds or another URL, and
 * who may create them and see their progress. C-4.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Client } from "@temporalio/client"
import pg from "pg"
import { type Answer, App } from "../../support/app.ts"
import { codeOf } from "../../support/problem.ts"
import { Receiver, receiverEnv, until } from "../../support/receiver.ts"
import { address, asset, entity, network, organization, transaction, user, vault } from "../../support/records.ts"
import { detailsOf, operator } from "../../support/temporal.ts"
import { issues } from "../../support/webhookFixtures.ts"

const receiver = new Receiver()
const app = new App()
const keys = { owner: "", reader: "", member: "", twoVaults: "", stranger: "" }
let hashes = 0
let client: Client, close: () => Promise<void>

beforeAll(async () => {
  ;({ client, close } = await operator())
  await receiver.open()
  await app.open(["api", "worker", "dispatcher"], { ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1h" })
  const vaults = Array.from({ length: 16 }, (_, number) => [`vault_${number}a`, `vault_${number}b`, `vault_${number}c`]).flat()
  await app.feed(
    [
      network("ethereum"),
      asset("ethereum/native"),
      organization("org_a", ["ethereum"]),
      ...Array.from({ length: 16 }, (_, number) => entity(`entity_${number}`, "org_a")),
      ...vaults.map((id) => vault(id, `entity_${id.replace(/\D/g, "")}`)),
      user("user_a", "org_a", vaults, { organizationRole: "owner" }),
      user("user_m", "org_a", ["vault_8a"]),
      organization("org_z", ["ethereum"]),
      entity("entity_z", "org_z"),
      vault("vault_z", "entity_z"),
      user("user_z", "org_z", ["vault_z"], { organizationRole: "owner" })
    ],
    { "x-record-events": "none" }
  )
  keys.owner = (await app.key("user_a")).secret
  keys.reader = (await app.key("user_a", { scopes: ["webhook:read"] })).secret
  keys.member = (await app.key("user_m")).secret
  keys.twoVaults = (await app.key("user_a", { vaultIds: ["vault_8a", "vault_8b"] })).secret
  keys.stranger = (await app.key("user_z")).secret
})
afterAll(async () => {
  await close()
  await app.close()
  await receiver.close()
})

const YESTERDAY = () => new Date(Date.now() - 86_400_000).toISOString()
const feedTransactions = (number: number, count: number, part = "a") =>
  app.feed(Array.from({ length: count }, () => transaction(`vault_${number}${part}`, ++hashes)))
const webhook = async (number: number, more: { readonly [name: string]: unknown } = {}) => {
  const body = {
    url: receiver.url(`/${number}`),
    entityIds: [`entity_${number}`],
    eventKinds: ["transaction.confirmed"],
    notificationEmail: "ops@example.com",
    ...more
  }
  const answer = await app.request("POST", "/v1/webhooks", { key: keys.owner, body })
  if (answer.status !== 201) throw new Error(answer.text)
  return String(answer.json.id)
}
const patch = async (id: string, body: unknown) => {
  const answer = await app.request("PATCH", `/v1/webhooks/${id}`, { key: keys.owner, body })
  if (answer.status !== 200) throw new Error(answer.text)
}
const recover = (id: string, body: { readonly [name: string]: unknown } = {}, key = keys.owner, headers = {}) =>
  app.request("POST", `/v1/webhooks/${id}/recoveries`, { key, body: { since: YESTERDAY(), ...body }, headers })
const get = async (id: string, key = keys.owner) => (await app.get(`/v1/webhook-recoveries/${id}`, key)).json
const ended = (id: string, status = "COMPLETED"): Promise<Answer["json"]> =>
  until(`the recovery ${status}`, async () => {
    const recovery = await get(id)
    return recovery.status === status && recovery
  })
const completed = async (answer: Answer) => {
  if (answer.status !== 202) throw new Error(answer.text)
  return await ended(answer.json.id)
}
const deliveries = async (id: string) => (await app.get(`/v1/webhooks/${id}/deliveries?limit=500`, keys.owner)).json.data
/** Waits for the end of what was under way to a webhook: what a step had chosen to send, and its requests. */
const underWay = async (id: string) => {
  await Bun.sleep(1_000)
  await until("the end of all attempts", async () => {
    const attempts = await app.sql("SELECT 1 FROM delivery_attempts WHERE webhook_id = $1 AND result IS NULL", [id])
    return attempts.length === 0
  })
}
const dispatched = () => until("the outbox", async () => (await app.sql("SELECT 1 FROM event_outbox LIMIT 1")).length === 0)
const progress = (scanned: number, delivered: number, more = {}) => ({
  scanned,
  created: delivered,
  delivered,
  failed: 0,
  canceled: 0,
  pending: 0,
  ...more
})

// Each test has an entity and an endpoint of its own.
describe.concurrent("what a recovery sends", () => {
  test("a webhook disabled for a day gets what it missed and what was canceled", async () => {
    let status = 500
    receiver.on("/0", () => new Response("", { status }))
    const id = await webhook(0)
    await feedTransactions(0, 2)
    await until("two failures", async () => (await deliveries(id)).filter((one: Answer["json"]) => one.attempts.length === 1).length === 2)
    await patch(id, { status: "DISABLED" })
    await until("the cancellation", async () => (await deliveries(id)).every((one: Answer["json"]) => one.status === "CANCELED"))
    await feedTransactions(0, 3)
    status = 200
    expect(codeOf(await recover(id))).toBe("webhook_disabled")
    await patch(id, { status: "ACTIVE" })
    await feedTransactions(0, 1)
    await until("the new event", () => receiver.to("/0").length === 3)
    const recovery = await completed(await recover(id))
    expect(recovery.progress).toEqual(progress(6, 5))
    expect([recovery.webhookId, recovery.include, recovery.eventKinds, recovery.vaultIds, recovery.ratePerSecond]).toEqual([
      id,
      ["FAILED", "CANCELED", "MISSED"],
      null,
      null,
      null
    ])
    const all = await deliveries(id)
    const mine = all.filter((one: Answer["json"]) => one.recoveryId === recovery.id)
    expect(mine.map(({ status }: Answer["json"]) => status)).toEqual(Array.from({ length: 5 }, () => "DELIVERED"))
    // Two of them repeat a canceled delivery, and three had none before.
    const canceled = all.filter((one: Answer["json"]) => one.status === "CANCELED").map((one: Answer["json"]) => one.id)
    expect(mine.flatMap((one: Answer["json"]) => one.replayedFromDeliveryId ?? []).sort()).toEqual(canceled.sort())
    // Oldest first, with consecutive numbers, and the bytes are the event's.
    const sent = receiver.to("/0").slice(3)
    expect(sent.map(({ headers }) => Number(headers["webhook-sequence"])).sort((a, b) => a - b)).toEqual([4, 5, 6, 7, 8])
    // Nothing is left for another recovery.
    expect((await completed(await recover(id))).progress).toEqual(progress(6, 0))
    expect(
      (await app.get(`/v1/webhooks/${id}/recoveries`, keys.owner)).json.data.map((one: Answer["json"]) => one.progress.created)
    ).toEqual([0, 5])
    const log = (await app.get("/v1/audit-log?action=recovery.created", keys.owner)).json.data
    expect(log.map((entry: Answer["json"]) => entry.target)).toContainEqual({ type: "recovery", id: recovery.id })
  })

  test("what disabling has not canceled yet is sent again", async () => {
    let status = 404
    receiver.on("/14", () => new Response("", { status }))
    const id = await webhook(14)
    await feedTransactions(14, 2)
    await until("two failures", async () => (await deliveries(id)).filter((one: Answer["json"]) => one.attempts.length === 1).length === 2)
    const holder = new pg.Client({ connectionString: app.databaseUrl })
    await holder.connect()
    let recovery: Answer["json"]
    try {
      // The cancellation leaves what another transaction has locked for later.
      await holder.query("BEGIN")
      await holder.query("SELECT 1 FROM deliveries WHERE webhook_id = $1 FOR UPDATE", [id])
      await patch(id, { status: "DISABLED" })
      await patch(id, { status: "ACTIVE" })
      status = 200
      recovery = (await recover(id)).json
      await until("both deliveries", async () => (await get(recovery.id)).progress.created === 2)
    } finally {
      await holder.query("ROLLBACK")
      await holder.end()
    }
    expect((await ended(recovery.id)).progress).toEqual(progress(2, 2))
    expect((await deliveries(id)).map((one: Answer["json"]) => one.status).sort()).toEqual([
      "CANCELED",
      "CANCELED",
      "DELIVERED",
      "DELIVERED"
    ])
  })

  test("an event with 200 deliveries is sent again only to webhooks with few of them", async () => {
    const [many, few] = [await webhook(12, { status: "DISABLED" }), await webhook(12, { status: "DISABLED" })]
    await feedTransactions(12, 2)
    for (const [id, from, to] of [
      [few, 1, 19],
      [many, 20, 200]
    ] as const) {
      await app.sql(
        `INSERT INTO deliveries (id, event_id, webhook_id, organization_id, sequence, kind, status, failure_reason)
         SELECT left(replace(e.id, 'evt_', 'del_'), 22) || lpad(n::text, 8, '0'), e.id, $1, e.organization_id, n, e.kind, 'CANCELED', 'MANUAL'
         FROM (SELECT * FROM events WHERE vault_id = 'vault_12a' ORDER BY position LIMIT 1) e, generate_series($2::int, $3::int) n`,
        [id, from, to]
      )
      await app.sql("INSERT INTO webhook_sequences VALUES ($1, $2)", [id, to])
      await patch(id, { status: "ACTIVE" })
    }
    expect((await completed(await recover(few))).progress).toEqual(progress(2, 2))
    expect((await completed(await recover(many))).progress).toEqual(progress(2, 1))
  })

  test("a new webhook gets earlier events, restricted by time, kind, vault and outcome", async () => {
    receiver.on("/1", () => new Response(""))
    await feedTransactions(1, 2, "a")
    await feedTransactions(1, 1, "b")
    await app.feed([address("vault_1a", "1")])
    await dispatched()
    await Bun.sleep(50)
    const between = new Date().toISOString()
    await Bun.sleep(50)
    await feedTransactions(1, 4, "a")
    await dispatched()
    const id = await webhook(1, { eventKinds: ["transaction.confirmed", "deposit_address.created"] })
    expect((await completed(await recover(id, { include: ["FAILED", "CANCELED"] }))).progress).toEqual(progress(8, 0))
    expect((await completed(await recover(id, { until: between, eventKinds: ["deposit_address.created"] }))).progress).toEqual(
      progress(1, 1)
    )
    expect((await completed(await recover(id, { until: between, vaultIds: ["vault_1b"] }))).progress).toEqual(progress(1, 1))
    expect((await completed(await recover(id, { since: between }))).progress).toEqual(progress(4, 4))
    expect((await completed(await recover(id))).progress).toEqual(progress(8, 2))
    expect(receiver.to("/1")).toHaveLength(8)
    expect(new Set(receiver.to("/1").map(({ headers }) => headers["webhook-id"])).size).toBe(8)
  })

  test("a webhook with added kinds or a new URL gets their events", async () => {
    receiver.on("/2", () => new Response("", { status: 500 }))
    receiver.on("/2new", () => new Response(""))
    const id = await webhook(2)
    await app.feed([address("vault_2a", "1")])
    await feedTransactions(2, 1)
    await until("a failure", async () => (await deliveries(id))[0]?.attempts.length === 1)
    expect(
      (
        await app.sql(
          "UPDATE deliveries SET status = 'FAILED', failure_reason = 'EXHAUSTED', next_attempt_at = NULL WHERE webhook_id = $1 RETURNING id",
          [id]
        )
      ).length
    ).toBe(1)
    await patch(id, { eventKinds: ["transaction.confirmed", "deposit_address.created"], url: receiver.url("/2new") })
    const recovery = await completed(await recover(id))
    expect(recovery.progress).toEqual(progress(2, 2))
    expect(
      receiver
        .to("/2new")
        .map(({ headers }) => headers["x-service-event-kind"])
        .sort()
    ).toEqual(["deposit_address.created", "transaction.confirmed"])
  })

  test("waiting deliveries are not sent again, and neither are events that left the log", async () => {
    receiver.on("/3", () => new Response("", { status: 500 }))
    const id = await webhook(3)
    await feedTransactions(3, 2)
    await until("two failures", async () => (await deliveries(id)).filter((one: Answer["json"]) => one.attempts.length === 1).length === 2)
    await app.sql("DELETE FROM deliveries WHERE webhook_id = $1 AND sequence = 1", [id])
    await app.sql("DELETE FROM events e WHERE e.vault_id = 'vault_3a' AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id)")
    expect((await completed(await recover(id))).progress).toEqual(progress(1, 0))
  })

  test("an event that leaves the log while its delivery waits does not block the recovery", async () => {
    receiver.on("/4", () => new Response(""))
    await feedTransactions(4, 2)
    await dispatched()
    const id = await webhook(4, { status: "PAUSED" })
    const answer = await recover(id)
    await until("what is held", async () => (await get(answer.json.id)).progress.pending === 2)
    expect((await get(answer.json.id)).status).toBe("RUNNING")
    const [first] = (await deliveries(id)).map((one: Answer["json"]) => one.eventId).sort()
    await app.sql("DELETE FROM events WHERE id = $1", [first])
    await patch(id, { status: "ACTIVE" })
    const recovery = await ended(answer.json.id)
    expect([recovery.progress.delivered + recovery.progress.canceled, receiver.to("/4").length]).toEqual([recovery.progress.created, 1])
  })
})

describe.concurrent("the lifecycle of a recovery", () => {
  test("a recovery is paused, resumed and canceled, one at a time", async () => {
    receiver.on("/5", () => new Response(""))
    await feedTransactions(5, 60)
    await dispatched()
    const id = await webhook(5)
    const recovery = (await recover(id, { ratePerSecond: 5 })).json
    expect(codeOf(await recover(id))).toBe("recovery_running")
    const command = (verb: string, key = keys.owner) => app.request("POST", `/v1/webhook-recoveries/${recovery.id}/${verb}`, { key })
    await until("some", async () => (await get(recovery.id)).progress.created >= 5)
    expect((await command("pause")).json.status).toBe("PAUSED")
    expect(codeOf(await recover(id))).toBe("recovery_running")
    // Then its workflow waits for a signal, and not for a time.
    await until("the pause of its workflow", async () => (await detailsOf(client, recovery.id)).startsWith("PAUSED"))
    const paused = (await get(recovery.id)).progress.created
    expect(paused).toBeLessThan(55)
    // Those that a step had chosen are sent, and in time for two more none is.
    await underWay(id)
    const sent = receiver.to("/5").length
    await Bun.sleep(600)
    expect((await get(recovery.id)).progress.created).toBe(paused)
    expect(receiver.to("/5")).toHaveLength(sent)
    expect((await command("resume")).json.status).toBe("RUNNING")
    await until("more", async () => (await get(recovery.id)).progress.created > paused + 4)
    const canceled = await command("cancel")
    expect([canceled.status, canceled.json.status, canceled.json.completedAt !== null]).toEqual([200, "CANCELED", true])
    for (const verb of ["pause", "resume", "cancel"]) expect(codeOf(await command(verb))).toBe("recovery_ended")
    await until("its end", async () => (await get(recovery.id)).progress.pending === 0)
    const log = (await app.get("/v1/audit-log", keys.owner)).json.data
      .filter((entry: Answer["json"]) => entry.target.id === recovery.id)
      .map((entry: Answer["json"]) => entry.action)
    expect(log).toEqual(["recovery.canceled", "recovery.resumed", "recovery.paused", "recovery.created"])
  })

  test("what waits for a retry is not sent while its recovery is paused", async () => {
    let status = 400
    receiver.on("/15", () => new Response("", { status }))
    await feedTransactions(15, 3)
    await dispatched()
    const id = await webhook(15)
    const recovery = (await recover(id)).json
    const command = (verb: string) => app.request("POST", `/v1/webhook-recoveries/${recovery.id}/${verb}`, { key: keys.owner })
    const all = (status: string) => until(status, async () => (await deliveries(id)).every((one: Answer["json"]) => one.status === status))
    await until("failures", () => receiver.to("/15").length === 3)
    await all("RETRYING")
    expect((await command("pause")).json.status).toBe("PAUSED")
    status = 200
    await until("all of them in the queue", async () => {
      const waiting = (await deliveries(id)).filter((one: Answer["json"]) => one.status === "RETRYING")
      // Its workflow may not have begun yet, or not know yet which attempt it waits for.
      for (const { id: deliveryId } of waiting)
        await client.workflow
          .getHandle(deliveryId)
          .signal("retryNow")
          .catch(() => {})
      return waiting.length === 0
    })
    await all("HELD")
    expect((await deliveries(id)).map((one: Answer["json"]) => one.heldBecause)).toEqual(["PAUSED", "PAUSED", "PAUSED"])
    // New events pass.
    await feedTransactions(15, 1)
    await until("the new event", () => receiver.to("/15").length === 4)
    expect((await get(recovery.id)).progress).toMatchObject({ created: 3, delivered: 0, pending: 3 })
    await command("resume")
    expect((await ended(recovery.id)).progress).toEqual(progress(3, 3))
  })

  test("canceling a recovery cancels its waiting deliveries and no others; the rate is kept", async () => {
    let status = 500
    receiver.on("/6", () => new Response("", { status }))
    await feedTransactions(6, 12)
    await dispatched()
    const id = await webhook(6)
    const startedAt = Date.now()
    const recovery = (await recover(id, { ratePerSecond: 4 })).json
    await until("all of them", async () => (await get(recovery.id)).progress.created === 12)
    expect(Date.now() - startedAt).toBeGreaterThan(1_900)
    await feedTransactions(6, 1)
    await until("failures", async () => (await deliveries(id)).filter((one: Answer["json"]) => one.attempts.length === 1).length === 13)
    await app.request("POST", `/v1/webhook-recoveries/${recovery.id}/cancel`, { key: keys.owner })
    await until("its deliveries", async () => (await get(recovery.id)).progress.canceled === 12)
    expect(
      (await deliveries(id)).filter((one: Answer["json"]) => one.recoveryId === null).map((one: Answer["json"]) => one.status)
    ).toEqual(["RETRYING"])
    expect(new Set((await deliveries(id)).map((one: Answer["json"]) => one.failureReason))).toEqual(new Set(["MANUAL", null]))
    status = 200
    expect((await completed(await recover(id, { include: ["CANCELED"] }))).progress).toEqual(progress(13, 12))
  })

  test("disabling or deleting the webhook cancels its recovery", async () => {
    receiver.on("/7", () => new Response(""))
    await feedTransactions(7, 20)
    await dispatched()
    const id = await webhook(7)
    const first = (await recover(id, { ratePerSecond: 2 })).json
    await until("some", async () => (await get(first.id)).progress.created >= 2)
    await patch(id, { status: "DISABLED" })
    expect((await get(first.id)).status).toBe("CANCELED")
    await patch(id, { status: "ACTIVE" })
    const second = (await recover(id, { ratePerSecond: 2 })).json
    await until("some more", async () => (await get(second.id)).progress.created >= 2)
    expect((await app.request("DELETE", `/v1/webhooks/${id}`, { key: keys.owner })).status).toBe(204)
    expect(codeOf(await app.get(`/v1/webhook-recoveries/${second.id}`, keys.owner))).toBe("not_found")
    expect(codeOf(await app.request("POST", `/v1/webhook-recoveries/${second.id}/cancel`, { key: keys.owner }))).toBe("not_found")
    await until("the end of its workflow", async () => (await client.workflow.getHandle(second.id).describe()).status.name !== "RUNNING")
    // What was under way has ended; in a second there would be two more.
    await underWay(id)
    const sent = receiver.to("/7").length
    await Bun.sleep(1_000)
    expect(receiver.to("/7").length).toBe(sent)
  })
})

describe.concurrent("access to recoveries", () => {
  test("each key sees its part of a recovery, and creating one requires the whole", async () => {
    receiver.on("/8", () => new Response(""))
    for (const part of ["a", "b", "c"]) await feedTransactions(8, part === "a" ? 2 : 1, part)
    await dispatched()
    const whole = await webhook(8)
    const narrow = await webhook(8, { vaultIds: ["vault_8a", "vault_8b"] })
    const recovery = await completed(await recover(whole))
    expect(recovery.progress).toEqual(progress(4, 4))
    // The member has a role on one vault, and sees the webhook because it covers that vault's entity.
    expect((await get(recovery.id, keys.member)).progress).toEqual(progress(2, 2))
    expect((await get(recovery.id, keys.reader)).progress).toEqual(progress(4, 4))
    // A key that is limited to two vaults sees the webhook limited to them, and no other.
    expect(codeOf(await app.get(`/v1/webhook-recoveries/${recovery.id}`, keys.twoVaults))).toBe("not_found")
    expect(codeOf(await recover(whole, {}, keys.twoVaults))).toBe("not_found")
    const limited = await recover(narrow, {}, keys.twoVaults)
    expect((await completed(limited)).progress).toEqual(progress(3, 3))
    expect((await get(limited.json.id, keys.twoVaults)).progress).toEqual(progress(3, 3))
    for (const [key, code] of [
      [keys.reader, "insufficient_scope"],
      [keys.member, "owner_required"],
      [keys.stranger, "not_found"]
    ] as const) {
      expect([code, codeOf(await recover(whole, {}, key))]).toEqual([code, code])
      expect([code, codeOf(await app.request("POST", `/v1/webhook-recoveries/${recovery.id}/cancel`, { key }))]).toEqual([code, code])
    }
    expect(codeOf(await app.get(`/v1/webhook-recoveries/${recovery.id}`, keys.stranger))).toBe("not_found")
    expect(codeOf(await app.get(`/v1/webhooks/${whole}/recoveries`, keys.stranger))).toBe("not_found")
  })

  test("resuming requires access to everything that the webhook covers, and pausing does not", async () => {
    receiver.on("/11", () => new Response(""))
    await feedTransactions(11, 20)
    await dispatched()
    const id = await webhook(11)
    const { json: recovery } = await recover(id, { ratePerSecond: 1 })
    const command = (verb: string) => app.request("POST", `/v1/webhook-recoveries/${recovery.id}/${verb}`, { key: keys.owner })
    expect((await command("pause")).json.status).toBe("PAUSED")
    // The owner has no role on the new vault.
    await app.feed([vault("vault_11late", "entity_11")], { "x-record-events": "none" })
    const refused = await command("resume")
    expect([refused.status, codeOf(refused), issues(refused)]).toEqual([400, "invalid_body", ["vaultIds invalid"]])
    expect((await get(recovery.id)).status).toBe("PAUSED")
    expect((await command("pause")).status).toBe(200)
    // With the webhook limited to the vaults that the owner sees, it continues.
    await patch(id, { vaultIds: ["vault_11a"] })
    expect((await command("resume")).json.status).toBe("RUNNING")
    expect((await command("cancel")).json.status).toBe("CANCELED")
  })

  test("invalid bodies are refused with the field at fault, and nothing is created", async () => {
    const id = await webhook(9, { vaultIds: ["vault_9a"] })
    const day = 86_400_000
    const at = (ago: number) => new Date(Date.now() - ago).toISOString()
    for (const [body, expected] of [
      [{ since: "yesterday" }, ["since invalid"]],
      [{ since: at(32 * day) }, ["since invalid"]],
      [{ since: at(-day) }, ["since invalid"]],
      [{ since: at(day), until: at(2 * day) }, ["since invalid"]],
      [{ until: "x" }, ["until invalid"]],
      [{ eventKinds: [] }, ["eventKinds invalid"]],
      [{ eventKinds: ["nothing.happened"] }, ["eventKinds.0 invalid"]],
      [{ eventKinds: ["deposit_address.created"] }, ["eventKinds invalid"]],
      [{ vaultIds: ["vault_9b"] }, ["vaultIds invalid"]],
      [{ vaultIds: ["vault_z"] }, ["vaultIds invalid"]],
      [{ include: [] }, ["include invalid"]],
      [{ include: ["DELIVERED"] }, ["include.0 invalid"]],
      [{ include: ["FAILED", "FAILED"] }, ["include invalid"]],
      [{ ratePerSecond: 0 }, ["ratePerSecond invalid"]],
      [{ ratePerSecond: 1.5 }, ["ratePerSecond invalid"]],
      [{ ratePerSecond: "10" }, ["ratePerSecond invalid"]],
      [{ ratePerSecond: null }, ["ratePerSecond invalid"]],
      [{ speed: 1 }, ["speed unknown_field"]]
    ] as const) {
      const answer = await recover(id, body)
      expect([body, codeOf(answer), issues(answer)]).toEqual([body, "invalid_body", [...expected]])
    }
    expect((await app.get(`/v1/webhooks/${id}/recoveries`, keys.owner)).json.data).toEqual([])
    expect((await completed(await recover(id, { since: at(31 * day) }))).progress.created).toBe(0)
  })

  test("repeating an Idempotency-Key creates one recovery", async () => {
    const id = await webhook(10)
    const since = YESTERDAY()
    const ask = () => recover(id, { since }, keys.owner, { "idempotency-key": "one" })
    const [first, second] = [await ask(), await ask()]
    expect([first.status, second.status, second.json]).toEqual([202, 202, first.json])
    expect((await app.get(`/v1/webhooks/${id}/recoveries`, keys.owner)).json.data).toHaveLength(1)
  })
})
