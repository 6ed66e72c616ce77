/** Redeliver returns what it wrote: after the commit, no later failure turns the response into an error. */
import { beforeAll, expect, test } from "bun:test"
import { delivery, event, insertDeliveries, insertEvents } from "../../events/log/eventRows.ts"
import { useApi } from "../../support/api.ts"
import { codeOf } from "../../support/problem.ts"
import { smallest } from "../../support/records.ts"
import { create } from "../../support/webhookFixtures.ts"

const app = useApi()
let key = "",
  sent = "",
  webhook = ""

beforeAll(async () => {
  await app.feed(smallest())
  key = (await app.key("user_a")).secret
  const { id: webhookId } = await create(app, key)
  webhook = webhookId
  const one = event()
  await insertEvents(app, [one])
  const made = delivery({ eventId: one.id, webhookId })
  await insertDeliveries(app, [made])
  sent = made.id
})

test("redeliver returns 202 even if nothing can be read after its commit", async () => {
  // The event log becomes unreadable when the redelivery commits: any read after it fails.
  await app.sql(`
    CREATE FUNCTION log_goes_away() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      ALTER TABLE events RENAME TO events_away;
      RETURN NULL;
    END $$`)
  await app.sql(`CREATE CONSTRAINT TRIGGER log_goes_away AFTER INSERT ON deliveries
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_goes_away()`)
  const answer = await app.request("POST", `/v1/webhook-deliveries/${sent}/redeliver`, { key })
  await app.sql("ALTER TABLE events_away RENAME TO events")
  await app.sql("DROP TRIGGER log_goes_away ON deliveries")
  expect([answer.status, answer.json]).toMatchObject([
    202,
    { status: "PENDING", attempts: [], replayedFromDeliveryId: sent, deliveredAt: null }
  ])
  // Organizations take turns.
  expect(await app.sql("SELECT organization_id FROM commands WHERE $1 = ANY(members)", [answer.json.id])).toEqual([
    { organization_id: "org_a" }
  ])
  const { data } = (await app.get(`/v1/webhooks/${answer.json.webhookId}/deliveries`, key)).json
  expect(data.find(({ id }: { readonly id: string }) => id === answer.json.id)).toEqual(answer.json)
})

test("an event with 200 deliveries is not redelivered, because they are listed in full", async () => {
  const one = event()
  await insertEvents(app, [one])
  const made = Array.from({ length: 199 }, () => delivery({ eventId: one.id, webhookId: webhook }))
  await insertDeliveries(app, made)
  const redeliver = () => app.request("POST", `/v1/webhook-deliveries/${made[0]?.id}/redeliver`, { key })
  expect((await redeliver()).status).toBe(202)
  expect(codeOf(await redeliver())).toBe("redelivery_limit_reached")
  expect((await app.get(`/v1/webhook-events/${one.id}/deliveries`, key)).json.data).toHaveLength(200)
})
