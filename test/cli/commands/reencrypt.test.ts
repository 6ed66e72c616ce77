/** `custody secrets reencrypt`: the rotation of the master key, on a running service. Decision D-25. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { spawn } from "node:child_process"
import { randomBytes, randomUUID } from "node:crypto"
import * as path from "node:path"
import pg from "pg"
import { Webhook } from "standardwebhooks"
import { sealedColumns } from "../../../src/cli/commands/run/reencrypt.ts"
import { sealing } from "../../../src/runtime/crypto/MasterKey.ts"
import { App, baseEnv, cli, PROGRAM } from "../../support/app.ts"
import { Receiver, receiverEnv, until } from "../../support/receiver.ts"
import { create, fields, useKeys } from "../../support/webhookFixtures.ts"

const receiver = new Receiver()
const app = new App()
const older = randomBytes(32),
  newer = randomBytes(32)
const [before, after] = [sealing(older, undefined), sealing(newer, undefined)]
const [olderKey, newerKey] = [older.toString("base64"), newer.toString("base64")]
const both = { MASTER_KEY: newerKey, MASTER_KEY_PREVIOUS: olderKey }

beforeAll(async () => {
  await receiver.open()
  await app.open(["api", "worker"], { ...receiverEnv(receiver), MASTER_KEY: olderKey })
})
afterAll(async () => {
  await app.close()
  await receiver.close()
})
const keys = useKeys(app)

/** The number of stored secrets and the key that encrypts each; expired ones included, so that one webhook has them all. */
const ROWS = 20_000
const HELD = 9_750

const plant = async (webhookId: string) => {
  const ciphertexts = Array.from({ length: ROWS }, (_, index) => before.seal("webhook-secret", Buffer.from(`secret ${index}`), webhookId))
  await app.sql(
    "INSERT INTO webhook_secrets (webhook_id, ciphertext, expires_at) SELECT $1, c, now() FROM unnest($2::bytea[]) WITH ORDINALITY AS s (c, n) ORDER BY n",
    [webhookId, ciphertexts]
  )
}

const planted = async (webhookId: string) => {
  const rows = await app.sql("SELECT ciphertext FROM webhook_secrets WHERE webhook_id = $1 AND expires_at IS NOT NULL ORDER BY id", [
    webhookId
  ])
  return rows.map(({ ciphertext }) => {
    if (!Buffer.isBuffer(ciphertext)) throw new Error("a ciphertext is no bytes")
    const [old, current] = [before.open("webhook-secret", ciphertext, webhookId), after.open("webhook-secret", ciphertext, webhookId)]
    return { old: old?.toString(), current: current?.toString() }
  })
}

const reencrypt = (env: { readonly [name: string]: string }) => cli(["secrets", "reencrypt"], { ...app.env, ...env })

/** Pings the webhook and returns whether this secret signed the request. */
const signs = async (id: string, secret: string): Promise<boolean> => {
  const seen = receiver.requests.length
  const ping = await app.request("POST", `/v1/webhooks/${id}/ping`, { key: keys.owner })
  expect(ping.json).toMatchObject({ success: true })
  const request = receiver.requests.at(-1)
  if (request === undefined || seen === receiver.requests.length) return false
  try {
    new Webhook(secret).verify(request.body, { ...request.headers })
    return true
  } catch {
    return false
  }
}

