/** `custody listen`: prints the feed and posts it to a developer's server, through restarts of the service. C-1. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as path from "node:path"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import type { WebhookEvent } from "../../../src/client/index.ts"
import { delivery, insertDeliveries } from "../../events/log/eventRows.ts"
import { baseEnv, cli, PROGRAM, type Process, useApp } from "../../support/app.ts"
import { temporaryFiles } from "../../support/files.ts"
import { freePort } from "../../support/freePort.ts"
import { until } from "../../support/receiver.ts"
import { smallest, transaction, user, vault } from "../../support/records.ts"
import { create } from "../../support/webhookFixtures.ts"

const app = useApp()
const files = temporaryFiles()
const root = path.resolve(import.meta.dir, "../../..")
let key = ""
const base = () => app.main?.baseUrl ?? ""

/** A developer's server: records requests, and answers 500 at /broken and to the first two requests at /mended. */
interface Hook {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}
const hooks: Array<Hook> = []
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: async (request) => {
    const { pathname } = new URL(request.url)
    hooks.push({ path: pathname, headers: Object.fromEntries(request.headers.entries()), body: await request.text() })
    const isBroken = pathname === "/broken" || (pathname === "/mended" && to("mended").length <= 2)
    return new Response("ok", { status: isBroken ? 500 : 204 })
  }
})
const at = (name: string) => `http://localhost:${server.port}/${name}`
const to = (name: string) => hooks.filter(({ path }) => path === `/${name}`)

beforeAll(async () => {
  await app.feed(
    [...smallest(), vault("vault_b", "entity_a"), user("user_a", "org_a", ["vault_a", "vault_b"], { organizationRole: "owner" })],
    { "x-record-events": "none" }
  )
  key = (await app.key("user_a")).secret
})
afterAll(() => {
  files.remove()
  return server.stop(true)
})
/** The user's configuration folder, so that no test writes into a real one. */
const config = () => ({ XDG_CONFIG_HOME: path.join(files.folder, "config") })

let counter = 0
const record = async (...vaultIds: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const made = vaultIds.map((vaultId) => transaction(vaultId, ++counter))
  await app.feed(made)
  return made.map(({ hash }) => String(hash))
}
const hashOf = (text: string): string => JSON.parse(text).data.transaction.hash

/** A running `custody listen` whose output can be read. */
const listen = async (args: ReadonlyArray<string>, url = base(), env: { readonly [name: string]: string } = { CUSTODY_API_KEY: key }) => {
  const child = Bun.spawn([process.execPath, PROGRAM, "listen", "--api", url, ...args], {
    cwd: root,
    env: { ...baseEnv(), ...config(), ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe"
  })
  const seen = { out: "", errors: "" }
  const read = async (stream: ReadableStream<Uint8Array>, name: keyof typeof seen) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) seen[name] += decoder.decode(chunk, { stream: true })
  }
  const done = Promise.all([read(child.stdout, "out"), read(child.stderr, "errors")])
  const end = async (signal: NodeJS.Signals = "SIGINT") => {
    child.kill(signal)
    return whole()
  }
  const whole = async () => {
    const code = await child.exited
    await done
    return code
  }
  await until("listen", () => `${seen.out}${seen.errors}`.includes("Listening.") || child.exitCode !== null)
  return { seen, end, whole }
}

test("listen prints each event and posts it as a delivery that Standard Webhooks verifies", async () => {
  const { end, seen } = await listen(["--forward-to", at("hook"), "--key", key], base(), {})
  const hashes = await record("vault_a", "vault_b", "vault_a")
  await until("the posts", () => to("hook").length === 3 && seen.out.includes("#3"))
  const [, secret = ""] = /(whsec_\S+)/.exec(seen.out) ?? []
  for (const [index, { body, headers }] of to("hook").entries()) {
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body))
    expect(hashOf(body)).toBe(hashes[index] ?? "")
    const event = (await app.get(`/v1/webhook-events/${headers["webhook-id"]}`, key)).json
    // The same bytes that a webhook receives.
    expect(body).toBe(JSON.stringify(event.payload))
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "user-agent": "custody-data-service-webhooks/1",
      "x-service-event-kind": "transaction.confirmed",
      "x-service-attempt": "1",
      "x-service-delivery-id": expect.stringMatching(/^del_\w{26}$/),
      "x-service-signature": expect.stringMatching(/^t=\d+,v1=[0-9a-f]{64}$/),
      "webhook-sequence": String(index + 1)
    })
  }
  expect(await end()).toBe(0)
  expect(seen.out.split("\n").filter((line) => /transaction\.confirmed.*ETH +#\d +✓ 204 +\d+ ms$/.test(line)).length).toBe(3)
  expect(seen.errors).toBe("")
})

