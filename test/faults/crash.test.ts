/**
 * Postgres crashes under load; and all servers and processes are killed at once and restarted in any order. Requests get
 * 503 while Postgres is down and succeed as soon as it is back; nothing that was acknowledged is lost.
 * Reliability F5, F6.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Answer, Process } from "../support/app.ts"
import { PostgresServer } from "../support/postgres.ts"
import { until } from "../support/receiver.ts"
import { TemporalServer } from "../support/temporal.ts"
import { long, Rig, randoms, report, sound } from "./Rig.ts"

const postgres = new PostgresServer()
const temporal = new TemporalServer()
const rig = new Rig()
/** The other processes, without the API. */
let others: Array<Process> = []
const random = randoms()

const startOthers = [
  async () => void others.push(await rig.app.start(["worker", "dispatcher"], { DATABASE_URL: postgres.url })),
  async () => void others.push(await rig.app.start(["worker"], { DATABASE_URL: postgres.url }))
]

beforeAll(async () => {
  // The short run does not restart the Temporal server, and uses the one of all tests.
  await Promise.all([postgres.start(), long ? temporal.start() : undefined])
  await rig.open(long ? { TEMPORAL_ADDRESS: temporal.address } : {}, ["api"], async () => {
    rig.app.databaseUrl = postgres.url
    return postgres.url
  })
  await Promise.all((long ? startOthers : startOthers.slice(0, 1)).map((start) => start()))
  // One in ten is refused at first, so that retries are in progress, too.
  for (const path of rig.paths) rig.answer(path, ({ headers }) => (headers["x-service-attempt"] === "1" && random() < 0.1 ? 500 : 200))
})
afterAll(async () => {
  await rig.close()
  await Promise.all([postgres.close(), temporal.close()])
})

interface Seen {
  readonly answer: Answer
  readonly begunAt: number
  readonly tookMs: number
}

/** Requests of every kind by a few sequential clients, until `over`. */
const load = (over: () => boolean) => {
  const seen: Array<Seen> = []
  const webhook = `/v1/webhooks/${rig.idOf("/one")}`
  const asks = [
    () => rig.app.get("/v1/vaults", rig.key),
    () => rig.app.get("/v1/vaults/vault_0/transactions", rig.key),
    () => rig.app.get(`${webhook}/deliveries`, rig.key),
    () => rig.app.request("PATCH", webhook, { key: rig.key, body: { description: "under load" } })
  ]
  const clients = asks.map(async (ask) => {
    for (; !over(); await Bun.sleep(20)) {
      const begunAt = performance.now()
      const answer = await ask()
      seen.push({ answer, begunAt, tookMs: performance.now() - begunAt })
    }
  })
  return { seen, done: Promise.all(clients) }
}

describe("a crash of Postgres", () => {
  test("under load: 503 in the envelope while it is down, and recovery within seconds", async () => {
    // Other work on the machine takes its time; the long run has the machine to itself.
    const [refusal, recovery] = long ? [2_000, 5_000] : [8_000, 20_000]
    const back: Array<number> = []
    const refusals: Array<number> = []
    for (let round = 0; round < (long ? 10 : 1); round++) {
      let over = false
      const feeding = rig.feed(20, 100)
      const { done, seen } = load(() => over)
      let returned = 0
      try {
        await Bun.sleep(500)
        await postgres.crash()
        const gone = performance.now()
        await Bun.sleep(1_000)
        await postgres.start()
        returned = performance.now()
        const well = await until("a read that is answered", () =>
          seen.find(({ answer, begunAt }) => answer.status === 200 && begunAt > gone)
        )
        back.push(Math.max(0, well.begunAt + well.tookMs - returned))
        await feeding
      } finally {
        over = true
      }
      await done
      expect(seen.filter(({ answer: { status } }) => status !== 200 && status !== 503)).toEqual([])
      const refused = seen.filter(({ answer: { status } }) => status === 503)
      expect(refused.length).toBeGreaterThan(0)
      for (const { answer } of refused) {
        expect(answer.headers.get("content-type")).toBe("application/problem+json")
        expect([answer.json.code, answer.headers.get("retry-after")]).toEqual(["service_unavailable", "1"])
      }
      refusals.push(...refused.map(({ tookMs }) => tookMs))
      // From here on no request fails.
      expect(seen.filter(({ answer, begunAt }) => answer.status === 503 && begunAt > returned + recovery)).toEqual([])
    }
    await rig.settle()
    const history = await rig.history()
    const most = { refusedMs: Math.round(Math.max(...refusals)), backMs: Math.round(Math.max(...back)) }
    report("F6 Postgres crashed under load", { refused: refusals.length, most, ...history })
    expect(most.refusedMs).toBeLessThan(refusal)
    expect(most.backMs).toBeLessThan(recovery)
    expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size, repeated: 0 })
  })
})

describe.skipIf(!long)("all processes and servers killed", () => {
  test("everything killed again and again and restarted in any order: nothing is lost", async () => {
    const begun = Date.now()
    const before = (await rig.history()).repeated
    let deaths = 0
    for (; Date.now() - begun < 90_000; deaths++) {
      const feeding = rig.feed(20, 100)
      await Bun.sleep(200 + random() * 800)
      // All are signaled before the first one is awaited.
      await Promise.all([postgres.kill(), temporal.kill("kept"), ...[rig.app.main, ...others].map((one) => one?.end("SIGKILL"))])
      others = []
      const starts = [() => postgres.start(), () => temporal.start(), () => rig.restart({}, ["api"]), ...startOthers]
      const order = starts.map((start) => ({ start, at: random() })).sort((a, b) => a.at - b.at)
      await Promise.all(order.map(({ at, start }) => Bun.sleep(at * 1_000).then<unknown>(start)))
      await feeding
    }
    await rig.settle(300)
    const history = await rig.history()
    report("F5 everything died", { deaths, seconds: Math.round((Date.now() - begun) / 1_000), ...history })
    expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size })
    // At most the attempts in flight: 8 for each webhook and kill.
    expect(history.repeated - before).toBeLessThanOrEqual(deaths * 8 * rig.paths.length)
  }, 900_000)
})
