/**
 * Planted secrets: signing secrets, values of headers, OAuth secrets and tokens, API keys, the master key, the platform token and the database's password are used in
 * every way that the service offers, and afterwards appear nowhere: not in a dump of the database, not in logs,
 * traces, metrics or responses, not in what endpoints receive, and not in Temporal's histories.
 * Reliability T9, T10, T21, T22. Decisions D-10, D-25.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import { randomUUID } from "node:crypto"
import { Client, Connection } from "@temporalio/client"
import pg from "pg"
import { App } from "../../support/app.ts"
import { Receiver, receiverEnv, until } from "../../support/receiver.ts"
import { ALICE, BOB, hash, transaction } from "../../support/records.ts"
import { create, useKeys } from "../../support/webhookFixtures.ts"

const receiver = new Receiver()
const app = new App()
/** What an OTLP collector received. */
const traced: Array<string> = []
let collector: ReturnType<typeof Bun.serve> | undefined

beforeAll(async () => {
  await receiver.open()
  collector = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      traced.push(`${request.url} ${JSON.stringify(Object.fromEntries(request.headers.entries()))} ${await request.text()}`)
      return new Response("{}")
    }
  })
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    LOG_LEVEL: "debug",
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
    WEBHOOK_RETRY_SCHEDULE: "0s,1s"
  })
})
afterAll(async () => {
  await app.close()
  await receiver.close()
  await collector?.stop(true)
})
const keys = useKeys(app)

/** Every row of every table, with bytes as hex and as text. */
const dump = async (): Promise<string> => {
  const client = new pg.Client({ connectionString: app.databaseUrl })
  await client.connect()
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      "SELECT c.oid::regclass::text AS name FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'"
    )
    const parts: Array<string> = []
    for (const { name } of tables) {
      const { rows } = await client.query<Record<string, unknown>>(`SELECT * FROM ${name}`)
      for (const row of rows) {
        const bytes = Object.values(row).flatMap((value) =>
          Buffer.isBuffer(value) ? [value.toString("latin1"), value.toString("hex")] : []
        )
        parts.push(`${name} ${JSON.stringify(row)} ${bytes.join(" ")}`)
      }
    }
    return parts.join("\n")
  } finally {
    await client.end()
  }
}

/** Every event of every workflow on the app's task queues, with decoded payloads. */
const histories = async (): Promise<{ readonly count: number; readonly text: string }> => {
  const connection = await Connection.connect({ address: app.env["TEMPORAL_ADDRESS"] ?? "" })
  try {
    const client = new Client({ connection })
    const parts: Array<string> = []
    let count = 0
    for await (const { runId, taskQueue, workflowId } of client.workflow.list()) {
      if (!taskQueue.startsWith(app.env["TEMPORAL_TASK_QUEUE"] ?? "none")) continue
      count++
      const handle = client.workflow.getHandle(workflowId, runId)
      const { memo, searchAttributes } = await handle.describe()
      parts.push(
        workflowId,
        JSON.stringify([memo, searchAttributes]),
        JSON.stringify(await handle.fetchHistory(), (_, value) => {
          if (value instanceof Uint8Array) return Buffer.from(value).toString("latin1")
          return typeof value === "bigint" ? String(value) : value
        })
      )
    }
    return { count, text: parts.join("\n") }
  } finally {
    await connection.close()
  }
}

