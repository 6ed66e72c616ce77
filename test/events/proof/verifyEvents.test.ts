/** Verifies that a copy of an entity's events is complete, by the client and by `custody verify`, and detects every change. C-3. */
import { beforeAll, expect, test } from "bun:test"
import { generateKeyPairSync, sign } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { createClient, NotVerifiable, verifyEvents } from "../../../src/client/index.ts"
import { cli, useApp } from "../../support/app.ts"
import { smallest, transaction } from "../../support/records.ts"
import { useTampering } from "../../support/tampering.ts"

const app = useApp()
const proxy = useTampering(app)
let key = ""
const EVENTS = 25

beforeAll(async () => {
  await app.feed([...smallest(), { type: "entity", id: "entity_z", organizationId: "org_a", name: "Z" }], { "x-record-events": "none" })
  key = (await app.key("user_a")).secret
  await app.feed(Array.from({ length: EVENTS }, (_, index) => transaction("vault_a", index + 1)))
})

type Change = (text: string) => string

/** A client whose responses on a path are changed in transit. */
const clientOf = (of: string, change: Change) =>
  createClient({
    baseUrl: app.main?.baseUrl ?? "",
    apiKey: key,
    fetch: async (request) => {
      const response = await fetch(request)
      return new URL(request.url).pathname.startsWith(of) ? new Response(change(await response.text()), response) : response
    }
  })
const verify = (of = "/none", change: Change = (text) => text, entityId = "entity_a") => verifyEvents(clientOf(of, change), entityId)

const events =
  (change: (data: Array<unknown>) => Array<unknown>): Change =>
  (text) => {
    const page = JSON.parse(text)
    return JSON.stringify({ ...page, data: change(page.data) })
  }

test("the events of an entity verify as complete, from any checkpoint on", async () => {
  expect(await verify()).toMatchObject({ complete: true, events: EVENTS })
  const kept = await createClient({ baseUrl: app.main?.baseUrl ?? "", apiKey: key }).getLatestEventCheckpoint({ entityId: "entity_a" })
  await app.feed([transaction("vault_a", 101), transaction("vault_a", 102)])
  expect(await verifyEvents(clientOf("/none", String), "entity_a", kept)).toMatchObject({ complete: true, events: 2 })
  expect(await verify("/none", String, "entity_z")).toMatchObject({ complete: true, events: 0 })
})

test("any changed, missing, repeated or swapped event and any wrong checkpoint is detected", async () => {
  const feed = "/v1/event-feed"
  const differs = async (of: string, change: Change) => {
    const found = await verify(of, change)
    return found.complete ? "complete" : found.difference
  }
  expect(await differs(feed, (text) => text.replace('"amount":"1"', '"amount":"2"'))).toMatch(/^the events between .* differ/)
  expect(
    await differs(
      feed,
      events((data) => data.toSpliced(7, 1))
    )
  ).toMatch(/^1 event is missing/)
  expect(
    await differs(
      feed,
      events((data) => data.toSpliced(7, 0, data[6]))
    )
  ).toMatch(/^the event evt_\w+ is repeated$/)
  expect(
    await differs(
      feed,
      events((data) => data.toSpliced(3, 2, data[4], data[3]))
    )
  ).toMatch(/^the events between .* differ/)
  // As JSON, Infinity is null again.
  await expect(differs(feed, (text) => text.replace(":null", ":1e999"))).rejects.toThrow("not the API's")
  const latest = "/v1/event-checkpoints/latest"
  expect(await differs(latest, (text) => text.replace(/"count":\d+/, '"count":3'))).toMatch(/is for different content$/)
  expect(await differs(latest, (text) => text.replace(/(\.[\w-]+\.)([\w-]{4})/, "$1AAAA"))).toMatch(/does not verify$/)
  expect(await differs(latest, (text) => text.replace('"entity_a"', '"entity_z"'))).toMatch(/is of entity_z and not of entity_a$/)
})

