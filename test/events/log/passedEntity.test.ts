/** A vault that belongs to an entity only within one batch: its events there are found, and guarded. Decisions D-8, D-9. */
import { beforeAll, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { entity, smallest, transaction, user, vault } from "../../support/records.ts"
import { fields } from "../../support/webhookFixtures.ts"

const app = useApi()
const keys = { whole: "", member: "", other: "" }
const kind = "transaction.confirmed"

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    entity("entity_passed", "org_a"),
    entity("entity_last", "org_a"),
    vault("vault_passed", "entity_passed"),
    user("user_whole", "org_a", ["vault_a", "vault_passed"], { organizationRole: "owner" }),
    user("user_member", "org_a", ["vault_a"]),
    user("user_other", "org_a", ["vault_passed"], { organizationRole: "owner" })
  ])
  for (const name of ["whole", "member", "other"] as const) keys[name] = (await app.key(`user_${name}`)).secret
  await app.feed([
    vault("vault_a", "entity_passed"),
    transaction("vault_a", 1),
    vault("vault_a", "entity_last"),
    vault("vault_new", "entity_passed"),
    transaction("vault_new", 2),
    vault("vault_new", "entity_last")
  ])
})

test("the list of events finds those of an entity that the vault passed through", async () => {
  for (const key of [keys.whole, keys.member]) {
    const entities = async (query: string) =>
      (await app.get(`/v1/webhook-events?vaultId=vault_a&${query}`, key)).json.data.map((one: { entityId: string }) => one.entityId)
    expect(await entities(`kind=${kind}`)).toEqual(["entity_passed"])
    expect(await entities("entityId=entity_passed")).toEqual(["entity_passed", "entity_passed", "entity_passed"])
  }
})

test("who does not see the vault gets no webhook on the entity and no proof", async () => {
  const proof = (key: string) => app.get("/v1/event-checkpoints/latest?entityId=entity_passed", key)
  const create = (key: string) =>
    app.request("POST", "/v1/webhooks", { key, body: fields({ entityIds: ["entity_passed"], eventKinds: [kind] }) })
  expect([(await proof(keys.other)).status, (await create(keys.other)).json.errors?.[0]?.field]).toEqual([404, "vaultIds"])
  await app.feed([user("user_other", "org_a", ["vault_passed", "vault_a", "vault_new"], { organizationRole: "owner" })])
  expect([(await proof(keys.other)).status, (await create(keys.other)).status]).toEqual([200, 201])
})
