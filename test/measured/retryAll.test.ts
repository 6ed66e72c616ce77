/** A command on everything that waits for a webhook costs the same however much waits. Architecture, What must hold 7. */
import { expect, test } from "bun:test"
import { report } from "../faults/Rig.ts"
import { signedIn } from "../portal/client.ts"
import { useApp } from "../support/app.ts"
import { arrivals } from "../support/arrivals.ts"
import { deliveryWhen, feedOrganization, feedOtherOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"

/** More than one transaction should change. */
const WAITING = 25_000

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1h" }))

test(`a retry of ${WAITING} deliveries answers within a second, reaches all, and delays no others`, async () => {
  const key = await feedOrganization(app, 2)
  await webhookOf(app, await feedOtherOrganization(app), 0, receiver.url("/theirs"), { entityIds: ["entity_b"] })
  await webhookOf(app, key, 1, receiver.url("/own"))
  receiver.on("/backlog", async (_, count) => {
    await Bun.sleep(50)
    return new Response("", { status: count === 1 ? 500 : 200 })
  })
  const webhook = await webhookOf(app, key, 0, receiver.url("/backlog"))
  await feedTransactions(app, [0])
  const { id } = await deliveryWhen(app, key, webhook.id, ({ attempts, status }) => attempts.length === 1 && status === "RETRYING")
  // Copies of a delivery that waits for its second attempt, and of its first one.
  const copies = (table: string, column: string, more: string) =>
    `INSERT INTO ${table} SELECT (jsonb_populate_record(one, jsonb_build_object('${column}', left('${id}', 22) || lpad(n::text, 8, '0') ${more}))).*
     FROM ${table} one, generate_series(1, ${WAITING}) n WHERE one.${column} = '${id}'`
  await app.insert(`${copies("deliveries", "id", ", 'sequence', 1000000 + n")}; ${copies("delivery_attempts", "delivery_id", "")}`)
  await app.sql("ANALYZE deliveries, delivery_attempts")
  const owner = await signedIn(app, "user_a")

  const beside = [
    arrivals(app, receiver, { vaultId: "vault_b", path: "/theirs", count: 40, everyMs: 200 }),
    arrivals(app, receiver, { vaultId: "vault_1", path: "/own", count: 40, everyMs: 200 })
  ]
  await until("the first events beside it", () => receiver.to("/theirs").length > 2 && receiver.to("/own").length > 2)
  const startedAt = performance.now()
  const answer = await owner.request("POST", `/api/webhooks/${webhook.id}/retry-waiting`, {})
  const answeredMs = performance.now() - startedAt
  const [theirs, own] = await Promise.all(beside)
  const retried = receiver.to("/backlog").length
  report("a retry of everything that waits", { waiting: WAITING, answeredMs, retried, theirs, own })
  expect(answer.status).toBe(200)
  expect(answeredMs).toBeLessThan(1_000)
  expect([theirs?.p95, own?.p95].filter((p95) => p95 === undefined || p95 >= 1_000)).toEqual([])
  expect([theirs?.missing, own?.missing]).toEqual([0, 0])
  // Every one of them, however many.
  const unmoved = async () =>
    (await app.sql("SELECT count(*)::int AS count FROM deliveries WHERE webhook_id = $1 AND status = 'RETRYING'", [webhook.id]))[0]?.[
      "count"
    ]
  await until("a turn for each", async () => (await unmoved()) === 0, 30)
  await until("its first retries", () => receiver.to("/backlog").length > 10)
}, 180_000)
