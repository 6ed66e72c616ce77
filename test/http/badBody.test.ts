/**
 * Every path of webhooks, events and deliveries against every kind of bad request, bodies included: the right error in the
 * standard envelope, no effect, never a 500, no internals. Spec: Errors. Decisions D-1, D-4, D-5; reliability T13, T17.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import * as net from "node:net"
import fc from "fast-check"
import { delivery, event, insertDeliveries, insertEvents } from "../events/log/eventRows.ts"
import { type Answer, useApp } from "../support/app.ts"
import { codeOf, rawCode } from "../support/problem.ts"
import { rawGet, sendRaw } from "../support/raw.ts"
import { create, fields, useKeys } from "../support/webhookFixtures.ts"

const app = useApp(["api"], { RATE_LIMIT: "off" })
const keys = useKeys(app)
const base = () => app.main?.baseUrl ?? ""

interface Operation {
  readonly method: string
  readonly path: string
  /** Methods that the path has. */
  readonly allow: string
}
let operations: ReadonlyArray<Operation> = []
let webhookId = ""
const secrets = { expired: "", revoked: "", elsewhere: "", reading: "" }

beforeAll(async () => {
  webhookId = (await create(app, keys.owner, { status: "DISABLED", description: "kept" })).id
  const row = event()
  await insertEvents(app, [row])
  const sent = delivery({ eventId: row.id, webhookId })
  await insertDeliveries(app, [sent])
  const one = `/v1/webhooks/${webhookId}`
  operations = [
    { method: "GET", path: "/v1/webhooks", allow: "GET, HEAD, POST" },
    { method: "POST", path: "/v1/webhooks", allow: "GET, HEAD, POST" },
    { method: "POST", path: "/v1/webhooks/preview", allow: "POST" },
    { method: "GET", path: one, allow: "DELETE, GET, HEAD, PATCH" },
    { method: "PATCH", path: one, allow: "DELETE, GET, HEAD, PATCH" },
    { method: "DELETE", path: one, allow: "DELETE, GET, HEAD, PATCH" },
    { method: "POST", path: `${one}/rotate-secret`, allow: "POST" },
    { method: "POST", path: `${one}/ping`, allow: "POST" },
    { method: "GET", path: `${one}/deliveries`, allow: "GET, HEAD" },
    { method: "GET", path: "/v1/webhook-events", allow: "GET, HEAD" },
    { method: "GET", path: `/v1/webhook-events/${row.id}`, allow: "GET, HEAD" },
    { method: "GET", path: `/v1/webhook-events/${row.id}/deliveries`, allow: "GET, HEAD" },
    { method: "POST", path: `/v1/webhook-deliveries/${sent.id}/redeliver`, allow: "POST" }
  ]
  secrets.expired = (await app.key("user_a", { expiresAt: "2020-01-01T00:00:00Z" })).secret
  const revoked = await app.key("user_a")
  await app.sql("UPDATE api_keys SET revoked_at = now(), revoked_reason = 'revoked' WHERE id = $1", [revoked.key.id])
  secrets.revoked = revoked.secret
  secrets.elsewhere = (await app.key("user_a", { ipAllowlist: ["203.0.113.0/24"] })).secret
  secrets.reading = (await app.key("user_a", { scopes: ["vault:read"] })).secret
})

/** All data that a request could change. */
const state = async () => {
  const [row] = await app.sql(`SELECT (SELECT json_agg(w ORDER BY w.id) FROM webhooks w)::text AS webhooks,
    (SELECT count(*) FROM webhook_secrets) AS secrets, (SELECT count(*) FROM deliveries) AS deliveries,
    (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM pings) AS pings, (SELECT count(*) FROM idempotency_keys) AS answers`)
  return row
}
const withBody = ({ method }: Operation) => method === "PATCH" || method === "POST"
const bodyOf = ({ method, path }: Operation) =>
  method === "PATCH"
    ? { body: { description: "changed" } }
    : path === "/v1/webhooks" && method === "POST"
      ? { body: fields() }
      : path === "/v1/webhooks/preview"
        ? { body: { entityIds: ["entity_a"], eventKinds: ["transaction.confirmed"] } }
        : {}
/** Whether a path names no resource. */
const isCollection = (path: string) => path.split("/").length === 3 || path === "/v1/webhooks/preview"

