import { beforeAll, expect, test } from "bun:test"
import { useApp } from "../support/app.ts"

const app = useApp()
let key = ""

beforeAll(async () => {
  await app.feed([
    { type: "network", name: "ethereum", kind: "mainnet" },
    { type: "organization", id: "org_a", name: "A", networks: ["ethereum"] },
    { type: "entity", id: "entity_a", organizationId: "org_a", name: "A" },
    { type: "vault", id: "vault_a", entityId: "entity_a", label: "A", networks: ["ethereum"], createdAt: "2024-01-01T00:00:00Z" },
    {
      type: "user",
      id: "user_a",
      organizationId: "org_a",
      email: "a@example.com",
      name: "A",
      status: "active",
      organizationRole: "owner",
      vaultRoles: [{ vaultId: "vault_a", role: "developer" }]
    }
  ])
  key = (await app.key("user_a")).secret
})

test("a vault answers with exactly the fields of the specification", async () => {
  const answer = await app.get("/v1/vaults/vault_a", key)
  expect(answer.status).toBe(200)
  expect(answer.json).toEqual({ id: "vault_a", label: "A", networks: ["ethereum"], createdAt: "2024-01-01T00:00:00.000Z" })
})
