/** `Idempotency-Key` on create, rotate and redeliver. Decision D-13. */
import { describe, expect, test } from "bun:test"
import { randomUUID } from "node:crypto"
import { Client } from "pg"
import { type Answer, useApp } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { transaction, user } from "../../support/records.ts"
import { create, fields, short, tryCreate, useKeys } from "../../support/webhookFixtures.ts"

const app = useApp()
const keys = useKeys(app)

const createOnce = (idempotencyKey: string, more: { readonly [field: string]: unknown } = {}, key = keys.owner) =>
  tryCreate(app, key, more, { "idempotency-key": idempotencyKey })
const post = (target: string, idempotencyKey: string, more: { readonly key?: string; readonly body?: unknown } = {}) =>
  app.request("POST", target, { key: keys.owner, headers: { "idempotency-key": idempotencyKey }, ...more })
const webhooks = async () => (await app.walk("/v1/webhooks", keys.owner)).length

/** A delivered delivery of a new event to a new webhook, as a dispatcher and a worker would leave it. */
const delivered = async (number: number) => {
  const webhook = await create(app, keys.owner)
  await app.feed([transaction("vault_a", number)])
  const [event] = await app.walk("/v1/webhook-events?limit=1", keys.owner)
  const id = event.id.replace("evt_", "del_")
  await app.sql(
    `INSERT INTO deliveries (id, event_id, webhook_id, organization_id, sequence, kind, status, delivered_at)
     VALUES ($1, $2, $3, 'org_a', 1, 'transaction.confirmed', 'DELIVERED', now())`,
    [id, event.id, webhook.id]
  )
  return { webhook, id }
}