test("a failed forward is repeated at most five times, while the next events follow", async () => {
  const secret = `whsec_${Buffer.alloc(24, 7).toString("base64")}`
  const { end, seen } = await listen(["--forward-to", at("broken"), "--secret", secret, "--vault", "vault_b"])
  await record("vault_a", "vault_b", "vault_b")
  await until("the repeats", () => seen.out.includes("#1 try 6") && seen.out.includes("#2 try 6"))
  const requests = Map.groupBy(to("broken"), ({ headers }) => headers["x-service-delivery-id"])
  expect(
    [...requests.values()].map((all) => all.map(({ headers }) => [headers["webhook-sequence"], headers["x-service-attempt"]])).sort()
  ).toEqual(["1", "2"].map((sequence) => ["1", "2", "3", "4", "5", "6"].map((attempt) => [sequence, attempt])))
  // The second event did not wait for the repeats of the first.
  const sequences = to("broken").map(({ headers }) => headers["webhook-sequence"])
  expect(sequences.indexOf("2")).toBeLessThan(sequences.lastIndexOf("1"))
  expect(seen.out.match(/✗ 500/g)?.length).toBe(12)
  for (const { body, headers } of to("broken")) expect(new Webhook(secret).verify(body, headers)).toBeDefined()
  expect(await end("SIGTERM")).toBe(0)
  const closed = await listen(["--forward-to", "http://127.0.0.1:1/hook"])
  await record("vault_a")
  await until("the failure", () => closed.seen.out.includes("✗ ECONNREFUSED"))
  expect(await closed.end()).toBe(0)
})

test("a repeated forward ends with the first success", async () => {
  const { end, seen } = await listen(["--forward-to", at("mended")])
  await record("vault_a", "vault_a")
  await until("the successes", () => seen.out.match(/✓ 204/g)?.length === 2)
  expect(seen.out).toMatch(/#1 try 2 +✓ 204/)
  expect(
    to("mended")
      .map(({ headers }) => headers["webhook-sequence"])
      .sort()
  ).toEqual(["1", "1", "2", "2"])
  expect(await end()).toBe(0)
})

test("the secret is kept in the configuration folder, readable by its user only", async () => {
  const own = { CUSTODY_API_KEY: key, XDG_CONFIG_HOME: path.join(files.folder, "own") }
  const secrets: Array<string | undefined> = []
  for (let count = 0; count < 2; count++) {
    const { end, seen } = await listen(["--forward-to", at("kept")], base(), own)
    secrets.push(/(whsec_\S+)/.exec(seen.out)?.[1])
    await end()
  }
  const file = path.join(path.join(files.folder, "own"), "custody", "listen-secret")
  const text = fs.readFileSync(file, "utf8").trim()
  expect(secrets).toEqual([text, text])
  expect([fs.statSync(file).mode & 0o777, fs.statSync(path.dirname(file)).mode & 0o777]).toEqual([0o600, 0o700])
  // A given secret is used and not kept.
  const given = `whsec_${Buffer.alloc(24, 9).toString("base64")}`
  const { end, seen } = await listen(["--forward-to", at("kept"), "--secret", given], base(), own)
  expect(seen.out).toContain(given)
  await end()
  expect(fs.readFileSync(file, "utf8").trim()).toBe(text)
  fs.writeFileSync(file, "hunter2")
  expect(await cli(["listen", "--api", base(), "--forward-to", at("kept")], own)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`${file} is expected to be whsec_`)
  })
})

test("a redelivered event is shown and posted again, if it passes the filters", async () => {
  const { id } = await create(app, key, { entityIds: ["entity_a"] })
  await record("vault_a", "vault_b")
  const { data } = (await app.get("/v1/webhook-events?limit=2", key)).json
  const sent = data.map(({ id: eventId, vaultIds }: WebhookEvent) => delivery({ eventId, vaultId: vaultIds?.[0] ?? null, webhookId: id }))
  const [wanted] = data.filter(({ vaultIds }: WebhookEvent) => vaultIds?.[0] === "vault_b")
  await insertDeliveries(app, sent)
  const { end, seen } = await listen(["--json", "--forward-to", at("redelivered"), "--vault", "vault_b"])
  const shown = () => seen.out.split("\n").flatMap((line) => (line.includes("redeliveredAs") ? [JSON.parse(line)] : []))
  const made: Array<string> = []
  // What is redelivered before the first look counts as earlier.
  await until("a redelivery", async () => {
    for (const one of sent) made.push((await app.request("POST", `/v1/webhook-deliveries/${one.id}/redeliver`, { key })).json.id)
    return shown().length > 0
  })
  for (const one of shown()) {
    expect([one.id, one.vaultIds, one.forwarded.status]).toEqual([wanted.id, ["vault_b"], 204])
    expect(made).toContain(one.redeliveredAs)
  }
  expect(to("redelivered")[0]?.headers).toMatchObject({ "webhook-id": wanted.id, "x-service-attempt": "1" })
  expect(await end()).toBe(0)
})

