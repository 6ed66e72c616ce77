/** Concurrent changes of a key, or of what it depends on. Spec: Authentication 9, 10. */
import { beforeAll, describe, expect, test } from "bun:test"
import { Effect } from "effect"
import pg from "pg"
import { ApiKeys, type Choice } from "../../../src/access/keys/ApiKeys.ts"
import { BrowserPasskey } from "../../portal/BrowserPasskey.ts"
import { PASSWORD, signedIn, Visitor } from "../../portal/client.ts"
import { useApi } from "../../support/api.ts"
import type { Answer } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { smallest, user } from "../../support/records.ts"

const app = useApi()

beforeAll(() => app.feed(smallest()))

const edit = (id: string, change: Partial<Choice>) =>
  app.run(Effect.flatMap(ApiKeys, ({ update }) => update(id, change, { mayWiden: true })))

/** Does something while another session has executed these statements but not committed them. */
const beside = async <A>(statements: ReadonlyArray<string>, use: () => Promise<A>): Promise<A> => {
  const other = new pg.Client({ connectionString: app.databaseUrl })
  await other.connect()
  try {
    await other.query("BEGIN")
    for (const statement of statements) await other.query(statement)
    const result = await use()
    await other.query("COMMIT")
    return result
  } finally {
    await other.end()
  }
}
const waiting = async (count: number) => {
  const rows = await app.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
  return rows.length === count
}

test("two concurrent edits of a key both apply", async () => {
  const { key } = await app.key("user_a")
  const edits = await beside([`SELECT 1 FROM api_keys WHERE id = '${key.id}' FOR UPDATE`], async () => {
    const both = Promise.all([edit(key.id, { scopes: ["vault:read"] }), edit(key.id, { label: "renamed" })])
    await until("both edits wait", () => waiting(2))
    return () => both
  })
  await edits()
  expect(await edit(key.id, {})).toMatchObject({ scopes: ["vault:read"], label: "renamed" })
})

test("a key created while its user is deactivated is revoked and stays revoked", async () => {
  await app.feed([user("user_leaving", "org_a", ["vault_a"])])
  await app.sql(
    `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(31337); RETURN NEW; END $$`
  )
  await app.sql("CREATE TRIGGER slow BEFORE INSERT ON api_keys FOR EACH ROW EXECUTE FUNCTION slow()")
  try {
    const done = await beside(["SELECT pg_advisory_xact_lock(31337)"], async () => {
      const made = app.key("user_leaving")
      await until("the key is about to be made", () => waiting(1))
      const left = app.feed([user("user_leaving", "org_a", ["vault_a"], { status: "deactivated" })])
      await Promise.race([left, until("the deactivation waits for it", () => waiting(2))])
      return () => Promise.all([made, left])
    })
    const [{ key, secret }] = await done()
    await app.feed([user("user_leaving", "org_a", ["vault_a"])])
    const answer = await app.get("/v1/vaults", secret)
    expect([answer.status, answer.json.code]).toEqual([401, "revoked_api_key"])
    const [row] = await app.sql("SELECT revoked_reason AS reason FROM api_keys WHERE id = $1", [key.id])
    expect(row).toEqual({ reason: "user_deactivated" })
  } finally {
    await app.sql("DROP TRIGGER slow ON api_keys")
  }
})

test("a second factor that the end of all sessions overtakes leaves no session", async () => {
  await app.feed([user("user_robbed", "org_a", ["vault_a"])])
  const visitor = await signedIn(app, "user_robbed")
  const thief = new Visitor(app)
  expect((await thief.request("POST", "/api/sign-in", { email: "user_robbed@example.com", password: PASSWORD })).status).toBe(200)
  const entering = await beside(["SELECT 1 FROM users WHERE id = 'user_robbed' FOR UPDATE"], async () => {
    const entered = thief.request("POST", "/api/sign-in/second-factor", { code: visitor.backupCode() })
    await until("the session waits", () => waiting(1))
    expect((await visitor.request("POST", "/api/sessions/end-all", {})).status).toBe(200)
    return () => entered
  })
  expect(await entering()).toMatchObject({ status: 401, json: { code: "signed_out" } })
  expect(await thief.state()).toBe("signed_out")
  expect(await app.sql("SELECT 1 FROM portal_sessions WHERE user_id = 'user_robbed'")).toEqual([])
})

describe("a sign-in that a deactivation overtakes leaves no session", () => {
  /** Signs in while the user is being deactivated, and returns the refusal and the sessions after a reactivation. */
  const overtaken = async (userId: string, enter: () => Promise<Answer>) => {
    const entering = await beside(
      [`UPDATE users SET status = 'deactivated' WHERE id = '${userId}'`, `DELETE FROM portal_sessions WHERE user_id = '${userId}'`],
      async () => {
        const entered = enter()
        await Promise.race([entered, until("the sign-in waits", () => waiting(1))])
        return () => entered
      }
    )
    const { json, status } = await entering()
    await app.feed([user(userId, "org_a", ["vault_a"])])
    return [status, json.code, await app.sql("SELECT 1 FROM portal_sessions WHERE user_id = $1", [userId])]
  }

  test("with a password", async () => {
    await app.feed([user("user_entering", "org_a", ["vault_a"])])
    await signedIn(app, "user_entering")
    const own = { email: "user_entering@example.com", password: PASSWORD }
    const left = await overtaken("user_entering", () => new Visitor(app).request("POST", "/api/sign-in", own))
    expect(left).toEqual([401, "sign_in_failed", []])
  })

  test("with a passkey", async () => {
    await app.feed([user("user_returning", "org_a", ["vault_a"])])
    const visitor = await signedIn(app, "user_returning")
    const passkey = new BrowserPasskey(visitor.origin)
    const options = await visitor.request("POST", "/api/passkeys/options", { confirmation: { code: visitor.backupCode() } })
    const named = { name: "New", answer: passkey.created(options.json) }
    expect((await visitor.request("POST", "/api/passkeys", named)).status).toBe(200)
    const signIn = async () => {
      const { json } = await new Visitor(app).request("POST", "/api/sign-in/passkey/options", {})
      return new Visitor(app).request("POST", "/api/sign-in/passkey", passkey.used(json))
    }
    expect((await signIn()).status).toBe(200)
    expect(await overtaken("user_returning", signIn)).toEqual([401, "signed_out", []])
  })
})
