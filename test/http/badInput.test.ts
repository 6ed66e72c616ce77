/** Every read endpoint against every kind of bad request: the right error in the standard envelope, never a 500, no internals. */
import { beforeAll, describe, expect, test } from "bun:test"
import { Redacted } from "effect"
import fc from "fast-check"
import * as Secret from "../../src/access/credentials/keySecret.ts"
import { patiently, useApp } from "../support/app.ts"
import { codeOf, rawCode } from "../support/problem.ts"
import { rawGet, sendRaw } from "../support/raw.ts"
import { smallest, transaction, transactionId } from "../support/records.ts"

const app = useApp()
let key = ""

const collections = [
  "/v1/vaults",
  "/v1/assets",
  "/v1/networks",
  "/v1/entities",
  "/v1/transactions",
  "/v1/balances",
  "/v1/balances?sumBy=asset",
  "/v1/credential",
  "/v1/event-feed",
  "/v1/event-checkpoints?entityId=entity_a",
  "/v1/event-checkpoints/latest?entityId=entity_a"
]
const ofVault = [
  "",
  "/balances",
  "/transactions",
  `/transactions/${transactionId("vault_a", 1)}`,
  "/addresses",
  "/statements",
  "/balance-history?asset=ethereum/native"
]
const paths = [...collections, ...ofVault.map((path) => `/v1/vaults/vault_a${path}`)]

beforeAll(async () => {
  await app.feed([...smallest(), transaction("vault_a", 1)])
  key = (await app.key("user_a")).secret
})

/** A path with one more parameter, and a path below it. */
const and = (path: string, parameter: string) => `${path}${path.includes("?") ? "&" : "?"}${parameter}`
const below = (path: string, more: string) => `${path.split("?", 1)[0]}/${more}`

