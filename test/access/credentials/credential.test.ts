/** What a key can read about itself. accessMatrix.test.ts does the same for generated keys and vaults. C-7. */
import { beforeAll, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { smallest, user, vault } from "../../support/records.ts"

const app = useApi()

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    vault("vault_b", "entity_a"),
    vault("vault_hidden", "entity_a"),
    user("user_a", "org_a", ["vault_a", "vault_b"], { organizationRole: "owner" })
  ])
})

test("a key can read its properties, owner, client address and number of visible vaults", async () => {
  const { key, secret } = await app.key("user_a", {
    label: "import",
    scopes: ["vault:read"],
    vaultIds: ["vault_a"],
    ipAllowlist: ["127.0.0.0/8"]
  })
  const { json, status } = await app.get("/v1/credential", secret)
  expect([status, json]).toEqual([
    200,
    {
      key: {
        id: key.id,
        label: "import",
        scopes: ["vault:read"],
        vaultIds: ["vault_a"],
        ipAllowlist: ["127.0.0.0/8"],
        createdAt: key.createdAt,
        expiresAt: null
      },
      user: { id: "user_a", organizationRole: "owner" },
      organizationId: "org_a",
      ownerLevel: true,
      clientAddress: "127.0.0.1",
      vaults: { role: 2, allowlist: 1, visible: 1 },
      entities: [{ id: "entity_a", name: "entity_a" }],
      entityCount: 1
    }
  ])
  expect(Object.keys(json)).toEqual(["key", "user", "organizationId", "ownerLevel", "clientAddress", "vaults", "entities", "entityCount"])
})

test("a hidden vault and an unknown one get the same bytes, without the id", async () => {
  const { secret } = await app.key("user_a", { scopes: ["webhook:read"] })
  const text = async (id: string) => (await app.get(`/v1/credential?vaultId=${id}`, secret)).text
  expect(new Set(await Promise.all(["vault_hidden", "vault_absent", "nonsense", "", "%00", "x".repeat(500)].map(text))).size).toBe(1)
  expect(await text("vault_hidden")).toContain('"vault":{"visible":false,"because":"unknown"}')
  expect(await text("vault_a")).toContain('"vault":{"visible":false,"because":"scope"}')
  expect(await text("vault_a")).not.toContain("vault_a")
  expect((await app.get("/v1/credential?vaultId=vault_a&vaultId=vault_b", secret)).json.code).toBe("invalid_parameter")
})