test("every sealed value is re-encrypted while the service runs, even after a kill -9", async () => {
  const idempotencyKey = randomUUID()
  const createOnce = () =>
    app.request("POST", "/v1/webhooks", {
      key: keys.owner,
      body: fields({ url: receiver.url("/hook") }),
      headers: { "idempotency-key": idempotencyKey }
    })
  const first = await createOnce()
  expect(first.status).toBe(201)
  const { id, secret } = first.json
  const full = await create(app, keys.owner, {
    status: "DISABLED",
    url: receiver.url("/gateway"),
    headers: [{ name: "X-Api-Key", value: "k" }]
  })
  await plant(full.id)
  await app.main?.end()

  // Every process has both keys now; secrets that only the previous key opens still sign.
  app.main = await app.start(["api", "worker"], both)
  expect(await signs(id, secret)).toBe(true)

  // A lock on one row stops the command halfway, and it is killed while it waits.
  const holder = new pg.Client({ connectionString: app.databaseUrl })
  await holder.connect()
  holder.on("error", () => {})
  await holder.query("BEGIN")
  await holder.query(
    `SELECT 1 FROM webhook_secrets WHERE id = (
       SELECT id FROM webhook_secrets WHERE webhook_id = $1 AND expires_at IS NOT NULL ORDER BY id OFFSET $2 LIMIT 1) FOR UPDATE`,
    [full.id, HELD]
  )
  const killed = spawn(process.execPath, [PROGRAM, "secrets", "reencrypt"], {
    cwd: path.resolve(import.meta.dir, "../../.."),
    env: { ...baseEnv(), ...app.env, ...both },
    stdio: "ignore"
  })
  const moved = () => planted(full.id).then((rows) => rows.filter(({ current }) => current !== undefined).length)
  await until("values before the held one are moved", async () => (await moved()) >= HELD - 1_000)
  killed.kill("SIGKILL")
  await new Promise((resolve) => killed.once("exit", resolve))
  await holder.end()
  await until("Postgres is done with what the killed command had asked for", async () => {
    const left = await app.sql("SELECT 1 FROM pg_stat_activity WHERE application_name = 'custody-command' AND datname = current_database()")
    return left.length === 0
  })
  const half = await planted(full.id)
  // Each value is re-encrypted completely or not at all: it opens under exactly one key, to its original content.
  expect(half.map(({ current, old }) => current ?? old)).toEqual(Array.from({ length: ROWS }, (_, index) => `secret ${index}`))
  expect(half.every(({ current, old }) => (current === undefined) !== (old === undefined))).toBe(true)
  const done = half.filter(({ current }) => current !== undefined).length
  // The statement that waited for the lock may still have been executed.
  expect(done).toBeGreaterThan(HELD - 1_000)
  expect(done).toBeLessThan(HELD + 1_000)
  expect(await signs(id, secret)).toBe(true)

  // A second run, while the service creates and rotates secrets.
  const rerun = reencrypt(both)
  const meanwhile = await create(app, keys.owner, { url: receiver.url("/hook") })
  const rotated = await app.request("POST", `/v1/webhooks/${meanwhile.id}/rotate-secret`, { key: keys.owner })
  const { code, stderr, stdout } = await rerun
  expect([code, stderr]).toEqual([0, ""])
  const counts = JSON.parse(stdout)
  expect(counts.webhookSecrets.unreadable).toBe(0)
  expect(counts.webhookSecrets.reencrypted).toBeGreaterThanOrEqual(ROWS - done)
  expect(counts.webhookSecrets.reencrypted).toBeLessThanOrEqual(ROWS - done + 2)
  expect(counts.webhookSecrets.checked).toBeGreaterThanOrEqual(ROWS + 2)
  // One webhook of three has headers.
  expect(counts.gatewayCredentials).toEqual({ checked: 1, reencrypted: 1, unreadable: 0 })
  expect(counts.idempotencyAnswers).toEqual({ checked: 1, reencrypted: 1, unreadable: 0 })
  expect(counts.idempotencyFingerprints).toEqual({ checked: 1, reencrypted: 1, unreadable: 0 })
  expect((await planted(full.id)).map(({ current }) => current)).toEqual(Array.from({ length: ROWS }, (_, index) => `secret ${index}`))

  // A third run finds nothing to do.
  const again = await reencrypt({ ...both, TEMPORAL_PAYLOAD_CODEC: "aes256gcm" })
  expect([again.code, JSON.parse(again.stdout).webhookSecrets.reencrypted]).toEqual([0, 0])
  // Data stored by Temporal is not re-encrypted, and the command says so.
  expect(again.stderr).toStartWith("Temporal payloads are not re-encrypted")

  // Without the previous key, the same secrets sign, and the stored response is still returned.
  await app.main?.end()
  app.main = await app.start(["api", "worker"], { MASTER_KEY: newerKey })
  expect(await signs(id, secret)).toBe(true)
  expect(await signs(meanwhile.id, rotated.json.secret)).toBe(true)
  expect(await signs(meanwhile.id, meanwhile.secret)).toBe(true)
  expect(await signs(full.id, full.secret)).toBe(true)
  expect(receiver.to("/gateway").at(-1)?.headers["x-api-key"]).toBe("k")
  const kept = await createOnce()
  expect([kept.status, kept.text]).toEqual([201, first.text])
})

