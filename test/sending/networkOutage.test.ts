/** Attempts that fail because this process reaches no network do not count against any endpoint. C-5. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { NetworkOutage } from "../../src/processes/NetworkOutage.ts"
import { App } from "../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { Dns } from "../support/dns.ts"
import { Receiver, receiverEnv, until } from "../support/receiver.ts"

const names = Array.from({ length: 5 }, (_, number) => `hook${number}.example.com`)
const receiver = new Receiver()
const dns = new Dns()
const app = new App()
let key = ""

beforeAll(async () => {
  await dns.open()
  await receiver.open("127.0.0.1", names)
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    WEBHOOK_DNS_SERVERS: dns.address,
    WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s,1s"
  })
  key = await feedOrganization(app, 5)
})
afterAll(async () => {
  await app.close()
  await receiver.close()
  dns.close()
})

const ready = async () =>
  (await (await fetch(`${app.main?.platformUrl}/health/ready`)).json()) as { ready: boolean; dependencies: { network: string | null } }
const gauge = async () => /^custody_network_outage (\d)/m.exec(await (await fetch(`${app.main?.platformUrl}/metrics`)).text())?.[1]

test("C-5: while no resolver answers, nothing is used up and only the operator is notified; then everything is sent", async () => {
  for (const name of names) dns.on(name, { silent: true })
  const webhooks = []
  for (const [number, name] of names.entries()) webhooks.push(await webhookOf(app, key, number, `https://${name}:${receiver.port}/hook`))
  await feedTransactions(app, [0, 1, 2, 3, 4])
  await until("the outage", async () => (await gauge()) === "1")
  expect((await ready()).dependencies.network).toContain("before they reach a network")
  expect((await ready()).ready).toBe(true)
  await Bun.sleep(6_000)
  // The first two may have failed before the outage was detected; their failures wait for others, so none counted.
  expect(await app.sql("SELECT 1 FROM delivery_attempts WHERE result IS NOT NULL")).toEqual([])
  for (const { id } of webhooks) {
    expect((await deliveriesOf(app, key, id)).map(({ attempts, status }) => [status, attempts])).toEqual([["PENDING", []]])
    expect((await app.get(`/v1/webhooks/${id}`, key)).json.health.consecutiveFailures).toBe(0)
  }
  expect(await app.sql("SELECT 1 FROM notices")).toEqual([])
  for (const name of names) dns.on(name, { a: ["127.0.0.1"] })
  await until("all deliveries", async () => (await app.sql("SELECT 1 FROM deliveries WHERE status = 'DELIVERED'")).length === 5)
  expect(await gauge()).toBe("0")
  expect((await ready()).dependencies.network).toBeNull()
  expect(await app.sql("SELECT 1 FROM delivery_attempts WHERE number > 1 OR result <> '2xx'")).toEqual([])
})

test("C-5: a name that does not resolve while others do is the endpoint's failure", async () => {
  const [name = ""] = names
  dns.on(name, { silent: true })
  await feedTransactions(app, [1, 2, 3, 4])
  await until("the others", async () => (await app.sql("SELECT 1 FROM deliveries WHERE status = 'DELIVERED'")).length === 9)
  await feedTransactions(app, [0])
  const failed = await until("the failure", async () => (await app.sql("SELECT result FROM delivery_attempts WHERE result <> '2xx'"))[0])
  expect(failed["result"]).toBe("dns_error")
  expect(await gauge()).toBe("0")
})

test("C-5: an outage requires more than half of the webhooks of the last 30 seconds, and at least three", () => {
  const outage = new NetworkOutage()
  expect([outage.note("a", true), outage.note("b", true), outage.note("c", true)]).toEqual([false, false, true])
  expect([outage.admits(), outage.admits()]).toEqual([true, false])
  expect(outage.note("d", false)).toBe(false)
  const half = new NetworkOutage()
  for (const id of ["a", "b", "c"]) half.note(id, false)
  expect([half.note("d", true), half.note("e", true), half.note("f", true), half.note("g", true)]).toEqual([false, false, false, true])
})
