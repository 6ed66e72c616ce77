/** A change of what a webhook receives takes its place among the events: what its caller reads afterwards misses none of them. */
import { beforeAll, expect, test } from "bun:test"
import pg from "pg"
import { useApp } from "../../support/app.ts"
import { feedOrganization } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { balance, user, vault } from "../../support/records.ts"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => receiverEnv(receiver))
let key = ""
let amount = 100

beforeAll(async () => {
  key = await feedOrganization(app, 1)
  await app.feed([vault("vault_other", "entity_0"), user("user_a", "org_a", ["vault_0", "vault_other"], { organizationRole: "owner" })])
  await app.feed([balance("vault_0", "ethereum/native", String(amount))])
})

const ask = async (method: string, target: string, body?: unknown) => {
  const answer = await app.request(method, target, { key, ...(body === undefined ? {} : { body }) })
  expect([200, 201, 204]).toContain(answer.status)
  return answer.json
}
const created = async (more: object = {}): Promise<string> => {
  const fields = {
    url: receiver.url("/in-turn"),
    entityIds: ["entity_0"],
    eventKinds: ["balance.updated"],
    notificationEmail: "a@example.com"
  }
  return (await ask("POST", "/v1/webhooks", { ...fields, ...more })).id
}

for (const [what, prepare, change] of [
  ["creation", async () => "", () => created()],
  [
    "enabling",
    () => created({ status: "DISABLED" }),
    async (id: string) => (await ask("PATCH", `/v1/webhooks/${id}`, { status: "ACTIVE" })).id
  ],
  [
    "added kind",
    () => created({ eventKinds: ["vault.created"] }),
    async (id: string) => (await ask("PATCH", `/v1/webhooks/${id}`, { eventKinds: ["vault.created", "balance.updated"] })).id
  ],
  [
    "removed vault filter",
    () => created({ vaultIds: ["vault_other"] }),
    async (id: string) => (await ask("PATCH", `/v1/webhooks/${id}`, { vaultIds: null })).id
  ]
] as const)
  test(`an event that is being recorded is committed before a webhook's ${what} is answered`, async () => {
    const before = await prepare()
    const writer = new pg.Client({ connectionString: app.databaseUrl })
    await writer.connect()
    try {
      // The batch has begun to record its event, and waits for its entity's chain.
      await writer.query("BEGIN")
      await writer.query("SELECT 1 FROM entity_chains WHERE entity_id = 'entity_0' FOR UPDATE")
      const recorded = app.feed([balance("vault_0", "ethereum/native", String(++amount))])
      const waits = (statement: string) =>
        until(`${statement} to wait`, async () => {
          const waiting = await app.sql(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() AND query ~ $1",
            [statement]
          )
          return waiting.length > 0
        })
      await waits("recorded AS MATERIALIZED")
      const changing = change(before)
      await waits("FROM event_streams")
      await writer.query("COMMIT")
      await recorded
      const id = await changing
      const [{ amount: read }] = (await app.get("/v1/vaults/vault_0/balances", key)).json.data
      expect(read).toBe(String(amount))
      // The next one is sent. Its predecessor may be, if the dispatcher reads it after the change.
      await app.feed([balance("vault_0", "ethereum/native", String(++amount))])
      const [next] = await app.sql("SELECT id FROM events WHERE kind = 'balance.updated' ORDER BY position DESC LIMIT 1")
      await until("the delivery", async () =>
        (await app.get(`/v1/webhooks/${id}/deliveries`, key)).json.data.some((one: { eventId: string }) => one.eventId === next?.id)
      )
    } finally {
      await writer.end()
    }
  })
