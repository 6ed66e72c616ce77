/**
 * Endpoints that are down and webhooks that are paused: what is held, what a probe is, what is used up, how held deliveries
 * are sent, and who is notified. Minutes and days are simulated by moving times back in the database. C-5.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { type Answer, App, cli } from "../../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { codeOf } from "../../support/problem.ts"
import { Receiver, receiverEnv, until } from "../../support/receiver.ts"
import { operator } from "../../support/temporal.ts"

const receiver = new Receiver()
const app = new App()
let key = ""

beforeAll(async () => {
  await receiver.open()
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    WEBHOOK_ALLOW_PORTS: `${receiver.port},1`,
    WEBHOOK_RETRY_SCHEDULE: `0s${",1s".repeat(12)},300s,300s`,
    // Without the usual first wait of half a minute, which could end during a test: each probe is asked for.
    WEBHOOK_PROBE_SCHEDULE: "5m,1m,2m,4m,5m"
  })
  key = await feedOrganization(app, 18)
})
afterAll(async () => {
  await app.close()
  await receiver.close()
})

const get = async (id: string) => (await app.get(`/v1/webhooks/${id}`, key)).json
const patch = (id: string, body: unknown) => app.request("PATCH", `/v1/webhooks/${id}`, { key, body })
const statuses = async (id: string) => (await deliveriesOf(app, key, id)).map(({ status }) => status).sort()
const all = (id: string, status: string, count: number) =>
  until(`${count} deliveries that are ${status}`, async () => {
    const list = await statuses(id)
    return list.length === count && list.every((one) => one === status)
  })
/** How many endpoints are down, by readiness and by the metric. */
const endpointsDown = async (): Promise<ReadonlyArray<number>> => {
  const at = app.main?.platformUrl
  const ready = (await (await fetch(`${at}/health/ready`)).json()) as { readonly endpointsDown: number }
  return [ready.endpointsDown, Number(/^custody_endpoints_down (.*)$/m.exec(await (await fetch(`${at}/metrics`)).text())?.[1])]
}
/** Unknown at a moment when the database is busy. */
const downAre = (count: number) =>
  until(`${count} endpoints that are down`, async () => (await endpointsDown()).every((one) => one === count))
/** What the doctor says of endpoints. */
const doctorOnEndpoints = async (): Promise<string> => {
  const { stdout } = await cli(["doctor", "--json"], app.env)
  const findings: ReadonlyArray<{ readonly subject: string; readonly state: string; readonly says: string }> = JSON.parse(stdout).findings
  return findings.flatMap(({ says, state, subject }) => (subject === "Endpoints" ? [`${state}: ${says}`] : [])).join()
}
const numbers = (path: string, from = 0) =>
  receiver
    .to(path)
    .slice(from)
    .map(({ headers }) => Number(headers["webhook-sequence"]))
/** Most deliveries of a drain that are in flight at once. */
const IN_FLIGHT = 8
/** How many earlier deliveries a request overtook at most: only those in flight beside it, if the oldest begin first. */
const mostOvertaken = (sent: ReadonlyArray<number>): number =>
  Math.max(...sent.map((number, index) => sent.slice(index + 1).filter((later) => later < number).length))
const subjects = async (id: string) =>
  (await app.sql("SELECT subject FROM notices WHERE webhook_id = $1 ORDER BY created_at", [id])).map(({ subject }) => String(subject))

/** A webhook whose endpoint answers with `status()`. */
const webhook = async (entity: number, status: () => number, more: { readonly [name: string]: unknown } = {}) => {
  receiver.on(`/${entity}`, () => new Response("", { status: status() }))
  return await webhookOf(app, key, entity, receiver.url(`/${entity}`), more)
}
const feed = async (entity: number, count: number) => {
  for (let event = 0; event < count; event++) await feedTransactions(app, [entity])
}

