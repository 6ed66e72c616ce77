/** Numbers of deliveries: without gaps within a webhook, in the API, in each request, and as a filter. C-2. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { App } from "../support/app.ts"
import { codeOf } from "../support/problem.ts"
import { Receiver, receiverEnv, until } from "../support/receiver.ts"
import { smallest, transaction } from "../support/records.ts"
import { create } from "../support/webhookFixtures.ts"

const receiver = new Receiver()
const app = new App()
let key = ""

beforeAll(async () => {
  await receiver.open()
  await app.open(["api", "worker", "dispatcher"], { ...receiverEnv(receiver) })
  await app.feed(smallest(), { "x-record-events": "none" })
  key = (await app.key("user_a")).secret
}, 60_000)
afterAll(async () => {
  await app.close()
  await receiver.close()
})

test("C-2: deliveries and redeliveries of a webhook are numbered without gaps, in the API, the request and the filter; pings are not numbered", async () => {
  const first = await create(app, key, { url: receiver.url("/first") })
  const second = await create(app, key, { url: receiver.url("/second") })
  await app.feed([transaction("vault_a", 1), transaction("vault_a", 2), transaction("vault_a", 3)])
  await until("the deliveries", () => receiver.to("/first").length === 3 && receiver.to("/second").length === 3, 20)
  const list = async (id: string) => app.walk(`/v1/webhooks/${id}/deliveries`, key)
  const [newest] = await list(first.id)
  expect((await app.request("POST", `/v1/webhooks/${first.id}/ping`, { key })).json.success).toBe(true)
  const again = await app.request("POST", `/v1/webhook-deliveries/${newest.id}/redeliver`, { key })
  expect([again.status, again.json.sequence]).toEqual([202, 4])
  await app.feed([transaction("vault_a", 4)])
  await until("the rest", () => receiver.to("/first").length === 6 && receiver.to("/second").length === 4, 20)
  const numbers = async (id: string) => (await list(id)).map(({ sequence }) => sequence).sort()
  expect([await numbers(first.id), await numbers(second.id)]).toEqual([
    [1, 2, 3, 4, 5],
    [1, 2, 3, 4]
  ])
  // Every request names the number of its delivery; the ping has none.
  const byId = new Map((await list(first.id)).map(({ id, sequence }) => [id, sequence]))
  for (const { headers } of receiver.to("/first")) {
    const ping = headers["x-service-event-kind"] === "webhook.ping"
    expect(headers["webhook-sequence"]).toBe(ping ? undefined : String(byId.get(headers["x-service-delivery-id"])))
  }
  const found = await app.get(`/v1/webhooks/${first.id}/deliveries?sequence=4`, key)
  expect(found.json.data.map(({ id }: { id: string }) => id)).toEqual([again.json.id])
  for (const query of ["sequence=99", "sequence=4&status=CANCELED", "sequence=4&eventId=evt_x"])
    expect([query, (await app.get(`/v1/webhooks/${first.id}/deliveries?${query}`, key)).json.data]).toEqual([query, []])
  for (const sequence of ["0", "-1", "1.5", "x", "", "1e3", "9999999999999999"])
    expect([sequence, codeOf(await app.get(`/v1/webhooks/${first.id}/deliveries?sequence=${sequence}`, key))]).toEqual([
      sequence,
      "invalid_parameter"
    ])
}, 60_000)
