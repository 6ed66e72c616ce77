/** The bound of attempts in flight at one endpoint over several workers, which join, stop and are killed. Decision D-52. */
import { afterAll, describe, expect, test } from "bun:test"
import { fairShare } from "../../src/sending/admission/EndpointPermits.ts"
import { type Process, useApp } from "../support/app.ts"
import { feedOrganization, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"

const receiver = useReceiver()
/** Every delivery has its own workflow, so all workers make attempts at the same endpoint. */
const app = useApp(["api", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_FIRST_ATTEMPTS: "each", WEBHOOK_HOLD: "off" }))
const MOST = 8
/** The duration of a response, in ms: shorter than a killed worker's permits are kept. */
const TAKES = 2_500
/** Deliveries that wait at least: more than the attempts of all workers. */
const WAITING = 48

let workers: Array<Process> = []
afterAll(() => Promise.all(workers.map((one) => one.end("SIGKILL"))))

describe("Decision D-52: attempts in flight at one endpoint", () => {
  test("are at most 8 with three workers, also when one is killed, one stops and another joins, and 8 again within seconds", async () => {
    let inFlight = 0,
      most = 0,
      takes = TAKES
    receiver.on("/slow", async () => {
      most = Math.max(most, ++inFlight)
      await Bun.sleep(takes)
      inFlight--
      return new Response("")
    })
    const full = (what: string) => until(`8 in flight ${what}`, () => inFlight === MOST)
    const begin = async () => {
      const started = await app.start(["worker"])
      workers.push(started)
      return started
    }
    const [one, two] = await Promise.all([begin(), begin(), begin()])
    const key = await feedOrganization(app, 1)
    const { id } = await webhookOf(app, key, 0, receiver.url("/slow"))
    let fed = 0,
      feeding = true
    // However long the machine takes for what follows, deliveries wait until then, and few are left at the end.
    const feed = async () => {
      for (; feeding; await Bun.sleep(100)) {
        const more = WAITING - (fed - receiver.to("/slow").length)
        if (more < WAITING / 2) continue
        await app.feed(Array.from({ length: more }, (_, index) => transaction("vault_0", 1_000 + fed + index)))
        fed += more
      }
    }
    const fedAll = feed()
    await full("with three workers")
    const holders = async () => {
      const [row] = await app.sql("SELECT held FROM endpoint_permits WHERE webhook_id = $1", [id])
      return Object.values(row?.["held"] ?? {}).map(Number)
    }
    await until("permits at every worker", async () => (await holders()).length === 3)
    expect((await holders()).reduce((sum, held) => sum + held, 0)).toBeLessThanOrEqual(MOST)

    await one.end("SIGKILL")
    await until("the killed worker's permits", async () => (await holders()).length === 2)
    await full("after a kill")
    await begin()
    await until("permits at the worker that joined", async () => (await holders()).length === 3)
    await full("after one joined")
    await two.end()
    expect((await holders()).length).toBe(2)
    await full("after one stopped")
    expect(most).toBe(MOST)
    const survivors = workers.filter(({ child }) => child.exitCode === null && child.signalCode === null)
    await Promise.all(survivors.slice(1).map((worker) => worker.end()))
    // The last one needs no permits.
    await until("the last worker to be alone", async () => (await app.sql("SELECT 1 FROM processes WHERE alone")).length === 1)
    await full("with one worker")
    feeding = false
    await fedAll
    takes = 100
    const delivered = async () =>
      (await app.sql("SELECT count(*)::int AS n FROM deliveries WHERE webhook_id = $1 AND status = 'DELIVERED'", [id]))[0]?.["n"]
    // Those of the workers that ended come last.
    await until("all deliveries", async () => (await delivered()) === fed, 150)
    expect(most).toBe(MOST)
    workers = survivors.slice(0, 1)
  })

  test("WEBHOOK_MAX_IN_FLIGHT outside of 1 to 1,000 stops the start with a message", async () => {
    for (const value of ["0", "1001", "some"])
      await expect(app.start(["worker"], { WEBHOOK_MAX_IN_FLIGHT: value })).rejects.toThrow(
        `WEBHOOK_MAX_IN_FLIGHT: read “${value}”, expected a whole number from 1 to 1000`
      )
  })

  test("are shared evenly among the workers that want them, and all are assigned even if there are more workers than permits", () => {
    const workerIds = Array.from({ length: 20 }, (_, index) => `worker-${index}`)
    const shares = (webhookId: string, count: number) => {
      const ids = workerIds.slice(0, count)
      const held = Object.fromEntries(ids.map((id) => [id, 1]))
      return ids.map((id) => fairShare(id, { webhookId, held, wanted: {} }, MOST))
    }
    for (const count of [1, 2, 3, 8, 20])
      for (const webhookId of ["whs_a", "whs_b", "whs_c"]) {
        const all = shares(webhookId, count)
        expect(all.reduce((sum, share) => sum + share, 0)).toBe(MOST)
        expect(Math.max(...all) - Math.min(...all)).toBeLessThanOrEqual(1)
      }
    expect(shares("whs_a", 20)).not.toEqual(shares("whs_b", 20))
  })
})
