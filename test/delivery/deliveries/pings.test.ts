/** Pings of endpoints that hang do not delay deliveries and are limited per organization. Spec: ping. Decision D-26. */
import { expect, test } from "bun:test"
import * as net from "node:net"
import { type Answer, useApp } from "../../support/app.ts"
import { deliveryWhen, feedOrganization, feedOtherOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => receiverEnv(receiver))
const IN_FLIGHT = 20

test(`at most ${IN_FLIGHT} pings of an organization are in flight, and others are not delayed`, async () => {
  const key = await feedOrganization(app, 2)
  const other = await feedOtherOrganization(app)
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  receiver.on("/hangs", async () => {
    await released
    return new Response("")
  })
  const hanging = await webhookOf(app, key, 0, receiver.url("/hangs"), { status: "DISABLED" })
  const ping = (id: string, by: string): Promise<Answer> => app.request("POST", `/v1/webhooks/${id}/ping`, { key: by })
  await until("a worker", async () => (await ping((await webhookOf(app, key, 0, receiver.url("/up"))).id, key)).status === 200)
  const pings = Array.from({ length: IN_FLIGHT }, () => ping(hanging.id, key))
  // They count from when they are accepted, and each ends after the time of an attempt, also where it is sent late.
  await until("the pings in flight", async () => (await app.sql("SELECT 1 FROM pings WHERE result IS NULL")).length === IN_FLIGHT)
  const refused = await ping(hanging.id, key)
  expect([refused.status, refused.json.code, refused.headers.get("retry-after")]).toEqual([429, "rate_limited", "10"])
  await until("the pings at the endpoint", () => receiver.to("/hangs").length === IN_FLIGHT)
  // A ping of another organization, and an event of this one.
  const theirs = await app.request("POST", "/v1/webhooks", {
    key: other,
    body: {
      url: receiver.url("/theirs"),
      entityIds: ["entity_b"],
      eventKinds: ["transaction.confirmed"],
      notificationEmail: "ops@example.com"
    }
  })
  expect((await ping(theirs.json.id, other)).json).toMatchObject({ success: true })
  const webhook = await webhookOf(app, key, 1, receiver.url("/events"))
  await feedTransactions(app, [1])
  await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
  release()
  for (const answer of await Promise.all(pings)) expect(answer.status).toBe(200)
  expect((await ping(hanging.id, key)).json).toMatchObject({ success: true })
  expect(await app.sql("SELECT 1 FROM pings WHERE result IS NULL")).toEqual([])
})

test("pings whose bodies do not arrive are not in flight", async () => {
  const key = await feedOrganization(app, 3)
  const { id } = await webhookOf(app, key, 2, receiver.url("/bodies"), { status: "DISABLED" })
  const { host, hostname, port } = new URL(app.main?.baseUrl ?? "")
  const sockets = await Promise.all(
    Array.from({ length: IN_FLIGHT }, () => {
      const socket = net.connect(Number(port), hostname).on("error", () => {})
      const head = `POST /v1/webhooks/${id}/ping HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json`
      return new Promise<net.Socket>((resolve) => socket.write(`${head}\r\nContent-Length: 20\r\n\r\n{`, () => resolve(socket)))
    })
  )
  for (let count = 0; count < 3; count++) {
    expect((await app.request("POST", `/v1/webhooks/${id}/ping`, { key })).json).toMatchObject({ success: true })
  }
  for (const socket of sockets) socket.destroy()
})

test("a ping that starts late still gives the endpoint the full timeout", async () => {
  const key = await feedOrganization(app, 3)
  receiver.on("/late", async () => {
    await Bun.sleep(30_000)
    return new Response("")
  })
  const { id } = await webhookOf(app, key, 2, receiver.url("/late"), { status: "DISABLED" })
  const second = await app.start(["api"])
  const worker = app.main
  app.main = second
  // The process with the only worker stops for a while.
  worker?.child.kill("SIGSTOP")
  const answer = app.request("POST", `/v1/webhooks/${id}/ping`, { key })
  // Longer than a task of a worker that was killed, and with the time of an attempt longer than the API waits for a beginning.
  await Bun.sleep(6_000)
  worker?.child.kill("SIGCONT")
  expect((await answer).json).toMatchObject({ success: false, result: "timeout" })
  expect(receiver.to("/late")).toHaveLength(1)
  await second.end()
  app.main = worker
})
