/**
 * Temporal is unavailable, or has lost its state. Reads and management continue, events are recorded and wait; when it is
 * back everything is delivered, including what it lost. Reliability F9, F10. Architecture, What must hold 1, 6.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { until } from "../support/receiver.ts"
import { TemporalServer } from "../support/temporal.ts"
import { long, Rig, report, sound } from "./Rig.ts"

const server = new TemporalServer()
const rig = new Rig()

beforeAll(async () => {
  await server.start()
  await rig.open({ TEMPORAL_ADDRESS: server.address })
})
afterAll(async () => {
  await rig.close()
  await server.close()
})

const readiness = async () =>
  (await fetch(`${rig.app.main?.platformUrl}/health/ready`)).json() as Promise<{ dependencies: { temporal: string } }>

describe("an outage of Temporal", () => {
  test("events wait, the API continues, and everything is delivered when it is back", async () => {
    await rig.feed(20)
    await rig.settle()
    await server.kill("kept")
    await rig.feed(30)
    expect((await rig.app.get("/v1/vaults", rig.key)).status).toBe(200)
    const { id } = (await rig.app.get("/v1/webhooks", rig.key)).json.data[0]
    expect((await rig.app.request("PATCH", `/v1/webhooks/${id}`, { key: rig.key, body: { description: "while away" } })).status).toBe(200)
    expect((await readiness()).dependencies.temporal).toContain("Temporal is unavailable")
    // A dispatcher tries again every second.
    await Bun.sleep(long ? 300_000 : 1_500)
    const waiting = await rig.app.walk("/v1/webhook-events?kind=transaction.confirmed", rig.key, 500)
    expect(waiting.filter(({ dispatchedAt }) => dispatchedAt === null)).toHaveLength(30)
    const before = rig.receiver.requests.length
    await server.start()
    const back = Date.now()
    await until("the first delivery", () => rig.receiver.requests.length > before)
    const firstAfter = (Date.now() - back) / 1_000
    await rig.settle()
    const history = await rig.history()
    report("F9 Temporal away", { firstDeliverySeconds: firstAfter, ...history })
    expect(firstAfter).toBeLessThan(long ? 20 : 60)
    expect(history).toMatchObject({ ...sound, events: 50, repeated: 0 })
  }, 600_000)

  test("waiting retries continue after Temporal has lost all its state", async () => {
    let open = false
    for (const path of rig.paths) rig.answer(path, () => (open ? 200 : 503))
    await rig.feed(20)
    await until("a refused attempt of each", async () => {
      const [row] = await rig.app.sql("SELECT count(*)::int AS count FROM deliveries WHERE status = 'RETRYING'")
      return row?.["count"] === 30
    })
    await server.kill("lost")
    await rig.feed(10)
    open = true
    await server.start()
    const back = Date.now()
    // A dispatcher checks when it starts; a running one checks every half minute what has been due for a minute.
    if (!long) {
      await rig.app.main?.end("SIGKILL")
      await rig.restart()
    }
    await rig.settle(180)
    const history = await rig.history()
    report("F10 Temporal lost its state", { seconds: (Date.now() - back) / 1_000, ...history })
    expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size, repeated: 0 })
  }, 600_000)
})
