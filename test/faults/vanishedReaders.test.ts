/** Readers of streams that vanish without closing their connections do not keep the places of their key. C-1. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { App } from "../support/app.ts"
import { DistantClient, missing, NEAR } from "../support/distantClient.ts"
import { codeOf } from "../support/problem.ts"
import { until } from "../support/receiver.ts"
import { smallest } from "../support/records.ts"

const reason = missing()
const app = new App()
const client = new DistantClient()
const STREAM = "/v1/event-feed/stream?from=now"
let key = ""

beforeAll(async () => {
  if (reason !== undefined) return
  client.open()
  await app.open(["api"], { HOST: NEAR })
  await app.feed(smallest(), { "x-record-events": "none" })
  key = (await app.key("user_a")).secret
})
afterAll(async () => {
  if (reason !== undefined) return
  client.close()
  await app.close()
})

test.skipIf(reason !== undefined)(
  `five idle streams whose clients vanish are closed within a minute${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  async () => {
    await client.hold(`${app.main?.baseUrl}${STREAM}`, { authorization: `Bearer ${key}` }, 5)
    const refused = await app.get(STREAM, key)
    expect([codeOf(refused), refused.headers.get("retry-after")]).toEqual(["too_many_streams", "5"])
    client.vanish()
    const vanishedAt = performance.now()
    const open = async () => {
      const metrics = await (await fetch(`${app.main?.platformUrl}/metrics`)).text()
      return Number(/^custody_feed_streams(?:\{[^}]*\})? (\d+)$/m.exec(metrics)?.[1])
    }
    await until("the end of the streams", async () => (await open()) === 0, 90)
    expect(performance.now() - vanishedAt).toBeLessThan(60_000)
    const accepted = await app.request("HEAD", STREAM, { key })
    expect(accepted.status).toBe(200)
  }
)