/** Two deliveries that fail until the endpoint counts as down, as if the first failure had been a minute ago. */
const goDown = async (entity: number, id: string) => {
  await feed(entity, 2)
  await until("several failures", async () => (await get(id)).health.consecutiveFailures >= 6)
  await app.sql("UPDATE webhook_health SET down_since = down_since - interval '61 seconds' WHERE webhook_id = $1", [id])
  await until("the hold", async () => (await get(id)).health.state === "HOLDING")
}
/** Lets the drain look again, with the next probe due at this time. */
const probeAt = async (id: string, due: string) => {
  await app.sql(`UPDATE webhook_queues SET due = ${due} WHERE webhook_id = $1 AND down`, [id])
  await app.sql("INSERT INTO commands (key) VALUES ('drain/' || $1) ON CONFLICT (key) DO UPDATE SET id = DEFAULT", [id])
}
const probeNow = (id: string) => probeAt(id, "clock_timestamp()")
const probesOf = async (id: string) =>
  Number((await app.sql("SELECT probes FROM webhook_queues WHERE webhook_id = $1 AND down", [id]))[0]?.["probes"] ?? -1)

// These two look at all endpoints: no other one is down meanwhile.
describe("the hold of an endpoint that is down", () => {
  test("deliveries to a down endpoint are held, and the first 2xx drains them in order", async () => {
    let status = 503
    const { id } = await webhook(4, () => status)
    await goDown(4, id)
    await until("both are held", async () => (await get(id)).health.heldDeliveries === 2)
    expect((await get(id)).health.nextProbeAt).not.toBeNull()
    await downAre(1)
    expect(await doctorOnEndpoints()).toMatch(
      /^notice: One is down, the first since \d{4}-.+\. Their deliveries are held, and nothing is lost\.$/
    )
    const before = receiver.to("/4").length
    const attempts = async () =>
      (await deliveriesOf(app, key, id)).toSorted((a, b) => a.sequence - b.sequence).map((one) => one.attempts.length)
    const [first = 0, second = 0] = await attempts()
    await feed(4, 40)
    await until("42 are held", async () => (await get(id)).health.heldDeliveries === 42)
    // No requests but probes, each of the oldest delivery that has not probed yet, and each with a row.
    for (let probe = 1; probe <= 3; probe++) {
      const probes = await probesOf(id)
      await probeNow(id)
      await until("the probe", async () => (await probesOf(id)) === probes + 1)
      const [row] = await app.sql("SELECT extract(epoch FROM due - clock_timestamp()) AS wait FROM webhook_queues WHERE webhook_id = $1", [
        id
      ])
      const wait = [60, 120, 240, 300][probes] ?? 300
      expect(Number(row?.["wait"])).toBeGreaterThan(wait - 20)
      expect(Number(row?.["wait"])).toBeLessThanOrEqual(wait)
    }
    expect(numbers("/4", before)).toEqual([1, 2, 3])
    expect(await attempts()).toEqual([first + 1, second + 1, 1, ...Array.from({ length: 39 }, () => 0)])
    expect(Number(receiver.to("/4")[before]?.headers["x-service-attempt"])).toBe(first + 1)
    const used = await app.sql(
      "SELECT count(*)::int AS used FROM delivery_attempts t JOIN deliveries d ON d.id = t.delivery_id WHERE d.webhook_id = $1 AND d.sequence = 1 AND t.uses_schedule",
      [id]
    )
    expect(used[0]?.["used"]).toBe(first)
    expect(await statuses(id)).toEqual(Array.from({ length: 42 }, () => "HELD"))
    status = 200
    await probeNow(id)
    await all(id, "DELIVERED", 42)
    const sent = numbers("/4", before + 3)
    expect(sent).toHaveLength(42)
    // The probe that found it works, and then the oldest, together with those in flight beside it.
    expect(sent[0]).toBe(4)
    expect(mostOvertaken(sent.slice(1))).toBeLessThan(IN_FLIGHT)
    await until("the end of the hold", async () => (await get(id)).health.state === "HEALTHY")
    await downAre(0)
    expect(await doctorOnEndpoints()).toBe("well: none is down")
    await until("the notices", async () => (await subjects(id)).length === 2)
    const [held, recovered] = await subjects(id)
    expect(held).toContain("is on hold: its endpoint is down")
    expect(recovered).toContain("recovered: 42 delivered")
    const log = (await app.get("/v1/audit-log?limit=500", key)).json.data.filter((entry: Answer["json"]) => entry.target.id === id)
    expect(log.map(({ action, actor }: Answer["json"]) => [action, actor.type])).toEqual([
      ["webhook.released", "service"],
      ["webhook.held", "service"],
      ["webhook.created", "key"]
    ])
    expect(log[0].changes).toMatchObject({ delivered: { old: null, new: 42 }, heldSince: { new: null } })
    expect(log[1].changes).toEqual({ lastResult: { old: null, new: "5xx (503)" } })
  })

  test("three endpoints that are down are held separately, and no network outage is reported", async () => {
    const gone = [12, 13, 14]
    const ids: Array<string> = []
    for (const entity of gone) ids.push((await webhookOf(app, key, entity, "https://localhost:1/")).id)
    for (let event = 0; event < 2; event++) await feedTransactions(app, gone)
    await until("failures", async () => (await Promise.all(ids.map(get))).every(({ health }) => health.consecutiveFailures >= 9))
    await app.sql("UPDATE webhook_health SET down_since = down_since - interval '61 seconds' WHERE webhook_id = ANY($1)", [ids])
    await until("the holds", async () => (await Promise.all(ids.map(get))).every(({ health }) => health.heldDeliveries === 2))
    await until("three that are down", async () => ((await endpointsDown())[0] ?? 0) >= 3)
    const metrics = await (await fetch(`${app.main?.platformUrl}/metrics`)).text()
    expect(/^custody_resolver_away (.*)$/m.exec(metrics)?.[1]).toBe("0")
    for (const [index, id] of ids.entries()) {
      expect((await subjects(id)).map((subject) => subject.includes("is on hold"))).toEqual([true])
      // A new URL is probed at once.
      receiver.on(`/${gone[index]}`, () => new Response(""))
      await patch(id, { url: receiver.url(`/${gone[index]}`) })
    }
    for (const id of ids) await all(id, "DELIVERED", 2)
  })
})

