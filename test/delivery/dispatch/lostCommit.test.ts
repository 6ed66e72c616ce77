/** A dispatcher whose connection ends after Postgres committed its claim and before it knows. Architecture, What must hold 1. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { useApp } from "../../support/app.ts"
import { feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { Proxy } from "../../support/proxy.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker"], () => receiverEnv(receiver))
let proxy: Proxy
let key = ""

beforeAll(async () => {
  proxy = new Proxy(app.databaseUrl)
  await proxy.open()
  await app.start(["dispatcher"], { DATABASE_URL: proxy.url })
  key = await feedOrganization(app, 1)
})
afterAll(() => proxy.cut())

test("a committed claim that the dispatcher saw fail is carried out within seconds, once", async () => {
  await webhookOf(app, key, 0, receiver.url("/hook"))
  await feedTransactions(app, [0])
  await until("a delivery", () => receiver.to("/hook").length === 1)
  // The dispatcher's second sweep, four seconds after its first, would find the delivery.
  await Bun.sleep(6_000)
  const lost = proxy.loseCommit()
  await feedTransactions(app, [0])
  await lost
  const [{ waiting } = {}] = await app.sql("SELECT count(*)::int AS waiting FROM event_outbox")
  expect(waiting).toBe(0)
  await until("the delivery", () => receiver.to("/hook").length === 2)
  await until("its end", async () => (await app.sql("SELECT 1 FROM deliveries WHERE status = 'DELIVERED'")).length === 2)
  expect(receiver.to("/hook")).toHaveLength(2)
})
