/** The entities that a key reaches, and webhooks that name none. C-11. */
import { beforeAll, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { codeOf } from "../../support/problem.ts"
import { entity, organization, smallest, user, vault } from "../../support/records.ts"
import { fields } from "../../support/webhookFixtures.ts"

const app = useApi()

/** An owner with one vault, a member with two vaults of an entity and one of another, one with a single vault, and another organization. */
beforeAll(() =>
  app.feed([
    ...smallest(),
    ...["entity_b", "entity_c", "entity_empty"].map((id) => entity(id, "org_a", { name: `Name of ${id}` })),
    vault("vault_b", "entity_b"),
    vault("vault_b2", "entity_b"),
    vault("vault_c", "entity_c"),
    user("user_m", "org_a", ["vault_b", "vault_b2", "vault_c"]),
    user("user_one", "org_a", ["vault_c"]),
    user("user_none", "org_a", []),
    organization("org_z", ["ethereum"]),
    entity("entity_z", "org_z"),
    vault("vault_z", "entity_z"),
    user("user_z", "org_z", ["vault_z"], { organizationRole: "owner" })
  ])
)

const idsOf = async (secret: string, limit?: number) => (await app.walk("/v1/entities", secret, limit)).map(({ id }) => id)

test("a key lists the entities that it reaches, by id and page by page", async () => {
  for (const [userId, vaultIds, expected] of [
    ["user_a", null, ["entity_a", "entity_b", "entity_c", "entity_empty"]],
    ["user_a", ["vault_a"], ["entity_a"]],
    ["user_m", null, ["entity_b", "entity_c"]],
    ["user_m", ["vault_b2"], ["entity_b"]],
    ["user_none", null, []],
    ["user_z", null, ["entity_z"]]
  ] as const) {
    for (const scope of ["vault:read", "webhook:read"]) {
      const { secret } = await app.key(userId, { scopes: [scope], vaultIds })
      for (const limit of [1, 100]) expect([userId, vaultIds, await idsOf(secret, limit)]).toEqual([userId, vaultIds, [...expected]])
      const { json } = await app.get("/v1/credential", secret)
      expect([json.entityCount, json.entities.map(({ id }: { id: string }) => id)]).toEqual([expected.length, [...expected]])
    }
  }
  const { secret } = await app.key("user_m")
  expect((await app.get("/v1/entities?limit=1", secret)).json.data).toEqual([{ id: "entity_b", name: "Name of entity_b" }])
})

test("a key that can read neither vaults nor webhooks gets no entities", async () => {
  const { secret } = await app.key("user_a", { scopes: ["webhook:manage"] })
  const answer = await app.get("/v1/entities", secret)
  expect([codeOf(answer), answer.json.detail]).toEqual(["insufficient_scope", "The API key lacks the scope vault:read or webhook:read."])
  const { entities, entityCount } = (await app.get("/v1/credential", secret)).json
  expect([entities, entityCount]).toEqual([[], 0])
})

test("an entity is reached no longer than the role that reaches it", async () => {
  const { secret } = await app.key("user_one")
  expect(await idsOf(secret)).toEqual(["entity_c"])
  await app.feed([vault("vault_c", "entity_b")])
  expect(await idsOf(secret)).toEqual(["entity_b"])
  await app.feed([vault("vault_c", "entity_c"), user("user_one", "org_a", [])])
  expect(await idsOf(secret)).toEqual([])
  await app.feed([user("user_one", "org_a", ["vault_c"])])
})

test("the credential shows the first 100 entities and counts all of them", async () => {
  await app.feed([
    organization("org_many", ["ethereum"]),
    ...Array.from({ length: 101 }, (_, index) => entity(`entity_many${1_000 + index}`, "org_many")),
    user("user_many", "org_many", [], { organizationRole: "owner" })
  ])
  const { entities, entityCount } = (await app.get("/v1/credential", (await app.key("user_many")).secret)).json
  expect([entityCount, entities.length, entities[0].id, entities.at(-1).id]).toEqual([101, 100, "entity_many1000", "entity_many1099"])
})

test("a webhook without entityIds is of the only entity that the key reaches", async () => {
  const { entityIds: _, ...body } = fields()
  const { secret } = await app.key("user_z")
  const created = await app.request("POST", "/v1/webhooks", { key: secret, body })
  expect([created.status, created.json.entityIds]).toEqual([201, ["entity_z"]])
  const preview = { eventKinds: ["vault.created"] }
  const previewed = await app.request("POST", "/v1/webhooks/preview", { key: secret, body: preview })
  expect([previewed.status, previewed.json.count]).toEqual([200, 1])
  expect(previewed.json.newest[0].entityId).toBe("entity_z")
  // An owner reaches every entity, and with an allowlist those of its vaults.
  const limited = await app.key("user_a", { vaultIds: ["vault_a"] })
  expect((await app.request("POST", "/v1/webhooks", { key: limited.secret, body: { ...body, vaultIds: ["vault_a"] } })).status).toBe(201)
  for (const userId of ["user_a", "user_none"]) {
    const { secret } = await app.key(userId)
    for (const [path, given] of [
      ["/v1/webhooks/preview", preview],
      ["/v1/webhooks", body]
    ] as const) {
      if (userId === "user_none" && path === "/v1/webhooks") continue
      const answer = await app.request("POST", path, { key: secret, body: given })
      expect([codeOf(answer), answer.json.errors]).toEqual([
        "invalid_body",
        [
          {
            in: "body",
            field: "entityIds",
            code: "missing",
            detail: "must be given, because this API key does not reach exactly one entity: see GET /v1/entities"
          }
        ]
      ])
    }
  }
})
