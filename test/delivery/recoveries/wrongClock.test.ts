/** An API process whose clock is wrong: what it decides about stored times goes by Postgres' clock. */
import { afterEach, beforeAll, expect, setSystemTime, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { balance, smallest, user } from "../../support/records.ts"

const HOUR = 3_600_000
const app = useApi()
let key = ""
let webhookId = ""

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    user("user_a", "org_a", ["vault_a"], { organizationRole: "owner" }),
    balance("vault_a", "ethereum/native", "7")
  ])
  key = (await app.key("user_a")).secret
  const body = {
    url: "https://example.com/hook",
    entityIds: ["entity_a"],
    eventKinds: ["balance.updated"],
    notificationEmail: "ops@example.com",
    status: "PAUSED"
  }
  webhookId = (await app.request("POST", "/v1/webhooks", { key, body })).json.id
})
afterEach(() => setSystemTime())

const iso = (time: number) => new Date(time).toISOString()

// A clock that is ahead would make ids of the files that run afterwards in this process.
test("an API whose clock is an hour behind recovers and reads balances up to now", async () => {
  const now = Date.now()
  setSystemTime(now - HOUR)
  const recovered = await app.request("POST", `/v1/webhooks/${webhookId}/recoveries`, { key, body: { since: iso(now - 300_000) } })
  expect(recovered.status).toBe(202)
  expect(Math.abs(Date.parse(recovered.json.until) - now)).toBeLessThan(60_000)
  expect((await app.request("POST", `/v1/webhook-recoveries/${recovered.json.id}/cancel`, { key })).status).toBe(200)
  const future = await app.request("POST", `/v1/webhooks/${webhookId}/recoveries`, { key, body: { since: iso(now + 600_000) } })
  expect(future.json.errors).toMatchObject([{ field: "since" }])
  for (const path of ["/v1/vaults/vault_a/balances", "/v1/balances"]) {
    const at = async (time: number) => app.get(`${path}?at=${encodeURIComponent(iso(time))}`, key)
    expect((await at(now)).json.data).toMatchObject([{ amount: "7" }])
    expect((await at(now + 600_000)).status).toBe(400)
  }
})