test("an old checkpoint in place of the current one proves nothing", async () => {
  const latest = "/v1/event-checkpoints/latest"
  const old = (await app.get(`${latest}?entityId=entity_a`, key)).text
  await app.feed([transaction("vault_a", 103)])
  const since = (await app.get(`${latest}?entityId=entity_a`, key)).json
  const replayed = clientOf(latest, () => old)
  await expect(verifyEvents(replayed, "entity_a", since)).rejects.toThrow(`which is before the stored one of ${since.at}`)
  const now = Date.now() / 1_000
  for (const wrong of [now + 660, now - 660]) {
    await expect(verifyEvents(replayed, "entity_a", JSON.parse(old), { now: wrong })).rejects.toThrow("more than 10 minutes apart")
    await expect(verifyEvents(replayed, "entity_a", undefined, { now: wrong })).rejects.toThrow(NotVerifiable)
  }
  expect(await verifyEvents(replayed, "entity_a", JSON.parse(old), { now: now + 540 })).toMatchObject({ complete: true, events: 0 })
})

/** Each field that an event of the feed repeats from its payload, with another value. */
const falsified = {
  id: "evt_01kdxhwa000000000000000001",
  kind: "vault.created",
  schemaVersion: 2,
  occurredAt: "2020-01-01T00:00:00.000Z",
  entityId: "entity_z",
  vaultIds: ["vault_z"]
}

test("an event whose fields differ from its payload is detected", async () => {
  const differs = async (fields: object, at: number) => {
    const found = await verify(
      "/v1/event-feed",
      events((data) => data.map((event, index) => (index === at ? Object.assign({}, event, fields) : event)))
    )
    return found.complete ? "complete" : found.difference
  }
  const { data } = (await app.get("/v1/event-feed?entityId=entity_a&limit=500", key)).json
  for (const [name, value] of Object.entries(falsified))
    for (const at of [0, 9, data.length - 1])
      expect([name, await differs({ [name]: value }, at)]).toEqual([
        name,
        `the field ${name} of the event ${data[at].id} differs from its payload`
      ])
  expect(await differs(falsified, 4)).toContain(data[4].id)
  expect(await differs({ payload: null }, 4)).toMatch(/has no payload$/)
})

test("an event that comes again after the last one is detected on any page", async () => {
  const last = (await app.get("/v1/event-feed?entityId=entity_a&limit=500", key)).json.data.at(-1)
  const twice = { complete: false as const, difference: `the event ${last.id} is repeated` }
  expect(
    await verify(
      "/v1/event-feed",
      events((data) => [...data, last])
    )
  ).toEqual(twice)
  let pages = 0
  const later: Change = (text) => {
    const page = JSON.parse(text)
    return pages++ === 0
      ? JSON.stringify({ ...page, pagination: { ...page.pagination, nextCursor: page.resumeCursor } })
      : JSON.stringify({ ...page, data: [last] })
  }
  expect(await verify("/v1/event-feed", later)).toEqual(twice)
  expect(pages).toBe(2)
})

test("a feed that returns the same cursor again is an error and not a loop", async () => {
  const endless: Change = (text) =>
    text.replace('"nextCursor":null', '"nextCursor":"again"').replace(/"resumeCursor":"[^"]*"/, '"resumeCursor":"again"')
  const client = createClient({
    baseUrl: app.main?.baseUrl ?? "",
    apiKey: key,
    fetch: async (request) => {
      const response = await fetch(request.url.replace("after=again", "from=now"), request)
      return request.url.includes("/event-feed") ? new Response(endless(await response.text()), response) : response
    }
  })
  await expect(verifyEvents(client, "entity_a")).rejects.toThrow("the cursor of an earlier page")
})

