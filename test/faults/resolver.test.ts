/** The service's own DNS resolver answers nothing: an outage of the service, which no delivery pays for. C-5. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { App, type Process } from "../support/app.ts"
import { feedOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { Dns } from "../support/dns.ts"
import { Receiver, receiverEnv, until } from "../support/receiver.ts"

/** Two webhooks suffice: an outage is not a matter of how many fail. */
const names = ["hook0.example.com", "hook1.example.com"]
const EVENTS = 5
/** How long the resolver stays away after it was noticed: longer than the schedule below. */
const AWAY_MS = 8_000
/** From its return to the last delivery. */
const SECONDS = 45

const health = async ({ platformUrl }: Process) => {
  const answer = await fetch(`${platformUrl}/health/ready`)
  const { dependencies } = (await answer.json()) as { dependencies: { network: string; postgres: string } }
  // Of a database that is busy for a moment, readiness says that it is unavailable.
  return { ready: answer.status === 200 || dependencies.postgres !== "ok", network: dependencies.network }
}

describe.concurrent("a resolver that answers nothing", () => {
  for (const [what, roles, more] of [
    ["one process", ["api", "worker", "dispatcher"], []],
    ["a worker of its own", ["api", "dispatcher"], ["worker"]]
  ] as const) {
    describe(what, () => {
      const receiver = new Receiver()
      const dns = new Dns()
      const app = new App()
      let key = ""
      beforeAll(async () => {
        await dns.open()
        await receiver.open("127.0.0.1", names)
        const env = { ...receiverEnv(receiver), WEBHOOK_DNS_SERVERS: dns.address, WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s,1s" }
        await app.open(roles, env)
        key = await feedOrganization(app, names.length)
      })
      afterAll(async () => {
        await app.close()
        await receiver.close()
        dns.close()
      })

      test("readiness names the fault, no attempt counts, and afterwards everything is sent", async () => {
        const [api, sender] = [app.main, more.length === 0 ? app.main : await app.start(more)]
        if (api === undefined || sender === undefined) throw new Error("no process")
        for (const name of names) dns.on(name, { a: ["127.0.0.1"] })
        receiver.on("/0", (_, count) => {
          // Its retry is due while the resolver is away.
          if (count === 1) dns.silent = true
          return new Response("", { status: count === 1 ? 500 : 200 })
        })
        for (const [number, name] of names.entries()) await webhookOf(app, key, number, `https://${name}:${receiver.port}/${number}`)
        await feedTransactions(app, [0])
        await until("the failure", async () => (await app.sql("SELECT 1 FROM delivery_attempts WHERE result = '5xx'")).length === 1)
        for (let event = 0; event < EVENTS; event++) await feedTransactions(app, [0, 1])
        const used = () => app.sql("SELECT result FROM delivery_attempts WHERE result IS NOT NULL AND result <> '5xx'")
        await until(
          "readiness, or attempts that were recorded",
          async () => (await health(sender)).network !== "ok" || (await used()).length > 0
        )
        expect(await used()).toEqual([])
        for (const end = Date.now() + AWAY_MS; Date.now() < end; await Bun.sleep(250)) {
          expect((await health(sender)).network).not.toBe("ok")
          expect((await health(api)).ready).toBe(true)
        }
        await until("the end of open attempts", async () => (await app.sql("SELECT 1 FROM delivery_attempts")).length === 1)
        expect(await app.sql("SELECT DISTINCT status FROM deliveries WHERE status NOT IN ('PENDING', 'RETRYING', 'HELD')")).toEqual([])
        expect(await app.sql("SELECT 1 FROM notices")).toEqual([])

        dns.silent = false
        const delivered = async () => (await app.sql("SELECT 1 FROM deliveries WHERE status = 'DELIVERED'")).length
        await until("all deliveries", async () => (await delivered()) === 1 + EVENTS * names.length, SECONDS)
        expect(await app.sql("SELECT number, result, count(*)::int AS count FROM delivery_attempts GROUP BY 1, 2 ORDER BY 1, 2")).toEqual([
          { number: 1, result: "2xx", count: EVENTS * names.length },
          { number: 1, result: "5xx", count: 1 },
          { number: 2, result: "2xx", count: 1 }
        ])
        await until("readiness without the fault", async () => (await health(sender)).network === "ok")
      })
    })
  }
})
