/** Names whose DNS servers are silent: one tenant's names are one tenant's problem. Architecture, What must hold 7. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { report } from "../faults/Rig.ts"
import { App } from "../support/app.ts"
import { arrivals } from "../support/arrivals.ts"
import { feedOrganization, feedOtherOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { Dns } from "../support/dns.ts"
import { Receiver, receiverEnv, until } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"

const SILENT = Array.from({ length: 4 }, (_, number) => `silent${number}.example.com`)
const GOOD = "good.example.com"
/** Events for each silent name: more than a process has slots. */
const BACKLOG = 100

const receiver = new Receiver()
const dns = new Dns()
const app = new App()
let key = "",
  theirKey = ""

beforeAll(async () => {
  await dns.open()
  await receiver.open("127.0.0.1", [GOOD])
  await app.open(["api", "worker", "dispatcher"], { ...receiverEnv(receiver), WEBHOOK_DNS_SERVERS: dns.address })
  key = await feedOrganization(app, SILENT.length)
  theirKey = await feedOtherOrganization(app)
})
afterAll(async () => {
  await app.close()
  await receiver.close()
  dns.close()
})

test("names whose DNS is silent fail alone and delay no other organization", async () => {
  dns.on(GOOD, { a: ["127.0.0.1"] })
  for (const name of SILENT) dns.on(name, { silent: true })
  await webhookOf(app, theirKey, 0, `https://${GOOD}:${receiver.port}/theirs`, { entityIds: ["entity_b"] })
  await app.feed([transaction("vault_b", 1)])
  await until("their first event", () => receiver.to("/theirs").length === 1)
  const webhooks: Array<string> = []
  for (const [number, name] of SILENT.entries()) webhooks.push((await webhookOf(app, key, number, `https://${name}:${receiver.port}/`)).id)
  await feedTransactions(
    app,
    Array.from({ length: BACKLOG * SILENT.length }, (_, event) => event % SILENT.length)
  )
  await until("queries for every silent name", () => SILENT.every((name) => dns.asked(name) > 0))

  const theirs = await arrivals(app, receiver, { vaultId: "vault_b", path: "/theirs", count: 30, everyMs: 200 })
  const failed = async (webhookId: string) =>
    Number(
      (
        await app.sql(
          `SELECT count(*)::int AS count FROM delivery_attempts t JOIN deliveries d ON d.id = t.delivery_id
           WHERE d.webhook_id = $1 AND t.result = 'dns_error'`,
          [webhookId]
        )
      )[0]?.["count"]
    )
  report("four names whose DNS is silent", { theirs, dnsErrors: await Promise.all(webhooks.map(failed)) })
  expect(theirs.p50).toBeLessThan(500)
  expect(theirs.missing).toBe(0)
  await until("a failed attempt of each webhook", async () => (await Promise.all(webhooks.map(failed))).every((count) => count > 0))
  const results = await app.sql(
    "SELECT DISTINCT t.result FROM delivery_attempts t JOIN deliveries d ON d.id = t.delivery_id WHERE d.webhook_id = ANY($1) AND t.result IS NOT NULL",
    [webhooks]
  )
  expect(results).toEqual([{ result: "dns_error" }])
}, 180_000)
