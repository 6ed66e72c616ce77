/** A webhook without deliveries is deleted while its first event is dispatched. Decision D-29. */
import { expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

/** Webhooks that are deleted, one for each event. */
const ROUNDS = 25

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => receiverEnv(receiver))

test("the others of the event get theirs, and no delivery is left without its webhook", async () => {
  const key = await feedOrganization(app, 1)
  const kept = await webhookOf(app, key, 0, receiver.url("/kept"))
  for (let round = 0; round < ROUNDS; round++) {
    const gone = await webhookOf(app, key, 0, receiver.url("/gone"))
    const later = (async () => {
      // From before the event is recorded until after its deliveries are written.
      await Bun.sleep(round)
      return app.request("DELETE", `/v1/webhooks/${gone.id}`, { key })
    })()
    await feedTransactions(app, [0])
    expect((await later).status).toBe(204)
  }
  await until("the deliveries of the other webhook", () => receiver.to("/kept").length >= ROUNDS)
  const settled = "SELECT 1 FROM deliveries WHERE status IN ('PENDING', 'RETRYING', 'HELD')"
  await until("the end of every delivery", async () => (await app.sql(settled)).length === 0)
  expect(await app.sql("SELECT id FROM deliveries WHERE webhook_id NOT IN (SELECT id FROM webhooks)")).toEqual([])
  // Those without deliveries are gone at once.
  const left = await app.sql("SELECT id FROM webhooks WHERE id NOT IN (SELECT webhook_id FROM deliveries)")
  expect(left).toEqual([])
  expect((await app.walk(`/v1/webhooks/${kept.id}/deliveries`, key)).length).toBe(ROUNDS)
})
