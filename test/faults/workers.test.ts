/**
 * Several processes that start and stop: no delivery is repeated however many dispatchers there are, none is interrupted
 * by a graceful stop, and another worker repeats a killed worker's attempt within seconds. Reliability F2, F3, F11.
 */
import { describe, expect, test } from "bun:test"
import type { Process } from "../support/app.ts"
import { until } from "../support/receiver.ts"
import { long, report, sound, useRig } from "./Rig.ts"

const rig = useRig({}, ["api"])
const SENDING = ["worker", "dispatcher"] as const

describe("several processes", () => {
  test("three workers and three dispatchers deliver everything once", async () => {
    const processes = await Promise.all([1, 2, 3].map(() => rig.app.start(SENDING)))
    await rig.feed(long ? 500 : 60)
    await rig.settle()
    const history = await rig.history()
    report("F2 three dispatchers", history)
    await Promise.all(processes.map((one) => one.end()))
    expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size, repeated: 0 })
  })

  test("a stop finishes attempts in flight: nothing is interrupted or repeated", async () => {
    for (const path of rig.paths)
      rig.answer(
        path,
        () => 200,
        () => 1_500
      )
    const interrupted = async () =>
      (await rig.app.sql("SELECT count(*)::int AS count FROM delivery_attempts WHERE result = 'interrupted'"))[0]?.["count"]
    const before = await interrupted()
    let current: Process = await rig.app.start(SENDING)
    const feeding = rig.feed(long ? 200 : 20, 150)
    for (let restart = 0; restart < (long ? 20 : 2); restart++) {
      await Bun.sleep(1_000)
      const next = rig.app.start(SENDING)
      const begun = Date.now()
      expect(await current.end()).toBe(0)
      expect(Date.now() - begun).toBeLessThan(20_000)
      current = await next
    }
    await feeding
    await rig.settle()
    const history = await rig.history()
    report("F11 rolling restarts", history)
    await current.end()
    expect(await interrupted()).toBe(before)
    expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size, repeated: 0 })
  })

  test("an attempt whose sender is killed is repeated by another worker within seconds", async () => {
    for (const path of rig.paths) rig.answer(path, () => 200)
    // Only one of them runs when the request is sent.
    const first = await rig.app.start(SENDING)
    let held = true
    rig.answer(
      "/three",
      () => 200,
      () => (held ? 8_000 : 4_000)
    )
    const sent = rig.receiver.to("/three").length
    await rig.feed(2)
    await until("the request", () => rig.receiver.to("/three").length === sent + 1)
    held = false
    await first.end("SIGKILL")
    const second = await rig.app.start(SENDING)
    const started = Date.now()
    await until("the next attempt", () => rig.receiver.to("/three").length === sent + 2)
    const seconds = (Date.now() - started) / 1_000
    const [one, two] = rig.receiver.to("/three").slice(sent)
    // It is not new, whether its own workflow or the webhook's queue sends it.
    const [row] = await rig.app.sql("SELECT status FROM deliveries WHERE id = $1", [one?.headers["x-service-delivery-id"]])
    expect(["RETRYING", "HELD"]).toContain(String(row?.["status"]))
    expect(two?.headers).toMatchObject({
      "webhook-id": one?.headers["webhook-id"] ?? "",
      "x-service-attempt": "2",
      "x-service-delivery-id": one?.headers["x-service-delivery-id"] ?? ""
    })
    await rig.settle()
    const rows = await rig.app.sql("SELECT number, result FROM delivery_attempts WHERE delivery_id = $1 ORDER BY number", [
      one?.headers["x-service-delivery-id"]
    ])
    expect(rows).toEqual([
      { number: 1, result: "interrupted" },
      { number: 2, result: "2xx" }
    ])
    report("F3 webhookClient killed", { nextAttemptSeconds: seconds })
    expect(seconds).toBeLessThan(15)
    expect(await rig.history()).toMatchObject(sound)
    await second.end()
  })
})
