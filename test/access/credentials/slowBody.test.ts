/** Callers who lose their access while the body of a request arrives. Spec: Authentication 5 to 7, 10, 12. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import pg from "pg"
import { useApi } from "../../support/api.ts"
import { until } from "../../support/receiver.ts"
import { smallest, user } from "../../support/records.ts"

const app = useApi()
const owner = { organizationRole: "owner" }
const webhook = {
  url: "https://hooks.example.com/custody",
  entityIds: ["entity_a"],
  eventKinds: ["transaction.confirmed"],
  notificationEmail: "ops@example.com"
}
let webhookId = "",
  other: pg.Client

beforeAll(async () => {
  await app.feed([...smallest(), user("user_a", "org_a", ["vault_a"], owner)])
  const { secret } = await app.key("user_a")
  webhookId = (await app.request("POST", "/v1/webhooks", { key: secret, body: webhook })).json.id
  other = new pg.Client({ connectionString: app.databaseUrl })
  await other.connect()
})
afterAll(() => other.end())

/** The statements that read a key. */
const reading = () =>
  app.sql("SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%k.secret_hash IN%' AND pid <> pg_backend_pid()")

/** A request of a new owner's key whose body ends only after the change. Returns the status and the code of the answer. */
const overtaken = async (
  name: string,
  method: string,
  path: string,
  body: unknown,
  change: (userId: string) => Promise<unknown>,
  repeated = false
) => {
  const userId = `user_${name}`
  await app.feed([user(userId, "org_a", ["vault_a"], owner)])
  const { secret } = await app.key(userId)
  const headers = repeated ? { "idempotency-key": name } : {}
  if (repeated) expect((await app.request(method, path, { key: secret, body, headers })).status).toBe(200)
  const [begun, ...end] = JSON.stringify(body)
  const { promise: changed, resolve: finish } = Promise.withResolvers<void>()
  await other.query("BEGIN")
  await other.query("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE")
  const answer = app.send("api", path, {
    method,
    headers: { ...headers, authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: new ReadableStream({
      async start(controller) {
        controller.enqueue(new TextEncoder().encode(begun))
        await changed
        controller.enqueue(new TextEncoder().encode(end.join("")))
        controller.close()
      }
    })
  })
  await until("the key is being read", async () => (await reading()).length === 1)
  await other.query("COMMIT")
  await until("the key was read", async () => (await reading()).length === 0)
  await change(userId)
  finish()
  const response = await answer
  return [response.status, ((await response.json()) as { readonly code?: string }).code]
}

const revoke = (userId: string) =>
  app.sql("UPDATE api_keys SET revoked_at = now(), revoked_reason = 'revoked' WHERE user_id = $1", [userId])

for (const [name, method, path, body] of [
  ["create", "POST", () => "", webhook],
  ["preview", "POST", () => "/preview", { entityIds: ["entity_a"], eventKinds: ["transaction.confirmed"] }],
  ["update", "PATCH", () => `/${webhookId}`, { url: "https://elsewhere.example.com/" }],
  ["rotate", "POST", () => `/${webhookId}/rotate-secret`, {}],
  ["ping", "POST", () => `/${webhookId}/ping`, {}],
  ["delete", "DELETE", () => `/${webhookId}`, {}]
] as const)
  test(`a key that is revoked during the body of a request: ${name}`, async () => {
    const before = await app.sql("SELECT * FROM webhooks")
    expect(await overtaken(name, method, `/v1/webhooks${path()}`, body, revoke)).toEqual([401, "revoked_api_key"])
    expect(await app.sql("SELECT * FROM webhooks")).toEqual(before)
  })

test("a key that loses a scope during the body sees no event", async () => {
  const narrow = (userId: string) => app.sql("UPDATE api_keys SET scopes = '{webhook:manage}' WHERE user_id = $1", [userId])
  const preview = { entityIds: ["entity_a"], eventKinds: ["transaction.confirmed"] }
  const answers = [
    await overtaken("previews", "POST", "/v1/webhooks/preview", preview, narrow),
    await overtaken("updates", "PATCH", `/v1/webhooks/${webhookId}`, { description: "late" }, narrow)
  ]
  expect(answers).toEqual([
    [403, "insufficient_scope"],
    [403, "insufficient_scope"]
  ])
})

test("a user who is demoted during the body no longer changes a webhook", async () => {
  const demote = (userId: string) => app.feed([user(userId, "org_a", ["vault_a"])])
  const answer = await overtaken("demoted", "PATCH", `/v1/webhooks/${webhookId}`, { description: "late" }, demote)
  expect(answer).toEqual([403, "owner_required"])
})

test("no secret of an earlier rotation is returned if the webhook is deleted meanwhile", async () => {
  const { secret } = await app.key("user_a")
  const { json } = await app.request("POST", "/v1/webhooks", { key: secret, body: webhook })
  const remove = () => app.request("DELETE", `/v1/webhooks/${json.id}`, { key: secret })
  const answer = await overtaken("repeated", "POST", `/v1/webhooks/${json.id}/rotate-secret`, {}, remove, true)
  expect(answer).toEqual([404, "not_found"])
})