// Each of these has an entity and an endpoint of its own.
describe.concurrent("pausing a webhook", () => {
  test("while a webhook is paused its deliveries are HELD, and then sent oldest first", async () => {
    const { id } = await webhook(0, () => 204)
    await feed(0, 1)
    await all(id, "DELIVERED", 1)
    const paused = await patch(id, { status: "PAUSED" })
    expect([paused.status, paused.json.status, paused.json.disabledReason]).toEqual([200, "PAUSED", null])
    const before = receiver.to("/0").length
    await feed(0, 24)
    await until("what is held", async () => (await get(id)).health.heldDeliveries === 24)
    const [newest] = await deliveriesOf(app, key, id)
    expect([newest.status, newest.nextAttemptAt, newest.attempts]).toEqual(["HELD", null, []])
    expect((await get(id)).health.pendingDeliveries).toBe(24)
    expect((await app.get(`/v1/webhooks/${id}/deliveries?status=HELD&limit=500`, key)).json.data).toHaveLength(24)
    expect((await app.get(`/v1/webhook-events/${newest.eventId}`, key)).json.deliveryCounts.HELD).toBe(1)
    const listed = (await app.get("/v1/webhooks?status=PAUSED", key)).json.data
    expect(listed.map((one: Answer["json"]) => one.id)).toContain(id)
    expect(new Set(listed.map((one: Answer["json"]) => one.status))).toEqual(new Set(["PAUSED"]))
    // A ping works, and a redelivery waits with the rest.
    expect((await app.request("POST", `/v1/webhooks/${id}/ping`, { key })).json.success).toBe(true)
    const [delivered] = (await deliveriesOf(app, key, id)).filter(({ status }) => status === "DELIVERED")
    const again = await app.request("POST", `/v1/webhook-deliveries/${delivered.id}/redeliver`, { key })
    expect([again.status, again.json.status]).toEqual([202, "HELD"])
    // No held delivery has a workflow.
    expect(await app.sql("SELECT 1 FROM deliveries WHERE webhook_id = $1 AND status = 'HELD' AND started", [id])).toEqual([])
    expect(receiver.to("/0").length).toBe(before + 1)
    expect((await patch(id, { status: "ACTIVE" })).json.status).toBe("ACTIVE")
    await all(id, "DELIVERED", 26)
    const sent = numbers("/0", before + 1)
    expect(sent).toHaveLength(25)
    expect(mostOvertaken(sent)).toBeLessThan(IN_FLIGHT)
    await until("the end of the hold", async () => (await app.sql("SELECT 1 FROM webhook_queues WHERE webhook_id = $1", [id])).length === 0)
    await feed(0, 1)
    await all(id, "DELIVERED", 27)
    const log = (await app.get("/v1/audit-log?action=webhook.updated", key)).json.data.map((entry: Answer["json"]) => entry.changes.status)
    expect(log).toContainEqual({ old: "ACTIVE", new: "PAUSED" })
    expect(log).toContainEqual({ old: "PAUSED", new: "ACTIVE" })
  })

  test("scheduled retries wait, too, use up nothing, and continue with the schedule on resume", async () => {
    let status = 500
    const { id } = await webhook(1, () => status)
    await feed(1, 1)
    await until("a failed attempt", async () => (await deliveriesOf(app, key, id))[0]?.attempts.length >= 2)
    expect((await patch(id, { status: "PAUSED" })).status).toBe(200)
    await all(id, "HELD", 1)
    const before = receiver.to("/1").length
    // When the wait of the schedule is over, its workflow finds it held, and ends.
    const { client, close } = await operator()
    const [waiting] = await deliveriesOf(app, key, id)
    expect(await client.workflow.getHandle(waiting.id).result()).toMatchObject({ result: "held" })
    await close()
    expect(receiver.to("/1").length).toBe(before)
    status = 200
    await patch(id, { status: "ACTIVE" })
    await all(id, "DELIVERED", 1)
    const [delivery] = await deliveriesOf(app, key, id)
    expect(delivery.attempts.map(({ result }: Answer["json"]) => result).at(-1)).toBe("2xx")
    expect(receiver.to("/1").at(-1)?.headers["x-service-attempt"]).toBe(String(before + 1))
  })

  test("a held delivery whose event has left the log is CANCELED as EXPIRED", async () => {
    const { id } = await webhook(17, () => 204)
    await patch(id, { status: "PAUSED" })
    await feed(17, 1)
    await all(id, "HELD", 1)
    await app.sql("DELETE FROM events WHERE id = (SELECT event_id FROM deliveries WHERE webhook_id = $1)", [id])
    await patch(id, { status: "ACTIVE" })
    const ended = () => app.sql("SELECT failure_reason FROM deliveries WHERE webhook_id = $1 AND status = 'CANCELED'", [id])
    expect(await until("its end", async () => ((await ended()).length === 0 ? undefined : ended()))).toEqual([
      { failure_reason: "EXPIRED" }
    ])
  })

  test("a paused webhook counts towards the limit of 20, and disabling it cancels held deliveries", async () => {
    const made = [await webhook(2, () => 200)]
    for (let count = 1; count < 20; count++) made.push(await webhookOf(app, key, 2, receiver.url("/2")))
    const [first] = made
    await patch(first.id, { status: "PAUSED" })
    const body = {
      url: receiver.url("/2"),
      entityIds: ["entity_2"],
      eventKinds: ["transaction.confirmed"],
      notificationEmail: "ops@example.com"
    }
    expect(codeOf(await app.request("POST", "/v1/webhooks", { key, body }))).toBe("webhook_limit_reached")
    await feed(2, 3)
    await all(first.id, "HELD", 3)
    expect((await patch(first.id, { status: "DISABLED" })).json.disabledReason).toBe("MANUAL")
    await all(first.id, "CANCELED", 3)
    expect((await deliveriesOf(app, key, first.id))[0].failureReason).toBe("WEBHOOK_DISABLED")
    expect(codeOf(await patch(first.id, { status: "WAITING" }))).toBe("invalid_body")
  })
})