describe("the error envelope", () => {
  test("an unauthorized request gets the one envelope on every path and changes nothing", async () => {
    const before = await state()
    for (const operation of operations) {
      const { method, path } = operation
      const collection = isCollection(path)
      for (const [options, code] of [
        [{}, "missing_credentials"],
        [{ key: "garbage" }, "invalid_api_key"],
        [{ key: secrets.expired }, "expired_api_key"],
        [{ key: secrets.revoked }, "revoked_api_key"],
        [{ key: secrets.elsewhere }, "ip_not_allowed"],
        [{ key: secrets.reading }, collection ? "insufficient_scope" : "not_found"],
        [{ key: keys.stranger }, collection ? undefined : "not_found"],
        [{ key: keys.owner, headers: { accept: "text/html" } }, "not_acceptable"]
      ] as const) {
        if (code === undefined) continue
        const answer = await app.request(method, path, { ...bodyOf(operation), ...options })
        expect([method, path, code, codeOf(answer)]).toEqual([method, path, code, code])
      }
    }
    expect(await state()).toEqual(before)
  })

  test("an unknown parameter, a wrong method and an overlong path are refused", async () => {
    const before = await state()
    for (const operation of operations) {
      const { allow, method, path } = operation
      const ask = async (target: string) => codeOf(await app.request(method, target, { key: keys.owner, ...bodyOf(operation) }))
      expect([method, path, await ask(`${path}?nonsense=1`)]).toEqual([method, path, "unknown_parameter"])
      expect([method, path, await ask(`${path}?limt=1&limit=1`)]).toEqual([method, path, "unknown_parameter"])
      expect([method, path, await ask(`${path}?cursor=${"A".repeat(8_200)}`)]).toEqual([method, path, "uri_too_long"])
      // With other methods the path is that of a webhook with this id, which does not exist.
      const others = path === "/v1/webhooks/preview" ? ["PUT", "OPTIONS"] : ["PUT", "OPTIONS", "GET", "POST", "PATCH", "DELETE"]
      for (const wrong of others.filter((name) => !allow.includes(name))) {
        const answer = await app.request(wrong, path, { key: keys.owner })
        expect([wrong, path, codeOf(answer), answer.headers.get("allow")]).toEqual([wrong, path, "method_not_allowed", allow])
      }
    }
    expect(await state()).toEqual(before)
  })

  test("an id of another kind, an unknown and a malformed one get the same 404", async () => {
    const ids = [
      "whs_01jz0000000000000000000000",
      "evt_01jz0000000000000000000000",
      "vault_a",
      "%00",
      "%ff",
      "..%2f",
      "'--",
      "*",
      "a".repeat(4_000)
    ]
    const before = await state()
    for (const operation of operations) {
      const { method, path } = operation
      if (isCollection(path)) continue
      const answers = new Set<string>()
      for (const id of ids) {
        const target = path.replace(/(?:whs|evt|del)_[0-9a-z]{26}/, id)
        const answer = await rawGet(base(), target, {
          key: keys.owner,
          method,
          lines: ["X-Request-Id: same-request-id", "Content-Length: 0"]
        })
        expect([method, target, rawCode(answer)]).toEqual([method, target, "not_found"])
        const { date: _, ratelimit: __, ...headers } = answer.headers
        answers.add(JSON.stringify([headers, answer.body]))
      }
      expect([method, path, answers.size]).toEqual([method, path, 1])
    }
    expect(await state()).toEqual(before)
  })
})

/** A request with a body that no client library would send. */
const send = async (method: string, path: string, type: string | undefined, body: string | Uint8Array<ArrayBuffer>): Promise<Answer> =>
  app.request(method, path, { key: keys.owner, raw: body, headers: type === undefined ? {} : { "content-type": type } })

