/**
 * The limit of attempts in flight at one endpoint over several worker processes, while one is killed and another joins.
 * Decision D-52.
 */
import { expect, test } from "bun:test"
import { useApp } from "../support/app.ts"
import { feedOrganization, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { report } from "./Rig.ts"

const receiver = useReceiver()
const app = useApp(["api", "dispatcher"], () => receiverEnv(receiver))
const EVENTS = 300
/** The limit, and that while processes come and go. */
const MOST = 8,
  MOST_IN_CHANGE = 10
/** The duration of a response, and how long the others need at most to share the places of a process that came or went, in ms. */
const TAKES = 1_000,
  CHANGE_MS = 8_000

test(`three workers keep to ${MOST} requests in flight at an endpoint, ${MOST_IN_CHANGE} while they change`, async () => {
  /** When each request arrived and was answered. */
  const times: Array<{ readonly at: number; readonly answeredAt: number }> = []
  receiver.on("/slow", async () => {
    const at = performance.now()
    times.push({ at, answeredAt: at + TAKES })
    await Bun.sleep(TAKES)
    return new Response("")
  })
  const [one] = await Promise.all([1, 2, 3].map(() => app.start(["worker"])))
  const key = await feedOrganization(app, 1)
  const { id } = await webhookOf(app, key, 0, receiver.url("/slow"))
  await app.feed(Array.from({ length: EVENTS }, (_, number) => transaction("vault_0", number + 1)))
  /** When processes came or went. */
  const changes: Array<number> = []
  const arrived = (count: number) => until(`${count} requests`, () => times.length >= count, 120)
  // Of the workers that began at once, each knows of the others when the first answers have come.
  await arrived(100)
  changes.push(performance.now())
  await one?.end("SIGKILL")
  await arrived(180)
  changes.push(performance.now())
  await app.start(["worker"])
  changes.push(performance.now())
  const delivered = async () =>
    Number(
      (await app.sql("SELECT count(*)::int AS count FROM deliveries WHERE webhook_id = $1 AND status = 'DELIVERED'", [id]))[0]?.["count"]
    )
  await until("all deliveries", async () => (await delivered()) === EVENTS, 120)

  const inFlight = times.map(({ at }) => ({ at, count: times.filter((other) => other.at <= at && other.answeredAt > at).length }))
  const changing = (at: number) => changes.some((change) => at > change - 100 && at < change + CHANGE_MS)
  const most = (of: ReadonlyArray<{ readonly count: number }>) => Math.max(...of.map(({ count }) => count))
  const [steady, changed] = [inFlight.filter(({ at }) => !changing(at)), inFlight.filter(({ at }) => changing(at))]
  const seconds = ((times.at(-1)?.at ?? 0) - (times[0]?.at ?? 0)) / 1_000
  report("attempts in flight", { steady: most(steady), changing: most(changed), requests: times.length, seconds })
  expect(most(steady)).toBeLessThanOrEqual(MOST)
  expect(most(changed)).toBeLessThanOrEqual(MOST_IN_CHANGE)
  // The limit is used, or it would be no feat to keep it.
  expect(seconds).toBeLessThan(2 * (EVENTS / MOST) * (TAKES / 1_000))
  // Only requests of the killed worker are repeated.
  expect(times.length).toBeLessThanOrEqual(EVENTS + MOST)
}, 300_000)