test("no planted secret appears in any dump, log, trace, response, delivery or history", async () => {
  const answers: Array<string> = []
  const ask = async (...[method, target, options]: Parameters<App["request"]>) => {
    const answer = await app.request(method, target, options)
    answers.push(`${JSON.stringify(Object.fromEntries(answer.headers.entries()))} ${answer.text}`)
    return answer
  }
  receiver.on("/refuses", ({ headers }) => new Response(JSON.stringify(headers), { status: 500 }))
  const key = keys.owner
  const created = await app.request("POST", "/v1/webhooks", {
    key,
    headers: { "idempotency-key": randomUUID() },
    body: {
      url: receiver.url("/hook"),
      entityIds: ["entity_a"],
      eventKinds: ["transaction.confirmed"],
      notificationEmail: "ops@example.com"
    }
  })
  expect(created.status).toBe(201)
  const { id, secret: first } = created.json
  const rotated = await app.request("POST", `/v1/webhooks/${id}/rotate-secret`, { key, headers: { "idempotency-key": randomUUID() } })
  const { secret: second } = rotated.json
  const [headerValue, laterValue] = [`h-${randomUUID()}`, `h-${randomUUID()}`]
  const headersOf = (value: string) => [{ name: "Authorization", value: `Bearer ${value}` }]
  const refusing = await create(app, key, { url: receiver.url("/refuses"), headers: headersOf(headerValue) })

  const [clientSecret, token] = [`s-${randomUUID()}`, `t-${randomUUID()}`]
  receiver.on("/token", ({ headers }) =>
    decodeURIComponent(atob((headers["authorization"] ?? "").replace("Basic ", ""))) === `custody:${clientSecret}`
      ? Response.json({ access_token: token, token_type: "bearer", expires_in: 600 })
      : Response.json({ error: "invalid_client", error_description: clientSecret }, { status: 400 })
  )
  const oauth = { tokenUrl: receiver.url("/token"), clientId: "custody", clientSecret }
  const granted = await create(app, key, { url: receiver.url("/refuses"), oauth })
  const denied = await create(app, key, { url: receiver.url("/refuses"), oauth: { ...oauth, clientId: "other" } })

  // Delivered, refused and retried, pinged, redelivered, disabled.
  await app.feed([transaction("vault_a", 1), transaction("vault_a", 2)])
  const ended = async (webhookId: string, status: string) =>
    (await ask("GET", `/v1/webhooks/${webhookId}/deliveries?status=${status}`, { key })).json.data
  await until("deliveries", async () => (await ended(id, "DELIVERED")).length === 2)
  const [failed] = await until("failures", async () =>
    (await ended(refusing.id, "FAILED")).length === 2 ? ended(refusing.id, "FAILED") : undefined
  )
  expect((await ask("POST", `/v1/webhooks/${id}/ping`, { key })).json.success).toBe(true)
  expect((await ask("POST", `/v1/webhook-deliveries/${failed.id}/redeliver`, { key })).status).toBe(202)
  await until("the redelivery", async () => (await ended(refusing.id, "FAILED")).length === 3)
  for (const [webhookId, result] of [
    [granted.id, "5xx"],
    [denied.id, "auth_error"]
  ]) {
    const [attempt] = (await until("an attempt", async () => (await ended(webhookId, "FAILED"))[0])).attempts
    expect(attempt).toMatchObject({ result })
    expect(`${attempt.bodySnippet}${attempt.detail}`).toContain("***")
    await ask("PATCH", `/v1/webhooks/${webhookId}`, { key, body: { oauth: { clientSecret, scope: `${clientSecret}\n` } } })
  }
  await ask("PATCH", `/v1/webhooks/${refusing.id}`, { key, body: { headers: headersOf(laterValue) } })
  for (const target of [headerValue, laterValue]) {
    await ask("PATCH", `/v1/webhooks/${refusing.id}`, { key, body: { headers: [{ name: target, value: `${target}\n` }] } })
    await ask("PATCH", `/v1/webhooks/${refusing.id}`, { key, body: { headers: { Authorization: target } } })
  }
  expect((await ask("POST", `/v1/webhooks/${refusing.id}/ping`, { key })).json.bodySnippet).toContain("***")
  for (const target of [
    "/v1/webhooks",
    "/v1/audit-log",
    `/v1/webhooks/${refusing.id}`,
    `/v1/webhooks/${id}`,
    "/v1/webhook-events",
    `/v1/webhook-events/${failed.eventId}`
  ])
    await ask("GET", target, { key })

  // Secrets in places where they do not belong.
  for (const planted of [first, second, key]) {
    const target = encodeURIComponent(planted)
    await ask("GET", `/v1/webhooks/${target}`, { key })
    await ask("GET", `/v1/vaults/${target}/balances`, { key })
    await ask("PATCH", `/v1/webhooks/${id}`, { key, raw: "{", headers: { "content-type": "application/json" } })
    await ask("GET", "/v1/vaults", { key: `${planted}x` })
    await ask("GET", "/v1/vaults", { key, headers: { cookie: `a=${planted}`, referer: `https://x/?a=${target}`, "user-agent": planted } })
  }
  answers.push(
    await (await fetch(`${app.main?.platformUrl}/metrics`)).text(),
    await (await fetch(`${app.main?.platformUrl}/health/ready`)).text()
  )
  await until("traces", () => traced.length > 0)
  const [stored, temporal] = [await dump(), await histories()]
  await app.main?.end()
  const output = app.main?.output() ?? ""

  // Each place was really searched.
  expect(stored).toContain(id)
  expect(output).toContain(failed.id)
  expect(temporal.count).toBeGreaterThanOrEqual(6)
  expect(temporal.text).toContain(failed.id)
  expect(traced.join("")).toContain("rotateSecret")
  expect(receiver.requests.length).toBeGreaterThanOrEqual(9)
  const sent = receiver.requests.map(({ body, headers }) => `${JSON.stringify(headers)} ${body}`)

  const bytes = (secret: string) => Buffer.from(secret.replace(/^whsec_/, ""), "base64")
  const master = app.env["MASTER_KEY"] ?? ""
  const canaries = Object.entries({
    "signing secret": first.slice(6, 46),
    "signing secret, its bytes": bytes(first).toString("latin1"),
    "signing secret, its bytes in hex": bytes(first).toString("hex"),
    "rotated secret": second.slice(6, 46),
    "another webhook's secret": refusing.secret.slice(6, 46),
    "value of a header": headerValue,
    "value of a header, after an update": laterValue,
    "OAuth client's secret": clientSecret,
    "access token": token,
    "API key": key.slice(4, 40),
    "master key": master.slice(0, 40),
    "master key, its bytes": bytes(master).toString("latin1"),
    "master key, its bytes in hex": bytes(master).toString("hex"),
    "platform token": app.env["PLATFORM_TOKEN"] ?? "",
    "database password": new URL(app.databaseUrl).password
  })
  const places = {
    dump: stored,
    log: output,
    traces: traced.join("\n"),
    answers: answers.join("\n"),
    deliveries: sent.join("\n"),
    temporal: temporal.text
  }
  // The endpoint gets headers and tokens.
  expect([headerValue, laterValue, token].map((value) => places.deliveries.includes(value))).toEqual([true, true, true])
  for (const [name, canary] of canaries) {
    expect(canary.length).toBeGreaterThan(16)
    for (const [place, text] of Object.entries(places)) {
      if (place === "deliveries" && (name.startsWith("value of a header") || name === "access token")) continue
      expect([name, place, text.includes(canary)]).toEqual([name, place, false])
    }
  }
  // Decision D-35: a history contains ids, numbers, results and the host. Everything else is in the database.
  for (const known of [receiver.url("/hook"), receiver.url("/refuses"), "https://", hash(1), hash(2), ALICE, BOB, "ops@example.com"])
    expect([known, stored.includes(known), temporal.text.includes(known)]).toEqual([known, true, false])
})