const base = () => app.main?.baseUrl ?? ""
test("responses to a caller are not cacheable, and browsers may not guess another content type", async () => {
  const more = [
    "/v1/webhooks",
    "/v1/webhook-events",
    "/v1/audit-log",
    "/v1/vaults/vault_a/transactions/export?format=csv",
    "/v1/transactions/export?format=csv",
    "/v1/nothing"
  ]
  for (const path of [...paths, ...more]) {
    for (const { headers, status } of [await app.get(path, key), await app.get(path)]) {
      expect([path, status, headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual([
        path,
        status,
        "no-store",
        "nosniff"
      ])
    }
  }
  for (const path of ["/v1/docs", "/v1/openapi.json", "/v1/jwks.json"])
    expect([path, (await app.get(path)).headers.get("cache-control")]).not.toEqual([path, "no-store"])
})

describe("the error envelope", () => {
  test("every kind of failure uses it, on every path", async () => {
    for (const path of paths) {
      for (const [answer, code] of [
        [app.get(path), "missing_credentials"],
        [app.get(path, "garbage"), "invalid_api_key"],
        [app.get(and(path, "nonsense=1"), key), "unknown_parameter"],
        [app.request("POST", path, { key, body: {} }), "method_not_allowed"],
        [app.get(path, key, { accept: "text/html" }), "not_acceptable"],
        [app.get(below(path, "nothing/here"), key), "not_found"],
        [app.get(and(path, `cursor=${"A".repeat(8_200)}`), key), "uri_too_long"]
      ] as const) {
        expect([path, code, codeOf(await answer)]).toEqual([path, code, code])
      }
    }
  })

  test("every response has an X-Request-Id: the client's own, if well-formed, or a generated one", async () => {
    for (const own of ["12345678", "a_B-9012", "x".repeat(64)]) {
      for (const answer of [
        await app.get("/v1/networks", key, { "x-request-id": own }),
        await app.get("/v1/networks", undefined, { "x-request-id": own })
      ]) {
        expect(answer.headers.get("x-request-id")).toBe(own)
      }
    }
    for (const other of ["1234567", "x".repeat(65), "with space", "sémantique", "a;b=c;d=e", ""]) {
      const { headers } = await rawGet(base(), "/v1/networks", { key, lines: [`X-Request-Id: ${other}`] })
      expect(headers["x-request-id"]).toMatch(/^req_[0-9a-z]{26}$/)
    }
    const ids = await Promise.all(Array.from({ length: 50 }, async () => (await app.get("/v1/networks", key)).headers.get("x-request-id")))
    expect(new Set(ids).size).toBe(50)
  })
})

describe("authentication before routing", () => {
  test("without a key, an invalid request gets 401 like any other", async () => {
    const bodies = new Set<string>()
    for (const [method, path] of [
      ["GET", "/v1/vaults"],
      ["GET", "/v1/nothing"],
      ["GET", "/"],
      ["GET", "/v2/vaults"],
      ["GET", "/health/live"],
      ["GET", "/metrics"],
      ["POST", "/platform/v1/records"],
      ["DELETE", "/v1/vaults/vault_a"],
      ["POST", "/v1/vaults"],
      ["GET", "/v1/vaults?nonsense=1&limit=0"],
      ["GET", "/v1/vaults/%ff"]
    ] as const) {
      const answer = await app.request(method, path, {
        headers: { "x-request-id": "same-request-id", accept: path === "/" ? "*/*" : "text/html" }
      })
      expect([path, codeOf(answer)]).toEqual([path, "missing_credentials"])
      bodies.add(answer.text)
    }
    expect(bodies.size).toBe(1)
  })

  test("with a key, every path outside /v1 and every unknown path gets 404", async () => {
    for (const path of [
      "/",
      "/v1",
      "/v1/",
      "/v1/nothing",
      "/v2/vaults",
      "/vaults",
      "/V1/vaults",
      "/v1/Vaults",
      "/v1/vaults/",
      "/v1//vaults",
      "//v1/vaults",
      "/health/live",
      "/health/ready",
      "/metrics",
      "/platform/v1/records",
      "/v1/vaults/vault_a/",
      "/v1/vaults/vault_a/Balances",
      "/v1/vaults/vault_a/balances/1",
      "/.env",
      "/v1/vaults;a=1",
      "/v1/vaults/vault_a;x"
    ]) {
      expect([path, rawCode(await rawGet(base(), path, { key }))]).toEqual([path, "not_found"])
    }
  })
})

describe("absent, hidden and malformed ids", () => {
  test("the responses are equal to the byte, headers included", async () => {
    await app.feed([
      { type: "organization", id: "org_b", name: "B", networks: ["ethereum"] },
      { type: "entity", id: "entity_b", organizationId: "org_b", name: "B" },
      { type: "vault", id: "vault_hidden", entityId: "entity_b", label: "B", networks: ["ethereum"], createdAt: "2024-01-01T00:00:00Z" }
    ])
    const answers = new Set<string>()
    const ids = [
      "vault_hidden",
      "vault_absent",
      "vault_",
      "org_a",
      "user_a",
      "whs_01jz0000000000000000000000",
      "VAULT_A",
      "vault_a%20",
      "vault_a%00",
      "%00",
      "%ff",
      "%zz",
      "%",
      "%e2%82",
      "..%2f..",
      "%2e%2e",
      "a%2fb",
      "'%20OR%20'1'='1",
      "vault_a'--",
      "%F0%9F%92%A9",
      "null",
      "0",
      "-1",
      "*",
      "a".repeat(4_000),
      "a".repeat(5_000)
    ]
    for (const id of ids) {
      for (const path of [...ofVault.map((path) => `/v1/vaults/${id}${path}`), `/v1/vaults/vault_a/transactions/${id}`]) {
        // By RFC 3986 these are the lists across vaults, which exist.
        if (collections.includes(path.replace("/vaults/%2e%2e", ""))) continue
        const answer = await rawGet(base(), path, { key, lines: ["X-Request-Id: same-request-id"] })
        expect([id, path, rawCode(answer)]).toEqual([id, path, "not_found"])
        answers.add(JSON.stringify([{ ...answer.headers, date: "" }, answer.body]))
      }
    }
    expect(answers.size).toBe(1)
  })
})

describe("methods", () => {
  test("a wrong method gets 405 with Allow on every path", async () => {
    for (const path of paths) {
      for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
        const answer = await app.request(method, path, { key })
        expect([method, path, codeOf(answer)]).toEqual([method, path, "method_not_allowed"])
        expect(answer.headers.get("allow")).toBe("GET, HEAD")
      }
      for (const method of ["TRACE", "PROPFIND", "CONNECT"])
        expect(rawCode(await rawGet(base(), path, { key, method }))).toBe("method_not_allowed")
    }
    for (const path of ["/v1/docs", "/v1/openapi.json", "/v1/jwks.json", "/v1/webhook-source-addresses"]) {
      const answer = await app.request("DELETE", path)
      expect([path, codeOf(answer), answer.headers.get("allow")]).toEqual([path, "method_not_allowed", "GET, HEAD"])
    }
  })

  test("HEAD responds as GET does, without the body and with its length", async () => {
    for (const [path, secret] of [
      ...paths.map((path) => [path, key] as const),
      ["/v1/vaults/vault_absent", key],
      ["/v1/vaults", undefined],
      ["/v1/vaults?limit=0", key],
      ["/v1/nothing", key],
      ["/v1/docs", undefined],
      ["/v1/openapi.json", undefined],
      ["/v1/jwks.json", undefined]
    ] as const) {
      const options = { ...(secret === undefined ? {} : { key: secret }), lines: ["X-Request-Id: same-request-id"] }
      const [get, head] = [await rawGet(base(), path, options), await rawGet(base(), path, { ...options, method: "HEAD" })]
      expect([path, head.status, head.body]).toEqual([path, get.status, ""])
      expect([path, head.headers["content-length"]]).toEqual([path, String(Buffer.byteLength(get.body))])
      for (const name of ["content-type", "x-request-id", "www-authenticate"]) expect(head.headers[name]).toBe(get.headers[name])
    }
  })
})

describe("headers", () => {
  test("an Accept without JSON gets 406, and every Accept with it gets 200", async () => {
    for (const path of paths) {
      for (const accept of [
        "text/html",
        "application/xml",
        "image/*",
        "application/json;q=0",
        "application/json; q=0.0, text/html",
        "text/*"
      ]) {
        expect([accept, codeOf(await app.get(path, key, { accept }))]).toEqual([accept, "not_acceptable"])
      }
      for (const accept of [
        "*/*",
        "application/json",
        "application/*",
        "text/html, application/json;q=0.1",
        "application/problem+json",
        "APPLICATION/JSON; charset=utf-8",
        "text/html,*/*;q=0.8",
        "*/*;q=0.01"
      ]) {
        expect([accept, (await app.get(path, key, { accept })).status]).toEqual([accept, 200])
      }
    }
  })

  test("a GET with a stray body or header gets the usual response or is closed", async () => {
    for (const path of paths) {
      const { status } = await rawGet(base(), path, { key, lines: ["Content-Type: text/plain", "Content-Length: 0"] })
      expect([path, status]).toEqual([path, 200])
    }
    const withBody = `GET /v1/networks HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}`
    expect((await sendRaw(base(), withBody)).status).toBe(200)
    const chunked = withBody.replace("Content-Length: 7", "Transfer-Encoding: chunked").replace('{"a":1}', '7\r\n{"a":1}\r\n0\r\n\r\n')
    expect((await sendRaw(base(), chunked)).status).toBe(200)
    for (const lines of [
      ["Content-Length: 5", "Content-Length: 6"],
      ["Content-Length: 5", "Transfer-Encoding: chunked"],
      ["Content-Length: -1"]
    ]) {
      expect([lines, (await rawGet(base(), "/v1/networks", { key, lines })).status]).toEqual([lines, 400])
    }
    expect((await rawGet(base(), "/v1/networks", { key, lines: [`X-Long: ${"a".repeat(20_000)}`] })).status).toBe(431)
    expect((await app.get("/v1/networks", key)).status).toBe(200)
  })

  test("an Authorization header of raw bytes gets 401", async () => {
    for (const value of ["Bearer \xff\xfe", "Bearer \u00e9", "\xff", "Bearer\t", `Bearer ${"x".repeat(8_000)}`, "Bearer cds_\x80"]) {
      const answer = await sendRaw(
        base(),
        Buffer.from(`GET /v1/vaults HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${value}\r\n\r\n`, "latin1")
      )
      expect([value.slice(0, 12), answer.status]).toEqual([value.slice(0, 12), 401])
    }
  })
})

describe("an invalid Host header", () => {
  test("does not change the response, and the service keeps running", async () => {
    for (const host of ["Host: h:99999", "Host:", "Host: [::1", "Host: a b", "Host: %zz", "Host: h?x", undefined]) {
      const ask = (method: string, path: string, lines: ReadonlyArray<string>, body = "") =>
        sendRaw(
          base(),
          [
            `${method} ${path} HTTP/1.${host === undefined ? 0 : 1}`,
            ...(host === undefined ? [] : [host]),
            "Connection: close",
            ...lines,
            "",
            body
          ].join("\r\n")
        )
      const bearer = (secret: string) => `Authorization: Bearer ${secret}`
      const chunked = ["Content-Type: application/json", "Transfer-Encoding: chunked"]
      const statuses = [
        await ask("GET", "/v1/vaults", []),
        await ask("GET", "/v1/vaults", [bearer(Redacted.value(Secret.make()))]),
        await ask("GET", "/v1/vaults?limit=1", [bearer(key)]),
        await ask("GET", "/v1/nowhere", [bearer(key)]),
        ...(host === undefined ? [] : [await ask("POST", "/v1/webhooks", [bearer(key), ...chunked], '8\r\n{"a": 1}\r\n0\r\n\r\n')])
      ].map(({ status }) => status)
      expect([host, statuses]).toEqual([host, [401, 401, 200, 404, ...(host === undefined ? [] : [400])]])
    }
    expect((await app.get("/v1/networks", key)).status).toBe(200)
  })
})

describe("random input", () => {
  test("a request target of random bytes gets a status below 500", async () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "/",
        "?",
        "&",
        "=",
        "%",
        "%00",
        "%ff",
        "%zz",
        "..",
        ";",
        "+",
        "limit",
        "cursor",
        "vault_a",
        "transactions",
        "status",
        "\xff",
        "\x7f",
        "'",
        '"',
        "\\",
        "[",
        "]",
        "{",
        "|",
        "^",
        "`"
      ),
      fc.stringMatching(/^[!-~\x80-\xff]{1,6}$/)
    )
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("/v1/vaults", "/v1/vaults/vault_a/transactions?", "/v1/assets?symbol=", "/"),
        fc.array(piece, { maxLength: 12 }),
        async (start, pieces) => {
          const target = `${start}${pieces.join("")}`.replaceAll(/[\s#]/g, "")
          const answer = await patiently(() => rawGet(base(), target, { key }))
          if (answer.status < 200 || answer.status >= 500) throw new Error(`${JSON.stringify(target)} answered ${answer.status}`)
          if (answer.status >= 400 && answer.headers["x-request-id"] !== undefined) rawCode(answer)
        }
      ),
      { numRuns: 400 }
    )
  })

  test("random text in any parameter gets 200 or 400, never 500", async () => {
    const parameters = [
      "limit",
      "cursor",
      "status",
      "direction",
      "asset",
      "network",
      "hash",
      "occurredAfter",
      "occurredBefore",
      "occurredUntil"
    ]
    const across = ["vaultId", "entityId", "address"]
    const value = fc.oneof(
      fc.string({ unit: "binary", maxLength: 40 }),
      fc.constantFrom(
        "ethereum/native",
        "2024-01-01T00:00:00Z",
        "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00Z",
        "\u0000",
        "%",
        "'; DROP TABLE vaults; --",
        "ethereum/erc20:\u0000"
      )
    )
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...parameters, ...across), value, fc.boolean(), async (name, text, one) => {
        const list = one && !across.includes(name) ? "/v1/vaults/vault_a/transactions" : "/v1/transactions"
        const answer = await app.get(`${list}?${name}=${encodeURIComponent(text.toWellFormed())}`, key)
        if (answer.status !== 200)
          expect([400, true]).toEqual([answer.status, ["invalid_parameter", "invalid_cursor"].includes(codeOf(answer))])
      }),
      { numRuns: 400 }
    )
    await fc.assert(
      fc.asyncProperty(value, async (text) => {
        const answer = await app.get(`/v1/assets?symbol=${encodeURIComponent(text.toWellFormed())}`, key)
        expect([200, 400]).toContain(answer.status)
      }),
      { numRuns: 100 }
    )
  })
})
