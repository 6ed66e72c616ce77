/** The trace context of attempts, where traces are exported. C-12. */
import { afterAll, expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

const exported: Array<string> = []
const collector = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: async (request) => {
    exported.push(await request.text())
    return new Response("{}", { headers: { "content-type": "application/json" } })
  }
})
afterAll(() => collector.stop(true))

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({
  ...receiverEnv(receiver),
  WEBHOOK_RETRY_SCHEDULE: "0s,1s",
  OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`
}))

test("each attempt and ping names an exported span of its own in traceparent", async () => {
  const key = await feedOrganization(app, 1)
  receiver.on("/traced", (_, count) => new Response("", { status: count === 1 ? 500 : 200 }))
  const webhook = await webhookOf(app, key, 0, receiver.url("/traced"))
  await feedTransactions(app, [0])
  await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
  expect((await app.request("POST", `/v1/webhooks/${webhook.id}/ping`, { key })).json.success).toBe(true)
  const spans = receiver.to("/traced").map(({ headers }) => /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(headers["traceparent"] ?? ""))
  expect(spans.map((span) => span !== null)).toEqual([true, true, true])
  expect(new Set(spans.map((span) => span?.[2])).size).toBe(3)
  for (const span of spans)
    for (const id of span?.slice(1) ?? []) await until("the exported span", () => exported.some((text) => text.includes(id)))
})
