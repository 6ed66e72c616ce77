/** Pages of other origins: who may read the documents, and who may call the API. Decision D-71. */
import { beforeAll, expect, test } from "bun:test"
import { cli, useApp } from "../support/app.ts"
import { smallest } from "../support/records.ts"

const OWN = "https://treasury.example.com"
const app = useApp(["api"], { CORS_ORIGINS: `${OWN}, http://localhost:3000`, STATEMENT_HISTORY: "7d" })
let key = ""
beforeAll(async () => {
  await app.feed(smallest())
  key = (await app.key("user_a")).secret
})

const allowOrigin = "access-control-allow-origin"
/** What a browser asks before it sends a request with a key. */
const asked = (origin: string, method = "POST") => ({
  origin,
  "access-control-request-method": method,
  "access-control-request-headers": "authorization,content-type,idempotency-key"
})

test("pages of any origin can read what needs no key", async () => {
  for (const path of [
    "/v1/jwks.json",
    "/v1/webhook-source-addresses",
    "/v1/openapi.json",
    "/v1/docs",
    "/v1/docs/guides",
    "/v1/docs/errors/not_found"
  ]) {
    for (const origin of [OWN, "https://elsewhere.example", "null"]) {
      const { headers, status } = await app.get(path, undefined, { origin })
      expect([path, status, headers.get(allowOrigin)]).toEqual([path, 200, "*"])
    }
  }
})

test("a page of a named origin may call the API with a key", async () => {
  for (const origin of [OWN, "http://localhost:3000"]) {
    for (const [path, secret, status] of [
      ["/v1/vaults", key, 200],
      ["/v1/vaults?nonsense=1", key, 400],
      ["/v1/vaults/vault_absent", key, 404],
      ["/v1/vaults", undefined, 401]
    ] as const) {
      const answer = await app.get(path, secret, { origin })
      expect([path, answer.status, answer.headers.get(allowOrigin)]).toEqual([path, status, origin])
      expect(answer.headers.get("access-control-expose-headers")).toBe("*")
      expect(answer.headers.get("access-control-allow-credentials")).toBeNull()
    }
  }
})

test("a preflight of a named origin needs no key", async () => {
  for (const path of ["/v1/webhooks", "/v1/webhooks/whs_1", "/v1/vaults"]) {
    const { headers, status, text } = await app.request("OPTIONS", path, { headers: asked(OWN, "PATCH") })
    expect([path, status, text, headers.get(allowOrigin)]).toEqual([path, 204, "", OWN])
    for (const method of ["GET", "POST", "PATCH", "DELETE"]) expect(headers.get("access-control-allow-methods")).toContain(method)
    for (const header of ["authorization", "content-type", "idempotency-key", "last-event-id"])
      expect(headers.get("access-control-allow-headers")).toContain(header)
  }
})

test("an answer that depends on the origin adds it to Vary", async () => {
  expect((await cli(["statements", "seal"], app.env)).code).toBe(0)
  const [statement] = (await app.get("/v1/vaults/vault_a/statements", key)).json.data
  const vary = async (path: string, headers: { readonly [name: string]: string } = {}, secret: string | undefined = key) =>
    (await app.get(path, secret, headers)).headers.get("vary")
  for (const origin of [{}, { origin: OWN }, { origin: "https://elsewhere.example" }]) {
    expect(await vary("/v1/vaults", origin)).toBe("Origin")
    expect(await vary("/v1/vaults/vault_absent", origin)).toBe("Origin")
    expect(await vary("/v1/vaults", origin, undefined)).toBe("Origin")
    expect(await vary(`/v1/vaults/vault_a/statements/${statement.date}`, origin)).toBe("accept, Origin")
    expect(await vary("/v1/jwks.json", origin)).toBeNull()
  }
  const { headers } = await app.request("OPTIONS", "/v1/vaults", { headers: asked(OWN) })
  expect(headers.get("vary")).toBe("Origin")
})

test("any other origin gets no permission", async () => {
  for (const origin of [
    "https://elsewhere.example",
    "http://treasury.example.com",
    `${OWN}.evil.example`,
    "null",
    "HTTPS://TREASURY.EXAMPLE.COM"
  ]) {
    const read = await app.get("/v1/vaults", key, { origin })
    expect([origin, read.status, read.headers.get(allowOrigin)]).toEqual([origin, 200, null])
    const preflight = await app.request("OPTIONS", "/v1/webhooks", { headers: asked(origin) })
    expect([origin, preflight.status, preflight.headers.get(allowOrigin)]).toEqual([origin, 401, null])
  }
  const portal = await app.request("OPTIONS", "/portal/api/session", { headers: asked(OWN) })
  expect(portal.headers.get(allowOrigin)).toBeNull()
  const plain = await app.request("OPTIONS", "/v1/webhooks", { key, headers: { origin: OWN } })
  expect([plain.status, plain.headers.get("allow")]).toEqual([405, "GET, HEAD, POST"])
})
