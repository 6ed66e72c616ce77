/** A reset of an account that overlaps what its former holder does: nothing of that reaches the new account. */
import { beforeAll, expect, test } from "bun:test"
import pg from "pg"
import { useApi } from "../support/api.ts"
import { until } from "../support/receiver.ts"
import { smallest, user } from "../support/records.ts"
import { BrowserPasskey } from "./BrowserPasskey.ts"
import { signedIn, Visitor } from "./client.ts"

const app = useApi({ PORTAL_BASE_URL: "http://localhost:8080" })

beforeAll(() =>
  app.feed([
    ...smallest(),
    ...["user_b", "user_c", "user_d", "user_e"].map((id) => user(id, "org_a", ["vault_a"])),
    user("user_f", "org_a", ["vault_a"], { organizationRole: "owner" })
  ])
)

/** A signed-in user with a passkey, and the browser's answer for another one. */
const holder = async (userId: string) => {
  const visitor = await signedIn(app, userId)
  const created = async () => {
    const asked = await visitor.request("POST", "/api/passkeys/options", { confirmation: { code: visitor.backupCode() } })
    const passkey = new BrowserPasskey(visitor.origin)
    return { passkey, body: { name: "Key", answer: passkey.created(asked.json) } }
  }
  const { body, passkey } = await created()
  expect((await visitor.request("POST", "/api/passkeys", body)).status).toBe(200)
  return { visitor, passkey, another: (await created()).body }
}

/**
 * Sends a request that waits for a reset of the account, as the acceptance of an invitation makes it, or for its first statement.
 * Another statement can take the place of the reset.
 */
const overtaken = async <A>(userId: string, send: () => Promise<A>, first?: string, instead?: string): Promise<A> => {
  const other = new pg.Client({ connectionString: app.databaseUrl })
  const reset = async () => {
    if (instead !== undefined) return void (await other.query(instead))
    await other.query("DELETE FROM portal_users WHERE id = $1", [userId])
    const account = [userId, `${userId}@example.com`]
    await other.query("INSERT INTO portal_users (id, name, email, email_verified) VALUES ($1, $1, $2, true)", account)
  }
  await other.connect()
  await other.query("BEGIN")
  await (first === undefined ? reset() : other.query(first))
  const answer = send()
  await until("a request that waits", async () => {
    const waiting = await app.sql("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
    return waiting.length > 0
  })
  if (first !== undefined) await reset()
  await other.query("COMMIT")
  await other.end()
  return answer
}
const left = (userId: string) =>
  app.sql("SELECT id FROM portal_sessions WHERE user_id = $1 UNION ALL SELECT id FROM portal_passkeys WHERE user_id = $1", [userId])

test("a sign-in with a passkey of before begins no session", async () => {
  const { passkey } = await holder("user_b")
  const thief = new Visitor(app)
  const asked = await thief.request("POST", "/api/sign-in/passkey/options", {})
  const answer = await overtaken("user_b", () => thief.request("POST", "/api/sign-in/passkey", passkey.used(asked.json)))
  expect([answer.status, answer.json.code]).toEqual([403, "second_factor_failed"])
  expect([await thief.state(), await left("user_b")]).toEqual(["signed_out", []])
})

test("a sign-in whose passkey was checked before begins no session", async () => {
  const { passkey } = await holder("user_d")
  const thief = new Visitor(app)
  const asked = await thief.request("POST", "/api/sign-in/passkey/options", {})
  const signIn = () => thief.request("POST", "/api/sign-in/passkey", passkey.used(asked.json))
  const answer = await overtaken("user_d", signIn, "LOCK TABLE portal_sessions IN SHARE ROW EXCLUSIVE MODE")
  expect([answer.status, answer.json.code]).toEqual([401, "signed_out"])
  expect([await thief.state(), await left("user_d")]).toEqual(["signed_out", []])
})

test("a session of before adds no passkey", async () => {
  const { another, visitor } = await holder("user_c")
  const answer = await overtaken("user_c", () => visitor.request("POST", "/api/passkeys", another))
  expect([answer.status, answer.json.code]).toEqual([401, "signed_out"])
  expect(await left("user_c")).toEqual([])
})

test("a session of before creates no key", async () => {
  const visitor = await signedIn(app, "user_e")
  const body = { label: "Late", scopes: ["vault:read"], vaultIds: null, ipAllowlist: [], confirmation: { code: visitor.backupCode() } }
  const create = () => visitor.request("POST", "/api/keys", body)
  const answer = await overtaken("user_e", create, "SELECT 1 FROM users WHERE id = 'user_e' FOR UPDATE")
  expect([answer.status, answer.json.code]).toEqual([401, "signed_out"])
  expect(await app.sql("SELECT 1 FROM api_keys WHERE user_id = 'user_e'")).toEqual([])
})

test("a session that ends while its code is checked changes nothing", async () => {
  const visitor = await signedIn(app, "user_f")
  const { key } = await app.key("user_f", { scopes: ["vault:read"] })
  const confirmation = () => ({ code: visitor.backupCode() })
  const webhook = {
    url: "https://hooks.example.com/x",
    entityIds: ["entity_a"],
    eventKinds: ["vault.created"],
    notificationEmail: "a@example.com"
  }
  for (const send of [
    () => visitor.request("PATCH", `/api/keys/${key.id}`, { scopes: ["vault:read", "webhook:manage"], confirmation: confirmation() }),
    () => visitor.request("POST", "/api/v1/webhooks", webhook, { "x-portal-confirmation": JSON.stringify(confirmation()) })
  ]) {
    // The session is there again for the second of them.
    const sessions = await app.sql("SELECT * FROM portal_sessions WHERE user_id = 'user_f'")
    const answer = await overtaken(
      "user_f",
      send,
      "SELECT 1 FROM portal_second_factors WHERE user_id = 'user_f' FOR UPDATE",
      "DELETE FROM portal_sessions WHERE user_id = 'user_f'"
    )
    expect([answer.status, answer.json.code]).toEqual([401, "signed_out"])
    await app.sql("INSERT INTO portal_sessions SELECT * FROM jsonb_populate_recordset(NULL::portal_sessions, $1::jsonb)", [
      JSON.stringify(sessions)
    ])
  }
  expect(await app.sql("SELECT scopes FROM api_keys WHERE user_id = 'user_f'")).toEqual([{ scopes: ["vault:read"] }])
  expect(await app.sql("SELECT 1 FROM webhooks")).toEqual([])
})