describe("JSON bodies", () => {
  /** The two operations that read a body. */
  const reading = () => operations.filter((one) => "body" in bodyOf(one))

  test("a body that is not a well-formed JSON object gets 400 and changes nothing", async () => {
    const before = await state()
    const json = JSON.stringify(fields())
    for (const { method, path } of reading()) {
      for (const [body, code] of [
        ["", "malformed_json"],
        ["{", "malformed_json"],
        ["{'url':1}", "malformed_json"],
        [`${json},`, "malformed_json"],
        [`${json}${json}`, "malformed_json"],
        [`\u0000${json}`, "malformed_json"],
        ["NaN", "malformed_json"],
        ["url=https://hooks.example.com", "malformed_json"],
        [Buffer.from(json.replace("hooks", "\xff\xfe"), "latin1"), "malformed_json"],
        [Buffer.from('{"description":"\xed\xa0\x80"}', "latin1"), "malformed_json"],
        [`${"[".repeat(30_000)}${"]".repeat(30_000)}`, "invalid_body"],
        [`{"description":${"[".repeat(30_000)}${"]".repeat(30_000)}}`, "invalid_body"],
        [`${'{"a":'.repeat(8_000)}1${"}".repeat(8_000)}`, "invalid_body"],
        ["[".repeat(60_000), "malformed_json"],
        ["null", "invalid_body"],
        ["true", "invalid_body"],
        ['"text"', "invalid_body"],
        ["12", "invalid_body"],
        ["[]", "invalid_body"],
        [`[${json}]`, "invalid_body"],
        ['{"url":"https://hooks.example.com/\\u0000"}', "invalid_body"],
        ['{"__proto__":{"url":"https://hooks.example.com/"}}', "invalid_body"],
        ['{"":""}', "invalid_body"]
      ] as const) {
        const answer = await send(method, path, "application/json", body)
        expect([method, String(body).slice(0, 40), codeOf(answer)]).toEqual([method, String(body).slice(0, 40), code])
      }
    }
    expect(await state()).toEqual(before)
  })

  test("a body of another type, or of none, gets 415", async () => {
    const before = await state()
    const json = JSON.stringify(fields())
    for (const { method, path } of reading()) {
      for (const type of [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/xml",
        "application/jsonx",
        "json"
      ]) {
        expect([method, type, codeOf(await send(method, path, type, json))]).toEqual([method, type, "unsupported_media_type"])
      }
      const untyped = await sendRaw(
        base(),
        `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${keys.owner}\r\nContent-Length: ${json.length}\r\n\r\n${json}`
      )
      expect([method, rawCode(untyped)]).toEqual([method, "unsupported_media_type"])
    }
    expect(await state()).toEqual(before)
  })

  test("a body has at most 64 KiB, to the byte; a larger one gets 413", async () => {
    const of = (bytes: number) => {
      const json = JSON.stringify({ description: "to the byte" })
      return `${json}${" ".repeat(bytes - json.length)}`
    }
    const target = `/v1/webhooks/${webhookId}`
    expect((await send("PATCH", target, "application/json", of(65_536))).status).toBe(200)
    await app.request("PATCH", target, { key: keys.owner, body: { description: "kept" } })
    const before = await state()
    for (const { method, path } of reading()) {
      for (const bytes of [65_537, 1_000_000]) {
        expect([method, bytes, codeOf(await send(method, path, "application/json", of(bytes)))]).toEqual([
          method,
          bytes,
          "payload_too_large"
        ])
        const chunked = new ReadableStream({
          start(controller) {
            for (let sent = 0; sent < bytes; sent += 16_384) controller.enqueue(Buffer.from(of(bytes)).subarray(sent, sent + 16_384))
            controller.close()
          }
        })
        const answer = await fetch(`${base()}${path}`, {
          method,
          body: chunked,
          headers: { authorization: `Bearer ${keys.owner}`, "content-type": "application/json" }
        })
        const { code } = (await answer.json()) as { code: string }
        expect([method, bytes, answer.status, code]).toEqual([method, bytes, 413, "payload_too_large"])
      }
    }
    expect(await state()).toEqual(before)
  })

  /** The operations that take no body. */
  const bodiless = () => operations.filter((one) => one.method === "DELETE" || (withBody(one) && !("body" in bodyOf(one))))

  test("an absent resource gets 404 whatever body is sent to it", async () => {
    expect(bodiless().length).toBe(4)
    for (const operation of bodiless()) {
      const target = operation.path.replace(/(whs|del)_[0-9a-z]{26}/, "$1_01jz0000000000000000000000")
      for (const body of ["{", "x".repeat(70_000), '{"a":1}']) {
        const answer = await send(operation.method, target, "text/plain", body)
        expect([target, body.slice(0, 9), codeOf(answer)]).toEqual([target, body.slice(0, 9), "not_found"])
      }
    }
  })

  test("an operation that takes no body refuses fields, and changes nothing", async () => {
    const before = await state()
    for (const { method, path } of bodiless().filter(({ path }) => !path.endsWith("/redeliver"))) {
      for (const [type, body, code] of [
        ["application/json", '{"eventKind":"transaction.confirmed","a":1}', "invalid_body"],
        ["application/json", "[]", "invalid_body"],
        ["application/json", "null", "invalid_body"],
        ["application/json", "{", "malformed_json"],
        ["text/plain", "{}", "unsupported_media_type"],
        ["application/json", `{"a":"${"x".repeat(70_000)}"}`, "payload_too_large"]
      ] as const) {
        const answer = await send(method, path, type, body)
        expect([method, path, body.slice(0, 20), codeOf(answer)]).toEqual([method, path, body.slice(0, 20), code])
      }
      const { errors } = (await send(method, path, "application/json", '{"b":1,"a":{}}')).json
      expect(errors).toEqual(
        ["b", "a"].map((field) => ({ in: "body", field, code: "unknown_field", detail: "is not a field of this body" }))
      )
    }
    expect(await state()).toEqual(before)
    expect((await send("POST", `/v1/webhooks/${webhookId}/rotate-secret`, "application/json", "{}")).status).toBe(200)
  })

  test("a body with Content-Encoding gets 415 that names it", async () => {
    const before = await state()
    const packed = Bun.gzipSync(JSON.stringify(fields()))
    for (const { method, path } of [...reading(), ...bodiless().filter(({ path }) => !path.endsWith("/redeliver"))]) {
      for (const encoding of ["gzip", "br, gzip", "x".repeat(300)]) {
        const answer = await app.request(method, path, {
          key: keys.owner,
          raw: packed,
          headers: { "content-type": "application/json", "content-encoding": encoding }
        })
        expect([method, path, codeOf(answer)]).toEqual([method, path, "unsupported_media_type"])
        expect(answer.json.detail).toContain(`Content-Encoding ${encoding.slice(0, 100)} `)
      }
    }
    expect(await state()).toEqual(before)
  })

  test("a client that disconnects in the middle of its body leaves nothing behind", async () => {
    const before = await state()
    const json = JSON.stringify(fields())
    const { hostname, port } = new URL(base())
    for (let count = 0; count < 20; count++) {
      const socket = net.connect(Number(port), hostname)
      socket.on("error", () => {})
      socket.write(
        `POST /v1/webhooks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keys.owner}\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json.slice(0, 20 + count)}`
      )
      await Bun.sleep(10)
      socket.destroy()
    }
    await Bun.sleep(200)
    expect(await state()).toEqual(before)
    expect((await app.get(`/v1/webhooks/${webhookId}`, keys.owner)).status).toBe(200)
  })
})

