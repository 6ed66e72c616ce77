/**
 * Attempts as rows: how a closed kept connection, a cached name and a late outcome affect a delivery,
 * and where they are counted. Decisions D-21, D-30.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { App } from "../../support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { Dns } from "../../support/dns.ts"
import { temporaryFiles } from "../../support/files.ts"
import { KeepAliveEndpoint, ok } from "../../support/KeepAliveEndpoint.ts"
import { until } from "../../support/receiver.ts"

const app = new App()
const endpoint = new KeepAliveEndpoint()
const dns = new Dns()
const files = temporaryFiles()
let key = ""

beforeAll(async () => {
  await Promise.all([endpoint.open(["localhost", "*.kept.test"]), dns.open()])
  await app.open(["api", "worker", "dispatcher"], {
    WEBHOOK_ALLOW_CIDRS: "127.0.0.1/32",
    WEBHOOK_ALLOW_PORTS: String(endpoint.port),
    WEBHOOK_EXTRA_CA: files.write("ca.pem", endpoint.ca),
    WEBHOOK_DNS_SERVERS: dns.address,
    WEBHOOK_RETRY_SCHEDULE: "0s,1h"
  })
  key = await feedOrganization(app, 5)
})
afterAll(async () => {
  await app.close()
  endpoint.close()
  dns.close()
  files.remove()
})

test("a kept connection that fails is its own attempt, and the next follows at once", async () => {
  // The first request is answered; the second one on its connection is not.
  endpoint.on("/dies", ({ nth, socket }) => (nth === 1 ? socket.write(ok()) : socket.destroy()))
  const webhook = await webhookOf(app, key, 0, endpoint.url("/dies"))
  const next = async (number: number) => {
    await feedTransactions(app, [0])
    return await deliveryWhen(app, key, webhook.id, ({ sequence, status }) => sequence === number && status === "DELIVERED")
  }
  await next(1)
  let delivery = await next(2)
  // On a machine that pauses for longer than an idle connection is kept, each has a new one.
  for (let number = 3; delivery.attempts.length === 1 && number < 10; number++) delivery = await next(number)
  expect(delivery.attempts.map(({ result }: { result: string }) => result)).toEqual(["connection_reset", "2xx"])
  const [first, second, third] = endpoint.to("/dies").slice(-3)
  expect([first, second, third].map((one) => one?.attempt)).toEqual(["1", "1", "2"])
  expect(second?.connection).toBe(first?.connection ?? 0)
  expect(third?.connection).not.toBe(first?.connection ?? 0)
  // It does not count against the endpoint.
  const { health } = (await app.get(`/v1/webhooks/${webhook.id}`, key)).json
  expect(health).toMatchObject({ state: "HEALTHY", consecutiveFailures: 0, lastFailureAt: null })
})

test("a failed kept connection does not use up the schedule", async () => {
  // On each connection the first request gets 500 once that is requested, and each later one finds it closed.
  let answers = 200
  endpoint.on("/fails", ({ nth, socket }) => {
    if (nth === 1) socket.write(answers === 200 ? ok() : "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n")
    else socket.destroy()
  })
  const webhook = await webhookOf(app, key, 1, endpoint.url("/fails"))
  const next = async (number: number) => {
    answers = 200
    await feedTransactions(app, [1])
    await deliveryWhen(app, key, webhook.id, ({ sequence, status }) => sequence === number && status === "DELIVERED")
    answers = 500
    await feedTransactions(app, [1])
    return await deliveryWhen(
      app,
      key,
      webhook.id,
      ({ attempts, sequence }) => sequence === number + 1 && attempts.at(-1)?.result === "5xx"
    )
  }
  let waiting = await next(1)
  // On a machine that pauses for longer than an idle connection is kept, each has a new one.
  for (let number = 3; waiting.attempts.length === 1 && number < 10; number += 2) waiting = await next(number)
  expect(waiting).toMatchObject({ status: "RETRYING", attempts: [{ result: "connection_reset" }, { result: "5xx" }] })
  // The wait after the first attempt of the schedule, an hour.
  expect(Date.parse(waiting.nextAttemptAt) - Date.now()).toBeGreaterThan(40 * 60_000)
  expect((await app.get(`/v1/webhooks/${webhook.id}`, key)).json.health).toMatchObject({ consecutiveFailures: 1 })
})

test("a name is resolved once per TTL, and a failure is remembered for 5 seconds", async () => {
  dns.on("held.kept.test", { a: ["127.0.0.1"], ttl: 20 })
  const held = await webhookOf(app, key, 2, endpoint.url("/held", "held.kept.test"))
  const ping = async (id: string) => (await app.request("POST", `/v1/webhooks/${id}/ping`, { key })).json
  for (let count = 0; count < 3; count++) expect(await ping(held.id)).toMatchObject({ result: "2xx" })
  expect(dns.asked("held.kept.test")).toBe(2)

  dns.on("away.kept.test", { rcode: 3 })
  const away = await webhookOf(app, key, 2, endpoint.url("/away", "away.kept.test"))
  const askedAt = Date.now()
  expect(await ping(away.id)).toMatchObject({ result: "dns_error" })
  const failedAt = Date.now()
  const asked = dns.asked("away.kept.test")
  dns.on("away.kept.test", { a: ["127.0.0.1"] })
  await ping(away.id)
  // The failure is remembered from a time between the two.
  if (Date.now() - askedAt < 5_000) expect(dns.asked("away.kept.test")).toBe(asked)
  await until("the cached DNS failure to expire", async () => {
    const began = Date.now()
    if ((await ping(away.id)).result === "2xx") return true
    expect(began - failedAt).toBeLessThan(5_500)
    return false
  })
})

test("a connection to an address that the guard now refuses is closed unused", async () => {
  dns.on("turns.kept.test", { a: ["127.0.0.1"] })
  const webhook = await webhookOf(app, key, 3, endpoint.url("/turns", "turns.kept.test"))
  await feedTransactions(app, [3])
  await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
  const kept = endpoint.to("/turns").at(-1)
  dns.on("turns.kept.test", { a: ["127.0.0.1", "10.0.0.1"] })
  await feedTransactions(app, [3])
  const refused = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "RETRYING")
  expect(refused.attempts).toMatchObject([{ result: "blocked_address" }])
  await until("the end of the connection", () => endpoint.closed.get(kept?.connection ?? 0))
  expect(endpoint.to("/turns")).toHaveLength(1)
})

test("a late outcome changes its own row and not the next due time", async () => {
  let answer = () => {}
  endpoint.on("/late", ({ socket }) => {
    answer = () => socket.write("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n")
  })
  const webhook = await webhookOf(app, key, 4, endpoint.url("/late"))
  await feedTransactions(app, [4])
  await until("the request", () => endpoint.to("/late")[0])
  const { id } = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "PENDING")
  // Another worker considered the sender dead, and its own attempt has failed meanwhile.
  const dueAt = new Date(Date.now() + 7_200_000).toISOString()
  await app.sql("UPDATE delivery_attempts SET result = 'interrupted' WHERE delivery_id = $1", [id])
  await app.sql(
    "INSERT INTO delivery_attempts (delivery_id, number, at, result, organization_id, webhook_id, process_id) VALUES ($1, 2, now(), 'timeout', 'org_a', '', '')",
    [id]
  )
  await app.sql("UPDATE deliveries SET status = 'RETRYING', next_attempt_at = $2 WHERE id = $1", [id, dueAt])
  answer()
  const late = await deliveryWhen(app, key, webhook.id, ({ attempts }) => attempts[0].result === "5xx")
  expect(late).toMatchObject({ status: "RETRYING", nextAttemptAt: dueAt })
})

test("processes with the same process id, as in containers, count in different shards", async () => {
  const shards = new Set<number>()
  for (let program = 0; program < 32; program++) {
    const { SHARD }: { readonly SHARD: number } = await import(`../../../src/delivery/sending/AttemptsRepo.ts?program=${program}`)
    expect([SHARD >= 0, SHARD < 8, Number.isInteger(SHARD)]).toEqual([true, true, true])
    shards.add(SHARD)
  }
  expect(shards.size).toBeGreaterThan(1)
})
