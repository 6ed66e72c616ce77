/** Endpoints that cannot be reached while DNS answers: whatever the cause, it is theirs, and holds keep the schedules. C-5. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { App } from "../../support/app.ts"
import { feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { Dns } from "../../support/dns.ts"
import { Receiver, receiverEnv, until } from "../../support/receiver.ts"

/** Nothing listens at the first; a broadcast address, to which there is no route for TCP. */
const REFUSES = "127.0.0.2",
  NO_ROUTE = "127.255.255.255"
const endpoints = [REFUSES, REFUSES, REFUSES, NO_ROUTE, NO_ROUTE, NO_ROUTE].map((address, number) => ({
  name: `hook${number}.example.com`,
  address
}))
const numbers = endpoints.map((_, number) => number)
const EVENTS = 4
/** Longer than the longest schedule of the settings below takes, by a fifth for its jitter. */
const OUTAGE_SECONDS = 10

const receiver = new Receiver()
const dns = new Dns()
const app = new App()
let key = ""

beforeAll(async () => {
  await dns.open()
  await receiver.open(
    "127.0.0.1",
    endpoints.map(({ name }) => name)
  )
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    WEBHOOK_DNS_SERVERS: dns.address,
    WEBHOOK_RETRY_SCHEDULE: `0s${",1s".repeat(7)}`,
    WEBHOOK_HOLD_AFTER: "1s",
    WEBHOOK_PROBE_SCHEDULE: "1s"
  })
  key = await feedOrganization(app, endpoints.length)
})
afterAll(async () => {
  await app.close()
  await receiver.close()
  dns.close()
})

const count = async (from: string) => Number((await app.sql(`SELECT count(*)::int AS count FROM ${from}`))[0]?.["count"])

test("while DNS answers, unreachable endpoints are down, and no delivery fails", async () => {
  for (const { address, name } of endpoints) dns.on(name, { a: [address] })
  for (const number of numbers) await webhookOf(app, key, number, `https://${endpoints[number]?.name}:${receiver.port}/${number}`)
  for (let event = 0; event < EVENTS; event++) await feedTransactions(app, numbers)
  await until("all are held", async () => (await count("deliveries WHERE status = 'HELD'")) === EVENTS * endpoints.length)
  await until(
    "probes until the schedule would have ended",
    async () =>
      (await count(
        `(SELECT 1 FROM delivery_attempts t JOIN deliveries d ON d.id = t.delivery_id
          GROUP BY d.webhook_id HAVING max(t.at) - min(t.at) > interval '${OUTAGE_SECONDS} seconds') probed`
      )) === endpoints.length
  )
  // Every attempt has a row, none was withdrawn, and this service's own network is not at fault.
  const results = await app.sql(
    `SELECT DISTINCT w.url, t.result FROM delivery_attempts t JOIN deliveries d ON d.id = t.delivery_id JOIN webhooks w ON w.id = d.webhook_id
     WHERE t.result IS NOT NULL ORDER BY w.url`
  )
  expect(results.map(({ result }) => result)).toEqual(endpoints.map(() => "connection_refused"))
  expect(
    await count(`(SELECT 1 FROM delivery_attempts GROUP BY delivery_id HAVING max(number) <> count(*) OR min(number) <> 1) withdrawn`)
  ).toBe(0)
  const ready = (await (await fetch(`${app.main?.platformUrl}/health/ready`)).json()) as { dependencies: { network: string } }
  expect(ready.dependencies.network).toBe("ok")
  for (const { name } of endpoints) dns.on(name, { a: ["127.0.0.1"] })
  await until("all deliveries", async () => (await count("deliveries WHERE status = 'DELIVERED'")) === EVENTS * endpoints.length)
  expect(await count("notices WHERE subject LIKE '%failed permanently%'")).toBe(0)
  expect(await count("webhooks WHERE status <> 'ACTIVE'")).toBe(0)
})