describe("fields at fault", () => {
  test("each is named with what is expected, in plain words instead of type names", async () => {
    for (const [method, body, expected] of [
      ["POST", [], { "": "must be an object" }],
      ["PATCH", null, { "": "must be an object" }],
      ["PATCH", { status: "x" }, { status: "must be one of ACTIVE, PAUSED, DISABLED" }],
      [
        "PATCH",
        { eventKinds: [null] },
        { "eventKinds.0": expect.stringMatching(/^must be one of transaction\.pending, .*api_key\.expiring$/) }
      ],
      ["PATCH", { eventKinds: [] }, { eventKinds: "must list 1 to 100 kinds, each once" }],
      // The count comes first: none of the items is looked at.
      ["PATCH", { eventKinds: Array.from({ length: 101 }, (_, index) => index) }, { eventKinds: "must list 1 to 100 kinds, each once" }],
      ["PATCH", { vaultIds: Array.from({ length: 1_001 }, (_, index) => index) }, { vaultIds: "must list 1 to 1000 vaults, each once" }],
      [
        "PATCH",
        { vaultIds: [1], url: 3, description: 4 },
        { "vaultIds.0": "must be a string", url: "must be a URL", description: "must be a string or null" }
      ],
      [
        "PATCH",
        { vaultIds: 4, eventKinds: null },
        { vaultIds: "must list 1 to 1000 vaults, each once", eventKinds: "must list 1 to 100 kinds, each once" }
      ],
      ["PATCH", { secret: "x" }, { secret: "is not a field of this body" }],
      [
        "POST",
        { ...fields(), entityIds: null, notificationEmail: 3 },
        { entityIds: "must list 1 to 100 entities from GET /v1/entities, each once", notificationEmail: "must be a string" }
      ],
      ["POST", { ...fields(), entityIds: [1] }, { "entityIds.0": "must be the id of an entity from GET /v1/entities" }],
      [
        "POST",
        { ...fields(), entityIds: ["entity_absent"] },
        { entityIds: "must list entities that this API key has access to: see GET /v1/entities" }
      ]
    ] as const) {
      const answer = await app.request(method, method === "POST" ? "/v1/webhooks" : `/v1/webhooks/${webhookId}`, { key: keys.owner, body })
      expect(codeOf(answer)).toBe("invalid_body")
      expect(Object.fromEntries(answer.json.errors.map(({ detail, field }: { detail: string; field: string }) => [field, detail]))).toEqual(
        expected
      )
    }
  })
})

describe("random input", () => {
  test("a random JSON body gets a status below 500, and only webhooks are stored", async () => {
    const known = fc.constantFrom(...Object.keys(fields()), "vaultIds", "description", "status", "secret", "id")
    const value = fc.oneof(
      fc.json({ maxDepth: 3 }).map((text): unknown => JSON.parse(text)),
      fc.constantFrom<unknown>(
        "https://hooks.example.com/",
        ["entity_a"],
        ["transaction.confirmed"],
        "ops@example.com",
        "ACTIVE",
        null,
        [],
        ""
      )
    )
    await fc.assert(
      fc.asyncProperty(fc.constantFrom("POST", "PATCH"), fc.dictionary(known, value, { maxKeys: 6 }), async (method, body) => {
        const before = await state()
        const answer = await app.request(method, method === "POST" ? "/v1/webhooks" : `/v1/webhooks/${webhookId}`, {
          key: keys.owner,
          body
        })
        if (answer.status >= 300) expect([codeOf(answer), await state()]).toEqual([expect.any(String), before])
        expect(answer.status).toBeLessThan(500)
      }),
      { numRuns: 120 }
    )
  })
})