describe("repetition with the same idempotency key and body", () => {
  test("create: one webhook, and the same response to the byte, including the secret", async () => {
    const [before, key] = [await webhooks(), randomUUID()]
    const first = await createOnce(key)
    const second = await createOnce(key)
    // The same body with another field order and spelling is the same body.
    const spelled = JSON.stringify(Object.fromEntries(Object.entries({ ...fields(), vaultIds: null }).reverse()), null, 2)
    const third = await app.request("POST", "/v1/webhooks", {
      key: keys.owner,
      raw: spelled,
      headers: { "idempotency-key": key, "content-type": "application/json" }
    })
    expect([first.status, second.status, third.status]).toEqual([201, 201, 201])
    expect([second.text, third.text]).toEqual([first.text, first.text])
    expect(first.json.secret).toStartWith("whsec_")
    expect(await webhooks()).toBe(before + 1)
  })

  test("what is stored reveals nothing of a body, not even to who guesses it", async () => {
    const stored = async (headers: unknown) => {
      const key = randomUUID()
      expect(short(await createOnce(key, { status: "DISABLED", headers }))).toBe("201")
      const [row] = await app.sql("SELECT encode(fingerprint, 'hex') AS text FROM idempotency_keys WHERE idempotency_key = $1", [key])
      return row?.["text"]
    }
    const headers = [{ name: "X-Api-Key", value: "k" }]
    expect(await stored(headers)).not.toBe(await stored(headers))
  })

  test("rotate: one rotation, the same secret", async () => {
    const { id } = await create(app, keys.owner, { status: "DISABLED" })
    const key = randomUUID()
    const answers: Array<Answer> = []
    for (let count = 0; count < 4; count++) answers.push(await post(`/v1/webhooks/${id}/rotate-secret`, key))
    expect(answers.map(({ status, text }) => [status, text])).toEqual(answers.map(() => [200, answers[0]?.text ?? ""]))
    expect((await app.sql("SELECT 1 FROM webhook_secrets WHERE webhook_id = $1", [id])).length).toBe(2)
  })

  test("rotate with expirePrevious: a repeat expires no later secret, and a plain rotation differs", async () => {
    const { id } = await create(app, keys.owner, { status: "DISABLED" })
    const key = randomUUID()
    const path = `/v1/webhooks/${id}/rotate-secret`
    const body = { expirePrevious: "now" }
    const first = await post(path, key, { body })
    expect(short(await post(path, randomUUID()))).toBe("200")
    expect((await post(path, key, { body })).text).toBe(first.text)
    expect((await app.sql("SELECT 1 FROM webhook_secrets WHERE webhook_id = $1", [id])).length).toBe(2)
    expect(short(await post(path, key))).toBe("422 idempotency_key_reused")
  })

  test("redeliver: one delivery", async () => {
    const { id } = await delivered(1)
    const key = randomUUID()
    const first = await post(`/v1/webhook-deliveries/${id}/redeliver`, key)
    const second = await post(`/v1/webhook-deliveries/${id}/redeliver`, key)
    expect([first.status, second.status, second.text]).toEqual([202, 202, first.text])
    expect((await app.sql("SELECT 1 FROM deliveries WHERE replayed_from = $1", [id])).length).toBe(1)
    // Without the key, and with another one, the operation runs again.
    expect((await app.request("POST", `/v1/webhook-deliveries/${id}/redeliver`, { key: keys.owner })).json.id).not.toBe(first.json.id)
    expect((await post(`/v1/webhook-deliveries/${id}/redeliver`, randomUUID())).json.id).not.toBe(first.json.id)
    expect((await app.sql("SELECT 1 FROM deliveries WHERE replayed_from = $1", [id])).length).toBe(3)
  })

  test("another body, path or method with the key gets 422", async () => {
    const key = randomUUID()
    const { json } = await createOnce(key, { status: "DISABLED" })
    const { id } = await delivered(2)
    const others = [
      await createOnce(key),
      await createOnce(key, { status: "DISABLED", url: "https://hooks.example.com/other" }),
      await post(`/v1/webhooks/${json.id}/rotate-secret`, key),
      await post(`/v1/webhook-deliveries/${id}/redeliver`, key)
    ]
    expect(others.map(short)).toEqual(others.map(() => "422 idempotency_key_reused"))
    const rotation = randomUUID()
    const rotated = await post(`/v1/webhooks/${json.id}/rotate-secret`, rotation)
    // An empty object is no body.
    expect((await post(`/v1/webhooks/${json.id}/rotate-secret`, rotation, { body: {} })).text).toBe(rotated.text)
  })

  test("a refusal is not stored: a refused request can be repeated", async () => {
    const key = randomUUID()
    expect(short(await createOnce(key, { url: "https://localhost/" }))).toBe("422 url_not_deliverable")
    expect(short(await createOnce(key, { status: "DISABLED" }))).toBe("201")
  })

  test("concurrent requests: one is carried out, and the others get 409 or its response", async () => {
    const [before, key] = [await webhooks(), randomUUID()]
    const answers = await Promise.all(Array.from({ length: 20 }, () => createOnce(key, { status: "DISABLED" })))
    const made = answers.filter(({ status }) => status === 201)
    expect(made.length).toBeGreaterThanOrEqual(1)
    expect(new Set(made.map(({ text }) => text)).size).toBe(1)
    for (const answer of answers.filter(({ status }) => status !== 201)) expect(short(answer)).toBe("409 idempotency_in_progress")
    expect(await webhooks()).toBe(before + 1)
  })

  test("while the first is in progress, the same key gets 409 with Retry-After", async () => {
    const { id } = await create(app, keys.owner, { status: "DISABLED" })
    const key = randomUUID()
    const blocker = new Client({ connectionString: app.databaseUrl })
    await blocker.connect()
    await blocker.query("BEGIN")
    await blocker.query("SELECT 1 FROM webhooks WHERE id = $1 FOR UPDATE", [id])
    const first = post(`/v1/webhooks/${id}/rotate-secret`, key)
    await until("the first to wait for the row", async () => {
      const rows = await app.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
      return rows.length > 0
    })
    const second = await post(`/v1/webhooks/${id}/rotate-secret`, key)
    expect([short(second), second.headers.get("retry-after")]).toEqual(["409 idempotency_in_progress", "1"])
    await blocker.query("ROLLBACK")
    await blocker.end()
    expect(short(await first)).toBe("200")
    expect((await post(`/v1/webhooks/${id}/rotate-secret`, key)).text).toBe((await first).text)
  })

  test("an idempotency key belongs to its API key", async () => {
    const other = (await app.key("user_a")).secret
    const key = randomUUID()
    const [mine, theirs] = [await createOnce(key, { status: "DISABLED" }), await createOnce(key, { status: "DISABLED" }, other)]
    expect([mine.status, theirs.status]).toEqual([201, 201])
    expect(theirs.json.id).not.toBe(mine.json.id)
  })

  test("a response is stored for 24 hours", async () => {
    const key = randomUUID()
    const first = await createOnce(key, { status: "DISABLED" })
    const age = (interval: string) =>
      app.sql("UPDATE idempotency_keys SET created_at = now() - $2::interval WHERE idempotency_key = $1", [key, interval])
    await age("23 hours 59 minutes")
    expect((await createOnce(key, { status: "DISABLED" })).text).toBe(first.text)
    await age("24 hours 1 second")
    const again = await createOnce(key, { status: "DISABLED" })
    expect([again.status, again.json.id === first.json.id]).toEqual([201, false])
    expect((await createOnce(key, { status: "DISABLED" })).text).toBe(again.text)
  })

  test("a stored response survives a restart of the service", async () => {
    const key = randomUUID()
    const first = await createOnce(key, { status: "DISABLED" })
    await app.main?.end("SIGKILL")
    app.main = await app.start(["api"])
    expect((await createOnce(key, { status: "DISABLED" })).text).toBe(first.text)
  })

  test("an idempotency key has 1 to 255 printable characters without spaces; any other gets 400", async () => {
    for (const key of ["", " ", "a b", "ä", "x".repeat(256), "a\tb"]) {
      const answer = await createOnce(key, { status: "DISABLED" })
      expect([key, short(answer), answer.json.errors?.[0]?.in, answer.json.errors?.[0]?.field]).toEqual([
        key,
        "400 invalid_parameter",
        "header",
        "Idempotency-Key"
      ])
    }
    for (const key of ["x", "!~", "x".repeat(255), '"quoted"']) expect(short(await createOnce(key, { status: "DISABLED" }))).toBe("201")
  })
})

