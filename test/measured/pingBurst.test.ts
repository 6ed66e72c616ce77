/**
 * Hundreds of pings of one organization at once. Those beyond the limit get 429 and leave no entry in the audit log, because nothing
 * was sent. Spec: ping. Decision D-26.
 */
import { beforeAll, expect, test } from "bun:test"
import * as http from "node:http"
import { useApp } from "../support/app.ts"
import { feedOrganization, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), RATE_LIMIT: "100000/1s burst 100000" }))
const PINGS = 450
/** Webhooks that are pinged, all of one organization: few enough pings of each that only the organization's limit refuses them. */
const WEBHOOKS = 90
const PER_ENTITY = 20

let key = ""
const webhooks: Array<string> = []

beforeAll(async () => {
  key = await feedOrganization(app, Math.ceil(WEBHOOKS / PER_ENTITY))
  for (let number = 0; number < WEBHOOKS; number++)
    webhooks.push((await webhookOf(app, key, number % Math.ceil(WEBHOOKS / PER_ENTITY), receiver.url("/pinged"))).id)
  await until("a worker", async () => (await app.request("POST", `/v1/webhooks/${webhooks[0]}/ping`, { key })).status === 200)
})

/** The status and the code of a ping, each over a connection of its own: `fetch` would send at most 256 at once. */
const ping = (webhookId: string) =>
  new Promise<string>((resolve, reject) => {
    const request = http.request(
      `${app.main?.baseUrl}/v1/webhooks/${webhookId}/ping`,
      { method: "POST", agent: false, headers: { authorization: `Bearer ${key}` } },
      (response) => {
        const chunks: Array<Buffer> = []
        response.on("data", (chunk) => chunks.push(chunk))
        response.on("end", () => {
          const code = response.statusCode === 200 ? "" : ` ${JSON.parse(Buffer.concat(chunks).toString()).code}`
          resolve(`${response.statusCode}${code}`)
        })
      }
    )
    request.on("error", reject)
    request.end()
  })

const audited = async () =>
  Number((await app.sql("SELECT count(*)::int AS count FROM audit_log WHERE action = 'webhook.pinged'"))[0]?.["count"])

test(`${PINGS} pings at once are sent or refused, and only sent ones are audited`, async () => {
  // Long enough that most of them arrive while the first ones are in flight.
  receiver.on("/pinged", async () => {
    await Bun.sleep(500)
    return new Response("")
  })
  const [auditedBefore, receivedBefore] = [await audited(), receiver.to("/pinged").length]
  const answers = await Promise.all(Array.from({ length: PINGS }, (_, number) => ping(webhooks[number % WEBHOOKS] ?? "")))
  const tally = Object.fromEntries([...Map.groupBy(answers, (one) => one)].map(([answer, all]) => [answer, all.length]))
  // A busy machine may refuse some because its connections to Postgres are taken.
  expect(["200", "429 rate_limited", "503 service_unavailable"]).toEqual(expect.arrayContaining(Object.keys(tally)))
  expect(tally["200"] ?? 0).toBeGreaterThan(0)
  expect(tally["429 rate_limited"] ?? 0).toBeGreaterThan(0)
  expect(receiver.to("/pinged").length - receivedBefore).toBe(tally["200"] ?? 0)
  expect((await audited()) - auditedBefore).toBe(tally["200"] ?? 0)
})
