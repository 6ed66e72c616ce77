/** What the API says of a key that will expire. C-13. */
import { beforeAll, expect, test } from "bun:test"
import { Effect } from "effect"
import { ApiKeys } from "../../../src/access/keys/ApiKeys.ts"
import { useApi } from "../../support/api.ts"
import { smallest } from "../../support/records.ts"

const DAY = 86_400_000
const ORIGIN = "https://treasury.example.com"
const app = useApi({ CORS_ORIGINS: ORIGIN })

beforeAll(() => app.feed(smallest()))

const inDays = (days: number) => new Date(Date.now() + days * DAY).toISOString()
const headerOf = async (secret?: string, path = "/v1/vaults", method = "GET") =>
  (await app.request(method, path, secret === undefined ? {} : { key: secret })).headers.get("x-key-expires-at")

test("from 30 days before a key expires, every response to it says when", async () => {
  for (const days of [0.01, 1, 29.9]) {
    const { key, secret } = await app.key("user_a", { expiresAt: inDays(days) })
    for (const [path, method] of [
      ["/v1/vaults", "GET"],
      ["/v1/vaults", "HEAD"],
      ["/v1/vaults/vault_a/transactions/export?format=csv", "GET"],
      ["/v1/event-feed/stream?from=now", "GET"],
      ["/v1/vaults?nonsense=1", "GET"],
      ["/v1/vaults/vault_absent", "GET"],
      ["/v1/nothing", "GET"],
      ["/v1/vaults", "DELETE"],
      ["/v1/webhooks", "POST"]
    ] as const)
      expect([days, method, path, await headerOf(secret, path, method)]).toEqual([days, method, path, key.expiresAt])
  }
})

test("a key that expires later or never has no such header", async () => {
  for (const expiresAt of [inDays(30.1), inDays(365), null])
    expect([expiresAt, await headerOf((await app.key("user_a", { expiresAt })).secret)]).toEqual([expiresAt, null])
})

test("responses to keys that are expired, revoked or missing have no such header", async () => {
  const expired = await app.key("user_a", { expiresAt: inDays(-1) })
  const revoked = await app.key("user_a", { expiresAt: inDays(5) })
  await app.run(Effect.flatMap(ApiKeys, (keys) => keys.revoke(revoked.key.id)))
  for (const secret of [expired.secret, revoked.secret, undefined]) expect(await headerOf(secret)).toBeNull()
})

test("the header follows an edit of the expiry at once", async () => {
  const { key, secret } = await app.key("user_a", { expiresAt: inDays(5) })
  const edit = (expiresAt: string | null) =>
    app.run(Effect.flatMap(ApiKeys, (keys) => keys.update(key.id, { expiresAt }, { mayWiden: true })))
  expect(await headerOf(secret)).toBe(key.expiresAt)
  await edit(inDays(100))
  expect(await headerOf(secret)).toBeNull()
  await edit(null)
  expect(await headerOf(secret)).toBeNull()
  const { expiresAt } = await edit(inDays(10))
  expect(await headerOf(secret)).toBe(expiresAt)
})

test("a key can read when it expires, however far ahead that is", async () => {
  for (const expiresAt of [inDays(0.5), inDays(400), null]) {
    const { secret } = await app.key("user_a", { expiresAt, scopes: ["webhook:read"] })
    expect((await app.get("/v1/credential", secret)).json.key.expiresAt).toBe(expiresAt)
  }
})

test("a page of a named origin can read when its key expires", async () => {
  const { key, secret } = await app.key("user_a", { expiresAt: inDays(5) })
  const { headers } = await app.get("/v1/vaults", secret, { origin: ORIGIN })
  expect([
    headers.get("x-key-expires-at"),
    headers.get("access-control-allow-origin"),
    headers.get("access-control-expose-headers")
  ]).toEqual([key.expiresAt, ORIGIN, "*"])
})