describe("A stored response grants nothing", () => {
  test("a key that may no longer rotate or redeliver does not get the secret again", async () => {
    const one = user("user_k", "org_a", ["vault_a", "vault_a2"], { organizationRole: "owner" })
    await app.feed([one])
    const { secret: key } = await app.key("user_k")
    const { id, webhook } = await delivered(3)
    const [rotation, redelivery, creation] = [randomUUID(), randomUUID(), randomUUID()]
    const ask = async () => [
      short(await post(`/v1/webhooks/${webhook.id}/rotate-secret`, rotation, { key })),
      short(await post(`/v1/webhook-deliveries/${id}/redeliver`, redelivery, { key })),
      short(await createOnce(creation, { status: "DISABLED" }, key))
    ]
    expect(await ask()).toEqual(["200", "202", "201"])
    await app.feed([{ ...one, organizationRole: "member" }])
    expect(await ask()).toEqual(["403 owner_required", "403 owner_required", "403 owner_required"])
    await app.feed([{ ...one, organizationRole: "member", vaultRoles: [] }])
    expect(await ask()).toEqual(["404 not_found", "404 not_found", "403 owner_required"])
    await app.feed([one])
    expect(await ask()).toEqual(["200", "202", "201"])
    await app.request("DELETE", `/v1/webhooks/${webhook.id}`, { key: keys.owner })
    expect((await ask()).slice(0, 2)).toEqual(["404 not_found", "404 not_found"])
  })

  test("the secret of a deleted webhook is not returned again", async () => {
    const key = randomUUID()
    const first = await createOnce(key, { status: "DISABLED" })
    expect((await createOnce(key, { status: "DISABLED" })).text).toBe(first.text)
    await app.request("DELETE", `/v1/webhooks/${first.json.id}`, { key: keys.owner })
    const again = await createOnce(key, { status: "DISABLED" })
    expect(short(again)).toBe("422 idempotency_key_reused")
    expect(again.text).not.toContain("whsec_")
  })

  test("a key that was limited to other vaults does not get the secret again", async () => {
    const { key: limited, secret } = await app.key("user_a")
    const key = randomUUID()
    expect(short(await createOnce(key, { status: "DISABLED" }, secret))).toBe("201")
    await app.sql("UPDATE api_keys SET vault_ids = ARRAY['vault_a'] WHERE id = $1", [limited.id])
    expect(short(await createOnce(key, { status: "DISABLED" }, secret))).toBe("422 idempotency_key_reused")
  })
})
