/**
 * A backlog at a slow but working endpoint: the endpoint is never idle, it gets the oldest due first, and all of it in little
 * more than the minimum time. Reliability F26.
 */
import { expect, test } from "bun:test"
import { useApp } from "../support/app.ts"
import { feedOrganization, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { long, report } from "./Rig.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => receiverEnv(receiver))
const EVENTS = long ? 1_000 : 72
/** The duration of a response, in seconds. */
const TAKES = 2
/** Attempts in flight. */
const PER_WEBHOOK = 8
/** The minimum duration of all of them, in seconds. */
const LEAST = (EVENTS * TAKES) / PER_WEBHOOK
/** Events of one request of the feed. */
const BATCH = 100
/** First attempts that share a workflow. */
const GROUP = 50
/** Time for starting workflows and sending, in addition to the waiting, on a busy machine, in seconds. */
const GRACE = long ? 0 : 16

test(`${EVENTS} events reach an endpoint that answers after ${TAKES} s steadily, oldest first`, async () => {
  const answered: Array<number> = []
  receiver.on("/slow", async () => {
    await Bun.sleep(TAKES * 1_000)
    answered.push(performance.now())
    return new Response("")
  })
  const key = await feedOrganization(app, 1)
  const { id } = await webhookOf(app, key, 0, receiver.url("/slow"))
  const begun = performance.now()
  for (let from = 0; from < EVENTS; from += BATCH)
    await app.feed(Array.from({ length: Math.min(BATCH, EVENTS - from) }, (_, index) => transaction("vault_0", from + index + 1)))
  await until(
    "all deliveries",
    async () => {
      const [row] = await app.sql("SELECT count(*)::int AS count FROM deliveries WHERE webhook_id = $1 AND status = 'DELIVERED'", [id])
      return Number(row?.["count"]) === EVENTS
    },
    3 * LEAST + 60
  )
  const seconds = (answered.at(-1) ?? 0) / 1_000 - begun / 1_000
  const gap = Math.max(...answered.map((at, index) => at - (answered[index - 1] ?? begun))) / 1_000

  // Ids ascend with the events.
  const order = receiver.to("/slow").map(({ headers }) => headers["webhook-id"] ?? "")
  const placesOf = (events: ReadonlyArray<string>) => {
    const rank = new Map(events.toSorted().map((event, index) => [event, index]))
    return events.map((event, index) => Math.abs((rank.get(event) ?? 0) - index))
  }
  const average = (all: ReadonlyArray<number>) => all.reduce((sum, one) => sum + one, 0) / all.length
  const places = placesOf(order)
  const [off, most] = [average(places), Math.max(...places)]
  report("F26 a backlog at a slow endpoint", {
    events: EVENTS,
    seconds,
    least: LEAST,
    longestGapSeconds: gap,
    offByOnAverage: off,
    offByAtMost: most
  })
  expect(order).toHaveLength(EVENTS)
  expect(gap).toBeLessThan(10)
  expect(seconds).toBeLessThan(1.3 * LEAST + GRACE)
  // A group of first attempts may be passed by what is dispatched after it, before the endpoint is known to be slow.
  expect(average(placesOf(order.slice(GROUP)))).toBeLessThan(PER_WEBHOOK)
  // Of many, a delivery is close to its place on average.
  if (long) expect(off).toBeLessThan(EVENTS / 20)
}, 1_200_000)
