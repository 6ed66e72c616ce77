/**
 * Commands to workflows are sent in turns: thousands of one organization's, as after an endpoint has rejected a backlog, delay
 * neither the drain nor the retry of another organization. Architecture, What must hold.
 */
import { expect, test } from "bun:test"
import * as Id from "../../src/values/Id.ts"
import { useApp } from "../support/app.ts"
import { feedOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { manyWebhooks } from "../support/manyWebhooks.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"

/** Commands of the other organization, each of which starts a workflow. */
const COMMANDS = 3_000
/** How long a resume and a retry may take meanwhile, in ms. */
const SOON_MS = 3_000

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,2s,1h" }))

test(`beside ${COMMANDS} commands of another organization, a resume and a retry happen in time`, async () => {
  const key = await feedOrganization(app, 2)
  const { id } = await webhookOf(app, key, 0, receiver.url("/resumed"), { status: "PAUSED" })
  await feedTransactions(app, [0])
  const [flood] = await manyWebhooks(app, "flood", 1, () => receiver.url("/flood"))
  await app.sql(
    `INSERT INTO deliveries (id, event_id, webhook_id, kind, status, next_attempt_at, organization_id, sequence)
     SELECT left($3, 18) || lpad(n::text, 12, '0'), 'evt_gone', w.id, 'transaction.confirmed', 'RETRYING', now() + interval '1 hour',
       w.organization_id, 1000 + n FROM webhooks w, generate_series(1, $2::int) n WHERE w.id = $1`,
    [flood?.id, COMMANDS, Id.make("del")]
  )
  await app.sql("INSERT INTO commands (key, organization_id) SELECT id, organization_id FROM deliveries WHERE webhook_id = $1", [flood?.id])
  const left = async () => Number((await app.sql("SELECT count(*)::int AS count FROM commands"))[0]?.["count"])

  const resumedAt = performance.now()
  await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "ACTIVE" } })
  await until("the resumed delivery", () => receiver.to("/resumed").length > 0)
  const resumed = performance.now() - resumedAt

  receiver.on("/retried", (_, count) => new Response("", { status: count === 1 ? 500 : 200 }))
  await webhookOf(app, key, 1, receiver.url("/retried"))
  await feedTransactions(app, [1])
  await until("the first attempt", () => receiver.to("/retried").length > 0)
  const failedAt = performance.now()
  await until("the retry", () => receiver.to("/retried").length > 1)
  const retried = performance.now() - failedAt
  expect({ resumed: resumed < SOON_MS, retried: retried < 2_400 + SOON_MS, flooded: (await left()) > 0 }).toEqual({
    resumed: true,
    retried: true,
    flooded: true
  })
})