test("redeliveries whose events could not be read for a while are shown later, each once", async () => {
  const { id } = await create(app, key, { entityIds: ["entity_a"] })
  await record("vault_b")
  const [{ id: eventId }] = (await app.get("/v1/webhook-events?limit=1", key)).json.data
  const sent = delivery({ eventId, vaultId: "vault_b", webhookId: id })
  await insertDeliveries(app, [sent])
  /** How many more requests for an event fail: one with its retries makes three. */
  let failing = 0
  const proxy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: ({ headers, method, signal, url }) => {
      const { pathname, search } = new URL(url)
      if (pathname.startsWith("/v1/webhook-events/") && failing > 0) {
        failing--
        return new Response(null, { status: 503 })
      }
      return fetch(`${base()}${pathname}${search}`, { headers, method, signal })
    }
  })
  const { end, seen } = await listen(["--json"], proxy.url.origin)
  const shown = () => seen.out.split("\n").flatMap((line) => (line.includes("redeliveredAs") ? [JSON.parse(line).redeliveredAs] : []))
  const made: Array<string> = []
  const redeliver = async () => made.push((await app.request("POST", `/v1/webhook-deliveries/${sent.id}/redeliver`, { key })).json.id)
  // What is redelivered before the first look counts as earlier.
  await until("a redelivery", async () => {
    await redeliver()
    return shown().length > 0
  })
  failing = 3
  await redeliver()
  await redeliver()
  await until("the last redelivery", () => shown().includes(made.at(-1)))
  expect([failing, shown()]).toEqual([0, made.slice(made.indexOf(shown()[0]))])
  expect(await end()).toBe(0)
  await proxy.stop(true)
})

test("--sample posts one marked event of a kind and exits, without a key", async () => {
  const send = (kind: string, ...more: ReadonlyArray<string>) => cli(["listen", "--api", base(), "--sample", kind, ...more], config())
  const sent = await send("balance.updated", "--forward-to", at("sample"))
  expect([sent.code, sent.stdout.match(/balance\.updated +.*#1 +✓ 204/)?.length]).toEqual([0, 1])
  const [first] = to("sample")
  const { body, headers } = first ?? { body: "", headers: {} as Hook["headers"] }
  const [, secret = ""] = /(whsec_\S+)/.exec(sent.stdout) ?? []
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({ kind: "balance.updated", data: { test: true } })
  expect([to("sample").length, headers["x-service-test"], headers["x-service-event-kind"]]).toEqual([1, "true", "balance.updated"])
  const failed = await send("balance.updated", "--forward-to", at("broken"))
  expect([failed.code, failed.stderr.includes("did not accept the sample")]).toEqual([1, true])
  expect(await send("balance.unheard", "--forward-to", at("sample"))).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("expected one of")
  })
  expect(await send("balance.updated")).toMatchObject({ code: 2, stderr: expect.stringContaining("--sample needs --forward-to") })
})

test("--json prints only one object per event to standard output", async () => {
  const { end, seen } = await listen(["--json", "--from", "oldest", "--kind", "transaction.confirmed"])
  await until("the events", () => seen.out.split("\n").length > counter)
  expect(await end()).toBe(0)
  const objects = seen.out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
  const { data } = (await app.get("/v1/event-feed?limit=500", key)).json
  expect(objects.map(({ resumeCursor, ...event }) => [typeof resumeCursor, event])).toEqual(data.map((event: unknown) => ["string", event]))
  expect(seen.errors).toContain("Listening.")
  const rest = await listen(["--json", "--from", objects.at(-3).resumeCursor, "--forward-to", at("rest")])
  await until("the rest", () => rest.seen.out.split("\n").length === 3)
  expect(await rest.end()).toBe(0)
  const lines = rest.seen.out.trim().split("\n")
  expect(lines.map((line) => [JSON.parse(line).id, JSON.parse(line).forwarded.status])).toEqual(
    objects.slice(-2).map(({ id }) => [id, 204])
  )
})

test("listen survives graceful and abrupt restarts of the service without losing or repeating an event", async () => {
  const port = String(await Effect.runPromise(freePort))
  const start = () => app.start(["api"], { PORT: port })
  let service: Process = await start()
  const { end, seen } = await listen(["--forward-to", at("restarts")], service.baseUrl)
  const hashes: Array<string> = []
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    hashes.push(...(await record("vault_a", "vault_b")))
    const ended = service.end(signal)
    hashes.push(...(await record("vault_a")))
    await ended
    hashes.push(...(await record("vault_b", "vault_a", "vault_b")))
    service = await start()
    hashes.push(...(await record("vault_a")))
  }
  await until("every event", () => to("restarts").length >= hashes.length)
  expect(to("restarts").map(({ body }) => hashOf(body))).toEqual(hashes)
  expect(seen.out).toContain("Connected again")
  expect(await end()).toBe(0)
})

