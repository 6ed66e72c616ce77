/**
 * Postgres is unavailable while deliveries are in flight. An outcome is kept until it can be written, so nothing is sent
 * twice because of it, and failed reads are repeated. Reliability F6, F7.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { Proxy } from "../support/proxy.ts"
import { until } from "../support/receiver.ts"
import { long, Rig, report, sound } from "./Rig.ts"

const rig = new Rig()
let proxy: Proxy

beforeAll(() =>
  rig.open({}, undefined, async (url) => {
    proxy = new Proxy(url)
    await proxy.open()
    return proxy.url
  })
)
afterAll(async () => {
  await rig.close()
  await proxy.cut()
})

describe("an outage of Postgres", () => {
  test("unreachable and back, while attempts are in flight: nothing is lost", async () => {
    let inFlight = 0
    for (const path of rig.paths)
      rig.answer(
        path,
        () => {
          inFlight++
          setTimeout(() => inFlight--, 500)
          return 200
        },
        () => 500
      )
    const feeding = rig.feed(long ? 300 : 40, 50)
    for (let cut = 0; cut < (long ? 10 : 2); cut++) {
      if (long) await Bun.sleep(1_200)
      else await until("attempts in flight", () => inFlight > 0)
      await proxy.cut()
      await Bun.sleep(1_500)
      await proxy.open()
    }
    await feeding
    await rig.settle()
    const history = await rig.history()
    report("F6 Postgres cut off", history)
    expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size, repeated: 0 })
  })

  test("connections closed repeatedly, in the middle of statements: nothing is lost", async () => {
    const feeding = rig.feed(long ? 300 : 40, 50)
    for (let round = 0; round < (long ? 40 : 5); round++) {
      await Bun.sleep(400)
      await rig.app.sql(`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'custody-%'`)
    }
    await feeding
    await rig.settle()
    const history = await rig.history()
    report("F6 connections ended", history)
    expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size, repeated: 0 })
  })

  if (long)
    test("unresponsive for half a minute: nothing is lost", async () => {
      const feeding = rig.feed(100, 50)
      await Bun.sleep(1_000)
      proxy.silence()
      await Bun.sleep(30_000)
      await proxy.cut()
      await proxy.open()
      await feeding
      await rig.settle()
      const history = await rig.history()
      report("F7 Postgres silent", history)
      expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size, repeated: 0 })
    })
})
