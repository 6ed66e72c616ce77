/**
 * The egress proxy is away for long: a delivery is attempted again at least twice a minute, so its workflow must continue as new
 * before Temporal ends it for the length of its history. Retries on request stand for hours of attempts. C-8.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { App } from "../support/app.ts"
import { TrickyProxy } from "../support/ConnectProxy.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { operator, TemporalServer } from "../support/temporal.ts"
import { report } from "./Rig.ts"

const receiver = useReceiver()
const app = new App()
/** It suggests a new run after this many events, so that hours pass in seconds; the usual number is 4,096. */
const temporal = new TemporalServer({ "limit.historyCount.suggestContinueAsNew": 400 })
/** Most events of a history, whatever decides when a new run begins, and how many seconds that many may take here. */
const MOST = 10_000,
  SECONDS = 180
const proxy = new TrickyProxy()

beforeAll(async () => {
  await temporal.start()
  // Its port is known, and nothing listens there.
  await proxy.open()
  await proxy.close()
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    TEMPORAL_ADDRESS: temporal.address,
    WEBHOOK_PROXY_URL: `http://127.0.0.1:${proxy.port}`,
    WEBHOOK_RETRY_SCHEDULE: "0s,1s"
  })
})
afterAll(async () => {
  await app.close()
  await proxy.close()
  await temporal.close()
})

test("a delivery whose proxy stays away continues as a new run and is delivered later", async () => {
  const { client, close } = await operator(temporal.address)
  try {
    const key = await feedOrganization(app, 1)
    const { id: webhookId } = await webhookOf(app, key, 0, receiver.url("/behind"))
    await feedTransactions(app, [0])
    const { id } = await deliveryWhen(app, key, webhookId, ({ attempts }) => attempts.length > 0)
    const latest = async () => {
      const [row] = await app.sql("SELECT max(number) AS number FROM delivery_attempts WHERE delivery_id = $1 AND result = 'proxy_error'", [
        id
      ])
      return Number(row?.["number"])
    }
    const run = async () => {
      const { historyLength, runId } = await client.workflow.getHandle(id).describe()
      return { historyLength, runId }
    }
    const first = await run()
    const startedAt = performance.now()
    let longest = 0,
      current = first
    for (let attempt = await latest(); current.runId === first.runId && longest < MOST; attempt = await latest()) {
      if (performance.now() - startedAt > SECONDS * 1_000) break
      await until("the next attempt", async () => {
        // What is requested while an attempt is in flight does not have to shorten the wait after it.
        await client.workflow.getHandle(id).signal("retryNow")
        return (await latest()) > attempt
      })
      current = await run()
      if (current.runId === first.runId) longest = Math.max(longest, current.historyLength)
    }
    report("the proxy is away", { attempts: await latest(), events: longest, seconds: (performance.now() - startedAt) / 1_000 })
    expect({ continued: current.runId !== first.runId, events: longest }).toEqual({ continued: true, events: longest })
    // It has used up nothing, and the new run sends it.
    await proxy.open()
    await client.workflow.getHandle(id).signal("retryNow")
    const delivered = await deliveryWhen(app, key, webhookId, ({ status }) => status === "DELIVERED")
    expect(delivered.attempts.at(-1).result).toBe("2xx")
    expect(receiver.to("/behind")).toHaveLength(1)
  } finally {
    await close()
  }
})
