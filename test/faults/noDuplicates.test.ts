/** Without a fault there is no second request: however slow endpoints are, and however many workers. Architecture, What must hold 1. */
import { expect, test } from "bun:test"
import { useApp } from "../support/app.ts"
import { feedOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { report } from "./Rig.ts"

/** An entity can have at most this many webhooks. */
const WEBHOOKS = 20
const EVENTS = 40
/** Within the time limit of an attempt, and longer than a group of first attempts may wait for a slot. */
const ANSWER_MS = 4_000

const receiver = useReceiver()
const app = useApp(["api"], () => receiverEnv(receiver))

test("two workers send each event to a slow endpoint exactly once", async () => {
  receiver.on("/slow", async () => {
    await Bun.sleep(ANSWER_MS)
    return new Response("")
  })
  const key = await feedOrganization(app, 1)
  for (let count = 0; count < WEBHOOKS; count++) await webhookOf(app, key, 0, receiver.url("/slow"))
  await Promise.all([app.start(["worker", "dispatcher"]), app.start(["worker", "dispatcher"])])
  await feedTransactions(
    app,
    Array.from({ length: EVENTS }, () => 0)
  )
  await until(
    "every delivery",
    async () => {
      const [row] = await app.sql("SELECT count(*)::int AS count FROM deliveries WHERE status = 'DELIVERED'")
      return row?.["count"] === WEBHOOKS * EVENTS
    },
    200
  )
  const rows = await app.sql("SELECT coalesce(result, 'open') AS result, count(*)::int AS count FROM delivery_attempts GROUP BY 1")
  const figures = { requests: receiver.to("/slow").length, attempts: Object.fromEntries(rows.map(({ count, result }) => [result, count])) }
  report("no duplicates", figures)
  expect(figures).toEqual({ requests: WEBHOOKS * EVENTS, attempts: { "2xx": WEBHOOKS * EVENTS } })
})