describe.concurrent("the hold of one webhook", () => {
  test("at most one notice an hour reports a hold, whatever an endpoint does", async () => {
    let status = 503
    const { id } = await webhook(5, () => status)
    for (let time = 0; time < 2; time++) {
      status = 503
      await goDown(5, id)
      status = 200
      await probeNow(id)
      await until(
        "the end of the hold",
        async () => (await app.sql("SELECT 1 FROM webhook_queues WHERE webhook_id = $1", [id])).length === 0
      )
    }
    expect((await subjects(id)).filter((subject) => subject.includes("is on hold"))).toHaveLength(1)
    expect((await subjects(id)).filter((subject) => subject.includes("recovered"))).toHaveLength(1)
  })

  test("a probe is at most an hour away after Postgres' clock was set back", async () => {
    const { id } = await webhook(3, () => 503)
    await goDown(3, id)
    await probeAt(id, "clock_timestamp() + interval '2 hours'")
    await until("the probe", async () => (await probesOf(id)) === 1)
  })

  test("a delivery that fails alone has its usual attempts, and others pass it", async () => {
    const { id } = await webhook(6, () => 200)
    receiver.on("/6", ({ headers }) => new Response("", { status: headers["webhook-sequence"] === "1" ? 500 : 200 }))
    await feed(6, 1)
    await until("failures", async () => (await get(id)).health.consecutiveFailures >= 3)
    await app.sql("UPDATE webhook_health SET down_since = down_since - interval '1 hour', down_failures = 20 WHERE webhook_id = $1", [id])
    await until("one more", async () => (await deliveriesOf(app, key, id))[0].attempts.length >= 5)
    expect((await get(id)).health.state).not.toBe("HOLDING")
    await feed(6, 3)
    await until("the others", async () => (await statuses(id)).join() === "DELIVERED,DELIVERED,DELIVERED,RETRYING")
  })

  test("a token server that is down holds deliveries until it gives a token again", async () => {
    const clientSecret = "s-81.d0_ff+1"
    const authentications = new Set<string>()
    let status = 503
    receiver.on("/token", ({ headers }) => {
      authentications.add(atob((headers["authorization"] ?? "").replace("Basic ", "")))
      return Response.json({ access_token: "a", token_type: "Bearer", expires_in: 3_600 }, { status })
    })
    const { id } = await webhook(16, () => 200, {
      oauth: { tokenUrl: receiver.url("/token"), clientId: "custody-1", clientSecret }
    })
    await goDown(16, id)
    await all(id, "HELD", 2)
    expect(receiver.to("/16")).toEqual([])
    status = 200
    await patch(id, { oauth: { clientSecret } })
    await all(id, "DELIVERED", 2)
    expect(receiver.to("/16").map(({ headers }) => headers["authorization"])).toEqual(["Bearer a", "Bearer a"])
    // As RFC 6749 encodes id and secret: only what a form has to.
    expect([...authentications]).toEqual(["custody-1:s-81.d0_ff%2B1"])
  })

  test("responses that refuse single deliveries do not mark the endpoint as down", async () => {
    const { id } = await webhook(7, () => 400)
    await feed(7, 2)
    await until("failures", async () => (await get(id)).health.consecutiveFailures >= 8)
    await app.sql("UPDATE webhook_health SET down_since = down_since - interval '1 hour' WHERE webhook_id = $1", [id])
    await until("more failures", async () => (await get(id)).health.consecutiveFailures >= 12)
    expect((await get(id)).health.state).toBe("DEGRADED")
  })

  test("a delivery that the endpoint always refuses does not prolong the hold", async () => {
    let down = true
    const { id } = await webhook(8, () => 200)
    receiver.on("/8", ({ headers }) => new Response("", { status: down || headers["webhook-sequence"] === "1" ? 503 : 200 }))
    await goDown(8, id)
    await feed(8, 3)
    await until("all are held", async () => (await get(id)).health.heldDeliveries === 5)
    down = false
    for (let probes = await probesOf(id); probes >= 0 && probes < 6; probes = await probesOf(id)) {
      await probeNow(id)
      await until("the probe", async () => (await probesOf(id)) !== probes)
    }
    await until("all others", async () => (await statuses(id)).filter((status) => status === "DELIVERED").length === 4)
    await until("the end of the hold", async () => (await app.sql("SELECT 1 FROM webhook_queues WHERE webhook_id = $1", [id])).length === 0)
    expect((await statuses(id)).filter((status) => status !== "DELIVERED")).toEqual(["RETRYING"])
  })

  test("a probe honours Retry-After, and 120 hours without a 2xx disable the webhook", async () => {
    const { id } = await webhook(9, () => 200)
    receiver.on("/9", () => new Response("", { status: 429, headers: { "retry-after": "1800" } }))
    await feed(9, 2)
    await until("two failures", async () => (await get(id)).health.consecutiveFailures >= 2)
    await app.sql(
      "UPDATE webhook_health SET down_since = down_since - interval '61 seconds', down_failures = 9, consecutive_failures = 9 WHERE webhook_id = $1",
      [id]
    )
    await feed(9, 1)
    await until("the hold", async () => (await get(id)).health.state === "HOLDING")
    await until("three are held", async () => (await get(id)).health.heldDeliveries === 3)
    await probeNow(id)
    await until("the probe", async () => (await probesOf(id)) === 1)
    const [row] = await app.sql("SELECT extract(epoch FROM due - clock_timestamp()) AS wait FROM webhook_queues WHERE webhook_id = $1", [
      id
    ])
    expect(Number(row?.["wait"])).toBeGreaterThan(1_700)
    await app.sql("UPDATE webhook_health SET failing_since = failing_since - interval '120 hours' WHERE webhook_id = $1", [id])
    await probeNow(id)
    await until("the disable", async () => (await get(id)).disabledReason === "FAILING")
    await all(id, "CANCELED", 3)
    expect((await subjects(id)).at(-1)).toContain("was disabled")
    await until(
      "the end of the queue",
      async () => (await app.sql("SELECT 1 FROM webhook_queues WHERE webhook_id = $1", [id])).length === 0
    )
  })

  test("a webhook paused during a hold is probed only once it is resumed", async () => {
    let status = 503
    const { id } = await webhook(10, () => status)
    await goDown(10, id)
    await until("both are held", async () => (await get(id)).health.heldDeliveries === 2)
    await patch(id, { status: "PAUSED" })
    expect((await get(id)).health.nextProbeAt).toBeNull()
    const before = receiver.to("/10").length
    await probeNow(id)
    // Several times as long as a probe that is due waits.
    await Bun.sleep(2_500)
    expect(receiver.to("/10").length).toBe(before)
    status = 200
    await patch(id, { status: "ACTIVE" })
    await all(id, "DELIVERED", 2)
  })

  test("an endpoint slower than ten seconds is held like one that is down", async () => {
    const { id } = await webhook(15, () => 200)
    let slow = true
    receiver.on("/15", async () => {
      if (slow) await Bun.sleep(30_000)
      return new Response("")
    })
    await feed(15, 10)
    await until("eight time out", async () => (await get(id)).health.consecutiveFailures >= 8)
    await app.sql("UPDATE webhook_health SET down_since = down_since - interval '61 seconds', down_failures = 9 WHERE webhook_id = $1", [
      id
    ])
    await until("all are held", async () => (await get(id)).health.heldDeliveries === 10)
    expect((await deliveriesOf(app, key, id)).flatMap(({ attempts }) => attempts.map((one: Answer["json"]) => one.result))).toContain(
      "timeout"
    )
    // More than an hour later.
    await app.sql("UPDATE webhook_health SET failing_since = failing_since - interval '61 minutes' WHERE webhook_id = $1", [id])
    const before = receiver.to("/15").length
    await probeNow(id)
    await until("the probe", async () => (await probesOf(id)) === 1)
    expect(receiver.to("/15").length).toBe(before + 1)
    slow = false
    await probeNow(id)
    await all(id, "DELIVERED", 10)
    await until("the notices", async () => (await subjects(id)).length === 3)
    const [held, failing, recovered] = await subjects(id)
    expect([held?.includes("is on hold"), failing?.includes("is failing"), recovered?.includes("10 delivered")]).toEqual([true, true, true])
  })
})