test("only the given keys are trusted, whatever the service publishes", async () => {
  const custody = clientOf("/v1/jwks.json", (text) => text.replace(/"x":"[^"]*"/, `"x":"${"A".repeat(43)}"`))
  const published = await clientOf("/none", String).getSigningKeys()
  expect(await verifyEvents(custody, "entity_a")).toMatchObject({ complete: false, difference: expect.stringMatching(/does not verify$/) })
  expect(await verifyEvents(custody, "entity_a", undefined, { keys: published })).toMatchObject({ complete: true })
  const [known] = published.keys
  if (known === undefined) throw new Error("there is no key")
  const other = { ...known, x: generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }).x ?? "" }
  expect(await verifyEvents(clientOf("/none", String), "entity_a", undefined, { keys: { keys: [other] } })).toMatchObject({
    complete: false,
    difference: expect.stringMatching(/^the signature of the checkpoint of .* does not verify$/)
  })
  await expect(verifyEvents(custody, "entity_a", undefined, { keys: { keys: [] } })).rejects.toThrow(NotVerifiable)
})

test("a checkpoint sealed during verification does not hide that events differ", async () => {
  const latest = "/v1/event-checkpoints/latest"
  const before = (await app.get(`${latest}?entityId=entity_a`, key)).text
  await app.feed([transaction("vault_a", 201)])
  // The midnight's checkpoint counts an event that the current one, read before it, does not.
  await app.sql(`INSERT INTO event_checkpoints (entity_id, at, count, hash, position)
    SELECT c.entity_id, date_trunc('day', now(), 'UTC'), c.count, c.hash, s.position FROM entity_chains c JOIN event_streams s USING (organization_id)
    WHERE c.entity_id = 'entity_a' ON CONFLICT (entity_id, at) DO UPDATE SET count = excluded.count, hash = excluded.hash, position = excluded.position`)
  const client = (change: Change) =>
    createClient({
      baseUrl: app.main?.baseUrl ?? "",
      apiKey: key,
      fetch: async (request) => {
        const response = await fetch(request)
        const { pathname } = new URL(request.url)
        if (pathname === latest) return new Response(before, response)
        return pathname === "/v1/event-feed" ? new Response(change(await response.text()), response) : response
      }
    })
  const { count } = JSON.parse(before)
  expect(await verifyEvents(client(String), "entity_a")).toMatchObject({ complete: true, events: count })
  expect(
    await verifyEvents(
      client((text) => text.replace('"amount":"1"', '"amount":"2"')),
      "entity_a"
    )
  ).toMatchObject({ complete: false })
  await app.sql("DELETE FROM event_checkpoints")
})

test("no answer of a service controls the terminal or adds a line", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
  const text = "\u001b[2J\ncomplete: 9,999 events\u202e"
  const answers = (claims: { readonly [name: string]: string | number }, error = false) => {
    const content = `${base64({ alg: "EdDSA", kid: "own" })}.${base64(claims)}`
    const jws = `${content}.${sign(null, Buffer.from(content), privateKey).toString("base64url")}`
    return (_: string, target: string) => {
      if (target === "/v1/jwks.json") return Response.json({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "own" }] })
      if (error) return Response.json({ code: "not_found", requestId: "request-1", detail: text }, { status: 404 })
      if (target.startsWith("/v1/event-checkpoints/latest")) return Response.json({ ...claims, jws, resumeCursor: "end" })
      return Response.json({ data: [], pagination: { limit: 500, nextCursor: null }, resumeCursor: "end" })
    }
  }
  const honest = { entityId: "entity_a", count: 0, hash: "0".repeat(64), at: new Date().toISOString() }
  const run = () => cli(["verify", "--api", proxy.url(), "--key", key, "--entity", "entity_a"], {})
  const line = (begin: string) => expect.stringMatching(new RegExp(`^${begin}[^\\p{Cc}\\p{Bidi_Control}]*\n$`, "u"))
  proxy.tamper(answers(honest))
  expect(await run()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^complete: 0 events/) })
  for (const wrong of [{ at: `${new Date().toUTCString()} (${text})` }, { entityId: text }, { count: text }, { hash: text }]) {
    proxy.tamper(answers({ ...honest, ...wrong }))
    expect(await run()).toMatchObject({ code: 1, stdout: "", stderr: line("differs: ") })
  }
  proxy.tamper(answers(honest, true))
  expect(await run()).toMatchObject({ code: 2, stdout: "", stderr: line("could not be checked: ") })
  proxy.tamper(String)
})

