/** An endpoint with as many requests in flight as it may have, and one delivery more: it waits alone. Architecture, What must hold 7. */
import { expect, test } from "bun:test"
import { report } from "../faults/Rig.ts"
import { useApp } from "../support/app.ts"
import { feedOrganization, feedOtherOrganization, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"

/** Times that the endpoint is full, and for how long at most, in ms: shorter than a delivery waits before it is queued. */
const ROUNDS = 7,
  FULL_MS = 900

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_MAX_IN_FLIGHT: "1" }))

test("a delivery that waits for a place at its endpoint delays no other organization", async () => {
  const key = await feedOrganization(app, 1)
  const theirKey = await feedOtherOrganization(app)
  let answers = Promise.withResolvers<void>()
  receiver.on("/mine", async () => {
    await answers.promise
    return new Response("")
  })
  const { id } = await webhookOf(app, key, 0, receiver.url("/mine"))
  await webhookOf(app, theirKey, 0, receiver.url("/theirs"), { entityIds: ["entity_b"] })
  const took: Array<number> = []
  for (let round = 0; round < ROUNDS; round++) {
    await app.feed([transaction("vault_0", 100 + 2 * round)])
    await until("a request in flight", () => receiver.to("/mine").length === 2 * round + 1)
    const ends = setTimeout(answers.resolve, FULL_MS)
    await app.feed([transaction("vault_0", 101 + 2 * round)])
    await until("the delivery that waits", async () => {
      const rows = await app.sql(
        "SELECT 1 FROM deliveries d WHERE webhook_id = $1 AND NOT EXISTS (SELECT 1 FROM delivery_attempts t WHERE t.delivery_id = d.id)",
        [id]
      )
      return rows.length > 0
    })
    const fedAt = performance.now()
    await app.feed([transaction("vault_b", 100 + round)])
    await until("their request", () => receiver.to("/theirs").length === round + 1)
    took.push(performance.now() - fedAt)
    clearTimeout(ends)
    answers.resolve()
    await until("both deliveries", () => receiver.to("/mine").length === 2 * round + 2)
    answers = Promise.withResolvers()
  }
  const median = took.toSorted((a, b) => a - b)[(ROUNDS - 1) / 2]
  report("a webhook without a free place", { median, took })
  expect(median).toBeLessThan(400)
}, 60_000)