test("a value that neither key opens is left unchanged and reported, with exit code 1", async () => {
  const { id } = await create(app, keys.owner, { status: "DISABLED" })
  const foreign = sealing(randomBytes(32), undefined).seal("webhook-secret", Buffer.from("lost"), id)
  await app.sql("UPDATE webhook_secrets SET ciphertext = $2 WHERE webhook_id = $1", [id, foreign])
  const { code, stderr, stdout } = await reencrypt(both)
  expect(code).toBe(1)
  expect(stderr).toStartWith("1 values are encrypted under a key that is neither MASTER_KEY nor MASTER_KEY_PREVIOUS, and were not changed.")
  expect(JSON.parse(stdout).webhookSecrets).toMatchObject({ reencrypted: 0, unreadable: 1 })
  expect(await app.sql("SELECT ciphertext FROM webhook_secrets WHERE webhook_id = $1", [id])).toEqual([{ ciphertext: foreign }])
})

test("every binary column is sealed and re-encrypted, or known to need no encryption", async () => {
  const rows = await app.sql(`
    SELECT c.table_name || '.' || c.column_name AS name FROM information_schema.columns c
    JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
    WHERE c.table_schema = 'public' AND (c.data_type = 'bytea' OR c.udt_name = '_bytea')`)
  const sealed = Object.values(sealedColumns).map(({ column, table }) => `${table}.${column}`)
  const others = [
    "api_keys.secret_hash",
    "portal_second_factors.backup_codes",
    "portal_passkeys.public_key",
    "signing_keys.public_key",
    "entity_chains.hash",
    "event_checkpoints.hash",
    "portal_invitations.token_hash"
  ]
  expect(rows.map(({ name }) => String(name)).sort()).toEqual([...sealed, ...others].sort())
})

test("a rotation that is taken back ends with the first key alone", async () => {
  // Both orders of the keys are in use here, so the database is another's.
  const other = new App()
  try {
    await other.open([], { MASTER_KEY: olderKey })
    const run = (env: { readonly [name: string]: string }) => cli(["secrets", "reencrypt"], { ...other.env, ...env })
    expect((await run({})).code).toBe(0)
    expect((await run(both)).code).toBe(0)
    expect((await run({ MASTER_KEY: olderKey, MASTER_KEY_PREVIOUS: newerKey })).code).toBe(0)
    expect([(await run({ MASTER_KEY: olderKey })).code, (await run({ MASTER_KEY: newerKey })).code]).toEqual([0, 3])
  } finally {
    await other.close()
  }
})

test("a lost key is replaced if the operator says so, and nothing waits for it", async () => {
  const send = () =>
    app.request("POST", "/v1/webhooks", {
      key: keys.owner,
      body: fields({ url: receiver.url("/hook"), status: "DISABLED" }),
      headers: { "idempotency-key": "before" }
    })
  const made = await send()
  expect(made.status).toBe(201)
  const found = { MASTER_KEY: randomBytes(32).toString("base64") }
  expect((await reencrypt(found)).code).toBe(3)
  await app.main?.end()
  const { code, stderr } = await cli(["secrets", "reencrypt", "--key-lost"], { ...app.env, ...found })
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^\d+ values cannot be read any more\. Idempotency keys are forgotten\./)])
  app.main = await app.start(["api", "worker"], found)
  expect((await send()).status).toBe(201)
  // The owner rotates the secret.
  const { json } = await app.request("POST", `/v1/webhooks/${made.json.id}/rotate-secret`, {
    key: keys.owner,
    body: { expirePrevious: "now" }
  })
  expect(await signs(made.json.id, json.secret)).toBe(true)
})
