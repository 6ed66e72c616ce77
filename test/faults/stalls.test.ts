/**
 * A worker that stalls for longer than a workflow task lasts, as on a machine that is short of CPU, goes on with what it has:
 * the repeated workflow tasks do not keep it too busy to do so. Architecture, What must hold 1.
 */
import { expect, test } from "bun:test"
import { useApp } from "../support/app.ts"
import { feedOrganization, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { long, report } from "./Rig.ts"

const receiver = useReceiver()
const app = useApp(["api", "dispatcher"], () => receiverEnv(receiver))
const WEBHOOKS = 20
const EVENTS = 10_000
/** The duration of a response, in ms. */
const TAKES_MS = 1500
/** Events of one request of the feed. */
const BATCH = 500
const STALLS = 4
/** How long it stalls and how long it runs between, in ms: a workflow task lasts 5 s. */
const STALL_MS = 7_000,
  BETWEEN_MS = 3_000
/** The longest time without a request after the stalls, in seconds. */
const PAUSE = 20
/** The endpoints, with 8 attempts in flight each, take 94 s for all of them. */
const DRAIN = 240

test.skipIf(!long)(`a worker that stalls ${STALLS} times under ${EVENTS} deliveries makes all of them`, async () => {
  const at: Array<number> = []
  receiver.on("/all", async () => {
    at.push(performance.now())
    await Bun.sleep(TAKES_MS)
    return new Response("")
  })
  const key = await feedOrganization(app, WEBHOOKS)
  for (let number = 0; number < WEBHOOKS; number++) await webhookOf(app, key, number, receiver.url("/all"))
  const worker = await app.start(["worker"])
  for (let from = 0; from < EVENTS; from += BATCH)
    await app.feed(Array.from({ length: BATCH }, (_, index) => transaction(`vault_${(from + index) % WEBHOOKS}`, from + index + 1)))
  for (let stall = 0; stall < STALLS; stall++) {
    worker.child.kill("SIGSTOP")
    await Bun.sleep(STALL_MS)
    worker.child.kill("SIGCONT")
    await Bun.sleep(BETWEEN_MS)
  }
  const over = performance.now()
  const left = async () => {
    const [row] = await app.sql("SELECT count(*)::int AS left FROM deliveries WHERE status <> 'DELIVERED'")
    return Number(row?.["left"])
  }
  const after = await left()
  await until("all deliveries", async () => (await left()) === 0, DRAIN)
  const seconds = (performance.now() - over) / 1_000
  const later = at.filter((time) => time > over)
  const pause = Math.max(0, ...later.map((time, index) => time - (later[index - 1] ?? over))) / 1_000
  report("a worker that stalls", { left: after, seconds, pause, requests: at.length })
  expect(pause).toBeLessThan(PAUSE)
  expect(new Set(receiver.to("/all").map(({ headers }) => headers["webhook-id"])).size).toBe(EVENTS)
})
