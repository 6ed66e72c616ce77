/** Headers of webhooks on their way: which requests carry them, and what answers show of them. C-12. */
import { beforeAll, describe, expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s,1s" }))
let key = ""
beforeAll(async () => {
  key = await feedOrganization(app, 5)
})

const API_KEY = 'k-5f0c2b7d/with "marks" & more'
const headers = [
  { name: "X-Api-Key", value: API_KEY },
  { name: "Authorization", value: "Bearer gateway-token-1" }
]
/** A gateway that lets requests with these headers through to an endpoint. */
const gateway = (path: string, behind: () => Response = () => new Response("ok")) =>
  receiver.on(path, ({ headers }) =>
    headers["x-api-key"] === API_KEY && headers["authorization"] === "Bearer gateway-token-1"
      ? behind()
      : new Response("no key", { status: 401 })
  )
const patch = (id: string, body: unknown) => app.request("PATCH", `/v1/webhooks/${id}`, { key, body })

describe.concurrent("headers of a webhook", () => {
  test("every attempt, redelivery and ping carries them", async () => {
    let count = 0
    gateway("/gateway", () => new Response("", { status: ++count === 1 ? 503 : 200 }))
    const { id } = await webhookOf(app, key, 0, receiver.url("/gateway"), { headers })
    await feedTransactions(app, [0])
    const { id: deliveryId } = await deliveryWhen(app, key, id, ({ status }) => status === "DELIVERED")
    expect((await app.request("POST", `/v1/webhooks/${id}/ping`, { key })).json).toMatchObject({ success: true })
    await app.request("POST", `/v1/webhook-deliveries/${deliveryId}/redeliver`, { key })
    await until("the redelivery", () => receiver.to("/gateway")[3])
    for (const request of receiver.to("/gateway"))
      expect(request.headers).toMatchObject({ "x-api-key": API_KEY, "content-type": "application/json", "webhook-id": expect.any(String) })
  })

  test("an update takes effect with the next attempt", async () => {
    gateway("/late")
    const { id } = await webhookOf(app, key, 1, receiver.url("/late"), { headers: [{ name: "x-api-key", value: "wrong" }] })
    await feedTransactions(app, [1])
    await until("the refused attempt", () => receiver.to("/late")[0])
    await patch(id, { headers })
    const { attempts } = await deliveryWhen(app, key, id, ({ status }) => status === "DELIVERED")
    expect([attempts[0], attempts.at(-1)]).toMatchObject([{ result: "4xx", httpStatus: 401, bodySnippet: "no key" }, { result: "2xx" }])
    await patch(id, { headers: headers.map(({ name }) => ({ name: name.toLowerCase(), value: null })) })
    expect((await app.request("POST", `/v1/webhooks/${id}/ping`, { key })).json).toMatchObject({ success: true })
  })

  test("a response that returns them shows three asterisks instead", async () => {
    receiver.on("/echo", ({ headers }) => {
      const all = { key: headers["x-api-key"], authorization: headers["authorization"] }
      const cut = API_KEY.slice(0, 20)
      return new Response(`${JSON.stringify(all)} ${encodeURIComponent(API_KEY)} ${"x".repeat(900)}${API_KEY} ${cut}`, { status: 500 })
    })
    const { id } = await webhookOf(app, key, 2, receiver.url("/echo"), { headers })
    await feedTransactions(app, [2])
    const { attempts } = await deliveryWhen(app, key, id, ({ attempts }) =>
      attempts.some(({ result }: { result: string }) => result === "5xx")
    )
    const expected = `{"key":"***","authorization":"***"} *** ${"x".repeat(900)}*** ***`
    expect(attempts[0].bodySnippet).toBe(expected)
    expect((await app.request("POST", `/v1/webhooks/${id}/ping`, { key })).json.bodySnippet).toBe(expected)
  })

  test("a probe of an endpoint that is down carries them", async () => {
    let status = 503
    gateway("/down", () => new Response("", { status }))
    const { id } = await webhookOf(app, key, 3, receiver.url("/down"), { headers })
    await feedTransactions(app, [3])
    await until("an attempt", () => receiver.to("/down")[0])
    await patch(id, { status: "PAUSED" })
    await until("the held delivery", async () => (await app.get(`/v1/webhooks/${id}`, key)).json.health.heldDeliveries === 1)
    await app.sql("UPDATE webhook_queues SET down = true, down_at = now(), due = now() WHERE webhook_id = $1", [id])
    status = 200
    await patch(id, { status: "ACTIVE" })
    await deliveryWhen(app, key, id, ({ status }) => status === "DELIVERED")
    for (const request of receiver.to("/down")) expect(request.headers["x-api-key"]).toBe(API_KEY)
  })

  test("nothing is sent if they cannot be decrypted", async () => {
    gateway("/sealed")
    const { id } = await webhookOf(app, key, 4, receiver.url("/sealed"), { headers })
    const [row] = await app.sql("SELECT gateway_credentials FROM webhooks WHERE id = $1", [id])
    await app.sql("UPDATE webhooks SET gateway_credentials = '\\x00' WHERE id = $1", [id])
    await feedTransactions(app, [4])
    await until("the log says why", () => app.main?.output().includes(`the headers and OAuth secret of ${id} cannot be decrypted`))
    expect(receiver.to("/sealed")).toEqual([])
    await app.sql("UPDATE webhooks SET gateway_credentials = $2 WHERE id = $1", [id, row?.["gateway_credentials"]])
    await deliveryWhen(app, key, id, ({ status }) => status === "DELIVERED")
    expect(receiver.to("/sealed")).toHaveLength(1)
  })
})