test("custody verify reports it with exit code 0, 1 or 2", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-verify-"))
  const file = (name: string, content: unknown) => {
    fs.writeFileSync(path.join(folder, name), JSON.stringify(content))
    return path.join(folder, name)
  }
  const run = (...more: ReadonlyArray<string>) => cli(["verify", "--api", proxy.url(), "--key", key, ...more], {})
  const of = ["--entity", "entity_a"]
  const kept = (await app.get("/v1/event-checkpoints/latest?entityId=entity_a", key)).json
  const keys = (await app.get("/v1/jwks.json", key)).json

  expect(await run(...of, "--since", file("kept.json", kept))).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^complete: 0 events up to \d{4}-\d\d-\d\dT[\d:.]+Z\n$/)
  })
  expect(await run(...of, "--keys", file("keys.json", keys))).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^complete: \d+ events up to \S+Z\nfrom the first event on; an earlier state is not covered .*\n$/)
  })
  await app.sql(`INSERT INTO event_checkpoints (entity_id, at, count, hash, position)
    SELECT 'entity_a', date_trunc('day', now(), 'UTC'), 0, decode(repeat('00', 32), 'hex'), 0`)
  const midnight = `${new Date().toISOString().slice(0, 10)}T00:00:00.000Z`
  expect((await run(...of)).stdout).toContain(`\nfrom the checkpoint of ${midnight} on, which counts 0 earlier events; an earlier state`)
  await app.sql("DELETE FROM event_checkpoints")

  proxy.tamper((text, target) =>
    target.startsWith("/v1/event-feed") ? text.replace('"kind":"transaction.confirmed"', '"kind":"x"') : text
  )
  expect(await run(...of)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^differs: the field kind of the event evt_\w+ differs/)
  })
  const later = file("later.json", (await app.get("/v1/event-checkpoints/latest?entityId=entity_a", key)).json)
  proxy.tamper((text, target) => (target.startsWith("/v1/event-checkpoints/latest") ? JSON.stringify(kept) : text))
  expect(await run(...of, "--since", later)).toMatchObject({ code: 2, stderr: expect.stringContaining("before the stored one") })
  proxy.tamper(String)
  const others = { keys: [{ ...keys.keys[0], x: "A".repeat(43) }] }
  for (const [args, message] of [
    [["--since", file("changed.json", { ...kept, hash: "0".repeat(64) })], "differs: the signature"],
    [
      ["--since", file("other.json", (await app.get("/v1/event-checkpoints/latest?entityId=entity_z", key)).json)],
      "is of entity_z and not of"
    ],
    [["--keys", file("others.json", others)], "differs: the signature"]
  ] as const)
    expect([args, await run(...of, ...args)]).toMatchObject([args, { code: 1, stderr: expect.stringContaining(message) }])

  for (const [args, message] of [
    [[...of, "--since", file("no.json", { count: 1 })], "not a checkpoint"],
    [[...of, "--since", file("cursorless.json", { ...kept, resumeCursor: undefined })], "no longer in the log"],
    [[...of, "--keys", file("none.json", kept)], "not a JSON Web Key Set"],
    [["--entity", "entity_absent"], "could not be checked"],
    [[], "--entity"],
    [[...of, "--vault", "vault_a"], "--entity"],
    [[...of, "--until", "2026-01-01"], "--until"]
  ] as const)
    expect([args, await run(...args)]).toMatchObject([args, { code: 2, stderr: expect.stringContaining(message) }])
  fs.rmSync(folder, { recursive: true, force: true })
})
