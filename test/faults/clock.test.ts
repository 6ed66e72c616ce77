/**
 * Wrong clocks, and clock changes while everything runs: of one process of the service beside another with a correct
 * clock, and of Postgres. Nothing is lost or sent twice, no webhook is disabled early, lists keep their order,
 * and the grace of a rotated secret ends once. Temporal keeps the real time: its server cannot be given another clock.
 * Needs libfaketime. Reliability F22.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { workflows } from "../../workflows/contract.ts"
import type { Answer, Process } from "../support/app.ts"
import { Clock, canShift } from "../support/clock.ts"
import { webhookOf } from "../support/deliveryFixtures.ts"
import { PostgresServer } from "../support/postgres.ts"
import { until } from "../support/receiver.ts"
import { address } from "../support/records.ts"
import { operator } from "../support/temporal.ts"
import { long, Rig, report, sound } from "./Rig.ts"

const HOUR = 3_600,
  MINUTE = 60
const FED = 20

if (long && !canShift) console.log("F22 is skipped: libfaketime is not installed (Debian: apt-get install libfaketime)")

describe.skipIf(!long || !canShift)("clock changes while everything runs", () => {
  const server = new PostgresServer()
  const rig = new Rig()
  let service: Clock, database: Clock, right: Process
  let failing = ""
  /** The number of signatures by secrets in each request of the rotated webhook, in order. */
  const signatures: Array<number> = []
  /** True while the processes of Postgres disagree on the time: each reads it when its own second is over. */
  let setting = false

  beforeAll(async () => {
    service = new Clock()
    database = new Clock()
    // One endpoint fails for minutes, and its deliveries must end meanwhile: nothing is held.
    await rig.open({ ...service.env, RATE_LIMIT: "20/1s burst 60", WEBHOOK_HOLD: "off" }, undefined, async () => {
      await server.start(database.env)
      rig.app.databaseUrl = server.url
      return server.url
    })
    // Another machine with a correct clock; the app's environment is the shifted process's.
    right = await rig.app.start(["worker", "dispatcher"], { DATABASE_URL: server.url, LD_PRELOAD: "" })
    for (const path of rig.paths)
      rig.answer(path, ({ headers, path: to }) => {
        if (to === "/one" && !setting)
          signatures.push((headers["webhook-signature"] ?? "").split(" ").filter((one) => one.startsWith("v1,")).length)
        // Retries are under way whenever a clock is set.
        return headers["x-service-attempt"] === "1" && Math.random() < 0.3 ? 500 : 200
      })
    rig.receiver.on("/failing", () => new Response("", { status: 500 }))
    failing = (await webhookOf(rig.app, rig.key, 0, rig.receiver.url("/failing"), { eventKinds: ["deposit_address.created"] })).id
  })
  afterAll(async () => {
    await rig.close()
    await server.close()
    service.remove()
    database.remove()
  })

  /** How far the service and Postgres are ahead in seconds, by their own output. */
  const ahead = async () => {
    const now = Date.now()
    const [row] = await rig.app.sql("SELECT extract(epoch FROM clock_timestamp())::float8 AS at")
    const sent = rig.receiver.requests
      .filter(({ at }) => at > now - 2_000)
      .map(({ headers, at }) => Number(headers["webhook-timestamp"]) - at / 1_000)
    return { database: Number(row?.["at"]) - now / 1_000, sent }
  }
  const about = (seconds: number, wanted: number) => Math.abs(seconds - wanted) < 30

  /** Feeds while the clocks are as given, and waits for the end of every delivery. */
  const live = async (seconds: { readonly service: number; readonly database: number }) => {
    const half = rig.feed(FED, 50)
    await Bun.sleep(300)
    setting = true
    service.shift(seconds.service)
    database.shift(seconds.database)
    await half
    await Bun.sleep(2_500)
    setting = false
    await until("the clock of Postgres", async () => about((await ahead()).database, seconds.database))
    await until("a request that is signed by the shifted clock", async () => {
      await rig.feed(5)
      return (await ahead()).sent.some((one) => about(one, seconds.service))
    })
    await rig.settle()
  }

  /** Pages through a list, in order, newest first, without a repeated row; something happens between the pages. */
  const ordered = async (target: string, by: string, between: () => Promise<void> = async () => {}) => {
    const rows: Array<Answer["json"]> = []
    for (let cursor: string | null = null; ; await between()) {
      const { json } = await rig.app.get(`${target}?limit=50${cursor === null ? "" : `&cursor=${cursor}`}`, rig.key)
      rows.push(...json.data)
      cursor = json.pagination.nextCursor
      if (cursor === null) break
    }
    const keys = rows.map((row) => `${row[by]} ${row.id}`)
    expect(keys).toEqual([...new Set(keys)].sort().reverse())
    return rows.length
  }
  const events = (between?: () => Promise<void>) => ordered("/v1/webhook-events", "occurredAt", between)
  const deliveries = (between?: () => Promise<void>) => ordered(`/v1/webhooks/${rig.idOf("/one")}/deliveries`, "createdAt", between)
  const stored = async () => {
    const [row] = await rig.app.sql(
      "SELECT (SELECT count(*) FROM events)::int AS events, (SELECT count(*) FROM deliveries WHERE webhook_id = $1)::int AS deliveries",
      [rig.idOf("/one")]
    )
    return { events: Number(row?.["events"]), deliveries: Number(row?.["deliveries"]) }
  }

  const stateOf = async (id: string) => (await rig.app.get(`/v1/webhooks/${id}`, rig.key)).json
  let addresses = 0
  /** Two more failing deliveries. */
  const fail = async () => {
    const before = (await stateOf(failing)).health.consecutiveFailures
    await rig.app.feed([1, 2].map(() => address("vault_0", `0x${String(++addresses).padStart(40, "0")}`)))
    await until("two more failures", async () => (await stateOf(failing)).health.consecutiveFailures >= before + 2)
  }
  /** Moves back the start of the streak of failures. */
  const failingFor = (interval: string) =>
    rig.app.sql("UPDATE webhook_health SET failing_since = clock_timestamp() - $2::interval WHERE webhook_id = $1", [failing, interval])

  const check = async (fault: string) => {
    const history = await rig.history()
    const [listed, { status }] = [{ events: await events(), deliveries: await deliveries() }, await stateOf(failing)]
    report(`F22 ${fault}`, { ...history, listed, failing: status })
    expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size, repeated: 0 })
    expect(listed).toEqual(await stored())
    expect(status).toBe("ACTIVE")
  }

  /** Reads at half of the key's rate limit for as long as the work takes; returns the responses. */
  const reading = async (work: () => Promise<void>) => {
    const { secret } = await rig.app.key("user_a")
    const statuses = new Map<number, number>()
    let over = false
    const reads = (async () => {
      for (; !over; await Bun.sleep(100)) {
        const { status } = await rig.app.get("/v1/vaults", secret)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    })()
    await work()
    over = true
    await reads
    return [...statuses.keys()]
  }

  test("nothing is lost while one process's clock jumps by up to 25 hours", async () => {
    await rig.feed(20)
    await fail()
    // Postgres decides the length of a streak, whatever a worker's clock shows: half an hour is left.
    await failingFor("119 hours 30 minutes")
    const statuses = await reading(async () => {
      for (const seconds of [HOUR, -HOUR, 25 * HOUR, 25 * HOUR - 10 * MINUTE, 0]) {
        await live({ service: seconds, database: 0 })
        if (seconds >= HOUR) await fail()
        await check(`a process ahead by ${seconds} s`)
      }
    })
    expect(statuses).toEqual([200])
  }, 400_000)

  test("lists paged through while the service's clock changes contain every row once", async () => {
    let shifted = false
    const swing = async () => {
      shifted = !shifted
      service.shift(shifted ? -10 * MINUTE : HOUR)
      await Bun.sleep(1_500)
    }
    const listed = { events: await events(swing), deliveries: await deliveries(swing) }
    expect(listed).toEqual(await stored())
    service.shift(0)
    await Bun.sleep(1_500)
  })

  test("nothing is lost while Postgres' clock jumps, and a rotation's grace ends once", async () => {
    service.shift(HOUR)
    await Bun.sleep(1_500)
    const rotated = await rig.app.request("POST", `/v1/webhooks/${rig.idOf("/one")}/rotate-secret`, { key: rig.key })
    expect(rotated.status).toBe(200)
    // The grace is 24 hours by the clock that ends it.
    expect(Math.abs(Date.parse(rotated.json.previousSecretExpiresAt) - Date.now() - 24 * HOUR * 1_000)).toBeLessThan(MINUTE * 1_000)
    signatures.length = 0
    await failingFor("90 hours")
    for (const seconds of [-HOUR, HOUR, HOUR - 10 * MINUTE, 25 * HOUR, 25 * HOUR - 10 * MINUTE]) {
      await live({ service: seconds === HOUR ? 0 : HOUR, database: seconds })
      if (seconds >= HOUR) await fail()
      await check(`Postgres ahead by ${seconds} s`)
    }
    report(
      "F22 a rotation's grace",
      Object.fromEntries(
        Map.groupBy(signatures, (count) => `${count} signatures`)
          .entries()
          .map(([name, { length }]) => [name, length])
      )
    )
    expect(new Set(signatures)).toEqual(new Set([2, 1]))
    expect(signatures).toEqual([...signatures].sort().reverse())
    // It is disabled when its 120 hours are over, so it is no accident that it was not disabled before.
    database.shift(31 * HOUR)
    await rig.app.feed([1, 2].map(() => address("vault_0", `0x${String(++addresses).padStart(40, "0")}`)))
    await until("the disable", async () => (await stateOf(failing)).status === "DISABLED")
  }, 400_000)

  test("with a clock forty days ahead, retention drops no day that the log shows", async () => {
    // Makes retention use the wrong clock.
    await right.end()
    const { client, close } = await operator()
    for (const [ours, theirs] of [
      [40, 0],
      [0, 40]
    ] as const) {
      service.shift(ours * 24 * HOUR)
      database.shift(theirs * 24 * HOUR)
      await Bun.sleep(2_500)
      const workflowId = `retain-${rig.app.env["TEMPORAL_TASK_QUEUE"]}-${ours}`
      const { partitionsDropped } = await client.workflow.execute(workflows.retain, {
        workflowId,
        taskQueue: rig.app.env["TEMPORAL_TASK_QUEUE"] ?? "",
        args: []
      })
      report("F22 forty days ahead", { service: ours, postgres: theirs, partitionsDropped })
      expect(partitionsDropped).toBe(0)
    }
    await close()
    service.shift(0)
    database.shift(0)
    await Bun.sleep(1_500)
    expect(await rig.history()).toMatchObject({ ...sound, events: rig.acknowledged.size, repeated: 0 })
  })
})