test("an invalid key, kind, cursor or address gives a message and an exit code", async () => {
  const run = (args: ReadonlyArray<string>, env: { readonly [name: string]: string } = { CUSTODY_API_KEY: key }) =>
    cli(["listen", "--api", base(), ...args], { ...config(), ...env })
  for (const [args, code, message] of [
    [["--key", "cds_nonsense"], 1, "invalid_api_key"],
    [["--kind", "transaction.unheard"], 2, "“transaction.unheard”, expected one of transaction.pending"],
    [["--from", "yesterday"], 1, "--from is expected to be now, oldest, or a resumeCursor"],
    [["--forward-to", "http://93.184.216.34/hook"], 2, "which is public: allow it with --allow-public"],
    [["--forward-to", "http://169.254.169.254/latest"], 2, "--allow-public"],
    [["--forward-to", "http://[::ffff:8.8.8.8]/"], 2, "--allow-public"],
    [["--forward-to", "localhost:3000"], 2, "expected a URL"],
    [["--forward-to", at("x"), "--secret", "hunter2"], 2, "--secret is expected to be whsec_"]
  ] as const) {
    const ended = await run(args)
    expect([args, ended.code, ended.stderr.includes(message)]).toEqual([args, code, true])
  }
  expect(await run([], {})).toMatchObject({ code: 2, stderr: expect.stringContaining("CUSTODY_API_KEY") })
  expect(await cli(["listen"], { CUSTODY_API_KEY: key })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--api or in CUSTODY_URL")
  })
  expect(await cli(["listen"], { CUSTODY_URL: "http://127.0.0.1:1", CUSTODY_API_KEY: key })).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("cannot be reached")
  })
  const limited = (await app.key("user_a", { scopes: ["vault:read"] })).secret
  expect(await run([], { CUSTODY_API_KEY: limited })).toMatchObject({ code: 1, stderr: expect.stringContaining("insufficient_scope") })
  const gone = await app.key("user_a")
  const { seen, whole } = await listen([], base(), { CUSTODY_API_KEY: gone.secret })
  await app.sql("UPDATE api_keys SET revoked_at = now(), revoked_reason = 'revoked' WHERE id = $1", [gone.key.id])
  expect(await whole()).toBe(1)
  expect(seen.errors).toContain("revoked_api_key")
})

test("text from elsewhere neither controls the terminal nor turns the direction of writing", async () => {
  const { end, seen } = await listen(["--kind", "vault.updated"], base(), { CUSTODY_API_KEY: key })
  await app.feed([vault("vault_b", "entity_a", { label: "Cold \u202egnihton" })])
  await until("the event", () => seen.out.includes("“Cold \\u202egnihton”"))
  expect(await end()).toBe(0)
  const hostile = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () =>
      Response.json({ code: "forbidden", title: "No", status: 403, detail: "\u001b[2Jcleared", requestId: "req_1" }, { status: 403 })
  })
  const { stderr } = await cli(["listen", "--api", hostile.url.origin], { ...config(), CUSTODY_API_KEY: key })
  expect([stderr.includes("\\u001b[2Jcleared"), stderr.includes("\u001b")]).toEqual([true, false])
  await hostile.stop(true)
})

test("a service whose lists do not end is not asked without pause", async () => {
  const asked: Array<readonly [path: string, at: number]> = []
  const times = (path: string) => asked.flatMap(([asked, at]) => (asked === path ? [at] : []))
  const endless = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => {
      const { pathname } = new URL(url)
      asked.push([pathname, performance.now()])
      if (pathname.endsWith("/stream"))
        return new Response(new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode(": at here\n\n")) }), {
          headers: { "content-type": "text/event-stream" }
        })
      return Response.json({ data: [], pagination: { limit: 500, nextCursor: `c${asked.length}` } })
    }
  })
  const { end, seen } = await listen([], endless.url.origin)
  expect(seen.out).toContain("Listening.")
  await until("pages of webhooks", () => times("/v1/webhooks").length >= 6)
  const [first = 0, , , , , sixth = 0] = times("/v1/webhooks")
  expect([times("/v1/assets").length, sixth - first > 900]).toEqual([4, true])
  expect(await end()).toBe(0)
  await endless.stop(true)
})
