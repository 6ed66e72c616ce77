import { beforeAll, describe, expect, test } from "bun:test"
import * as HttpApi from "@effect/platform/HttpApi"
import { Api } from "../../src/app/Api.ts"
import { useApp } from "../support/app.ts"
import { golden, pretty } from "../support/golden.ts"
import { isNode, type Json, list, misfits, type Node, node, referent, resolve } from "../support/jsonSchema.ts"
import { address, asset, balance, smallest, transaction } from "../support/records.ts"

const ORIGIN = "https://custody.example.com"
const app = useApp(["api"], { PORTAL_BASE_URL: ORIGIN })
let document: Node = {}
let key = ""

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    asset("ethereum/erc20:0x1", { decimals: 0 }),
    transaction("vault_a", 1),
    balance("vault_a", "ethereum/native", "1.5"),
    address("vault_a", "a")
  ])
  key = (await app.key("user_a")).secret
  document = (await app.get("/v1/openapi.json")).json
})

/** Routes that need no key. C-3. */
const open = new Set(["/v1/jwks.json", "/v1/webhook-source-addresses"])

interface Operation {
  readonly method: string
  readonly path: string
  readonly value: Node
}
const operations = (): ReadonlyArray<Operation> =>
  Object.entries(node(document["paths"])).flatMap(([path, item]) =>
    Object.entries(node(item)).map(([method, value]) => ({ method, path, value: node(value) }))
  )

/** The operations of receivers of webhooks, by kind. */
const receivers = (): ReadonlyArray<Operation> =>
  Object.entries(node(document["webhooks"])).map(([path, item]) => ({ method: "post", path, value: node(node(item)["post"]) }))

/** Every object in the document, with its path. */
const walk = (value: Json, at: string, visit: (one: Node, at: string) => void): void => {
  if (Array.isArray(value)) for (const [index, one] of value.entries()) walk(one, `${at}/${index}`, visit)
  else if (isNode(value)) {
    visit(value, at)
    for (const [name, one] of Object.entries(value)) walk(one, `${at}/${name}`, visit)
  }
}

describe("the OpenAPI document", () => {
  test("matches its golden file", () => {
    golden("openapi.json", pretty(document))
  })

  test("is served without a key, as is the documentation page", async () => {
    for (const [path, type] of [
      ["/v1/openapi.json", "application/json"],
      ["/v1/docs", "text/html; charset=utf-8"]
    ] as const) {
      const answer = await app.get(path)
      expect([path, answer.status, answer.headers.get("content-type")]).toEqual([path, 200, type])
    }
    expect(document["openapi"]).toBe("3.1.0")
  })

  test("names every route of the service and no other", async () => {
    const routes: Array<string> = []
    HttpApi.reflect(Api, {
      onGroup: () => {},
      onEndpoint: ({ endpoint, middleware }) => {
        const names = [...middleware].map((one) => one.key.replace("custody/", "")).join(" ")
        routes.push(
          `${endpoint.method.padEnd(6)} ${endpoint.path.replaceAll(/:(\w+)/g, "{$1}").padEnd(50)} ${endpoint.name.padEnd(24)} ${names}`
        )
      }
    })
    const described = operations().map(({ method, path, value }) => `${method.toUpperCase()} ${path} ${value["operationId"]}`)
    expect(described.sort()).toEqual(routes.map((route) => route.split(/\s+/).slice(0, 3).join(" ")).sort())
    golden("routes.txt", `${routes.sort().join("\n")}\n`)
    // Each of them is served: an unknown route answers 404 with a key, and 405 for a wrong method.
    for (const { method, path } of operations()) {
      const target = path.replaceAll(/\{\w+\}/g, "x")
      const { headers, status } = await app.request("PUT", target, { key })
      expect([path, status, headers.get("allow")?.includes(method.toUpperCase())]).toEqual([path, 405, true])
    }
  })

  test("leaves no route open without a key or without its scope", async () => {
    const scopes = ["vault:read", "webhook:read", "webhook:manage"]
    const keys = await Promise.all(scopes.map(async (scope) => (await app.key("user_a", { scopes: [scope] })).secret))
    const lines: Array<string> = []
    for (const { method, path } of operations()) {
      const target = path.replace("{vaultId}", "vault_a").replaceAll(/\{\w+\}/g, "absent")
      const outcomes = await Promise.all(
        [undefined, ...keys].map(async (secret) => {
          const { json, status } = await app.request(method.toUpperCase(), target, {
            ...(secret === undefined ? {} : { key: secret }),
            ...(method === "get" ? {} : { body: {} })
          })
          if (status >= 500) throw new Error(`${method} ${target} is ${status}:\n${app.main?.output()}`)
          return status < 300 ? String(status) : `${status} ${json.code}`
        })
      )
      if (!open.has(path)) expect([path, outcomes[0]]).toEqual([path, "401 missing_credentials"])
      // Any valid key may read its own description.
      if (!open.has(path) && path !== "/v1/credential")
        expect(
          outcomes.slice(1).filter((outcome) => /^40[34] (insufficient_scope|not_found)$/.test(outcome)).length
          // Either of two scopes is enough to read entities.
        ).toBeGreaterThanOrEqual(method === "get" && path !== "/v1/entities" ? 2 : 1)
      lines.push(
        `${method.toUpperCase()} ${target}`,
        ...outcomes.map((outcome, index) => `  ${["no key", ...scopes][index]?.padEnd(16)} ${outcome}`)
      )
    }
    golden("access.txt", `${lines.join("\n")}\n`)
  })

  test("has no unresolved reference, no unused schema, and no name twice", () => {
    const used = new Set<string>()
    walk(document, "", ({ $ref }, at) => {
      if (typeof $ref !== "string" || at.endsWith("/properties")) return
      resolve($ref, document)
      used.add($ref)
    })
    const { responses, schemas } = node(document["components"])
    const unused = Object.keys(node(schemas)).filter((name) => !used.has(`#/components/schemas/${name}`))
    expect(unused).toEqual([])
    const operationIds = [...operations(), ...receivers()].map(({ value }) => String(value["operationId"]))
    // Some generators call the result of an operation by its name and "Response".
    const all = [...Object.keys(node(schemas)), ...Object.keys(node(responses)), ...operationIds.map((name) => `${name}Response`)]
    expect(new Set(all.map((name) => name.toLowerCase())).size).toBe(all.length)
    expect(new Set(operationIds).size).toBe(operationIds.length)
    expect(Object.keys(node(responses)).filter((name) => !name.endsWith("Response"))).toEqual([])
    for (const name of [...Object.keys(node(schemas)), ...operationIds]) expect(name).toMatch(/^[A-Za-z][A-Za-z0-9]+$/)
  })

  test("has only schemas that generators of clients take", () => {
    const found: Array<string> = []
    walk(document, "", (one, at) => {
      if (at.endsWith("/properties") || /example/.test(at)) return
      const { $id, additionalProperties, anyOf, enum: values, type } = one
      const others = list(anyOf).filter((option) => node(option)["type"] !== "null")
      if ($id !== undefined) found.push(`${at} has an $id`)
      if (type === "null" && !at.includes("/anyOf/")) found.push(`${at} is null alone`)
      if (anyOf !== undefined && !others.every((option) => node(option)["$ref"] !== undefined))
        found.push(`${at} is null or an inline type`)
      if (type === "number") found.push(`${at} is a number`)
      if (additionalProperties === true && one["properties"] !== undefined) found.push(`${at} says that it may get fields`)
      if (values !== undefined && !/^\/components\/schemas\/\w+$/.test(at)) found.push(`${at} is a set of values without a name`)
    })
    expect(found).toEqual([])
    const schemas = node(node(document["components"])["schemas"])
    expect(Object.keys(schemas)).not.toContain("Int")
    const untitled = Object.entries(schemas).filter(([, schema]) => typeof node(schema)["title"] !== "string")
    expect(untitled).toEqual([])
  })

  test("lets responses and events get new values, and requests only known ones", () => {
    const closedIn = (value: Json, at: string): ReadonlyArray<string> => {
      const found: Array<string> = []
      const visit = (one: Json, place: string) =>
        walk(one, place, (schema, here) => {
          if (schema["enum"] !== undefined) found.push(here)
          if (typeof schema["$ref"] === "string") visit(resolve(schema["$ref"], document), schema["$ref"])
        })
      visit(value, at)
      return found
    }
    for (const { path, value } of operations()) expect([path, closedIn(value["responses"] ?? {}, path)]).toEqual([path, []])
    for (const { path, value } of receivers()) expect([path, closedIn(value["requestBody"] ?? {}, path)]).toEqual([path, []])
    const requests = operations().flatMap(({ path, value }) => closedIn([value["parameters"] ?? [], value["requestBody"] ?? {}], path))
    expect([...new Set(requests)].sort()).toEqual(
      [
        "AuditAction",
        "BalanceSum",
        "ClientAuthentication",
        "DeliveryStatus",
        "Direction",
        "EventKind",
        "ExportAmounts",
        "ExportFormat",
        "FeedStart",
        "RecoveryInclusion",
        "SecretExpiry",
        "TransactionStatus",
        "WebhookStatus"
      ].map((name) => `#/components/schemas/${name}`)
    )
  })

  test("has one schema of problems, and names the codes in each operation's description", () => {
    const problem = node(node(node(document["components"])["schemas"])["Problem"])
    expect(node(node(problem["properties"])["code"])["x-extensible-enum"]).toContain("not_found")
    for (const { path, value } of operations()) {
      const errors = Object.entries(node(value["responses"])).filter(([status]) => Number(status) >= 300)
      for (const [status, response] of errors) {
        const media = node(node(referent(response, document)["content"])["application/problem+json"])
        expect([path, media["schema"]]).toEqual([path, { $ref: "#/components/schemas/Problem" }])
        for (const code of Object.keys(node(media["examples"])))
          expect(String(value["description"])).toMatch(new RegExp(`${status} [^;]*\`${code}\``))
      }
    }
  })

  test("refers to components for the bodies of creations", () => {
    const created = operations().flatMap(({ path, value }) =>
      Object.entries(node(value["responses"])).flatMap(([status, response]) =>
        ["201", "202"].includes(status) ? [[path, node(node(node(node(response)["content"])["application/json"])["schema"])["$ref"]]] : []
      )
    )
    expect(created).toEqual([
      ["/v1/webhooks", "#/components/schemas/WebhookWithSecret"],
      ["/v1/webhook-deliveries/{deliveryId}/redeliver", "#/components/schemas/Delivery"],
      ["/v1/webhooks/{webhookId}/recoveries", "#/components/schemas/Recovery"]
    ])
  })

  test("requires no API key of what webhooks receive, and names the public origin", () => {
    for (const { path, value } of receivers()) expect([path, value["security"]]).toEqual([path, []])
    expect(document["servers"]).toEqual([{ url: ORIGIN }])
  })

  test("describes each operation with its purpose, its parameters, and every status with its codes", () => {
    for (const { path, value } of operations()) {
      expect([path, typeof value["summary"], typeof value["description"]]).toEqual([path, "string", "string"])
      expect([path, value["security"]]).toEqual([path, open.has(path) ? [] : [{ apiKey: [] }]])
      for (const parameter of list(value["parameters"]))
        expect([path, node(parameter)["description"]]).toEqual([path, expect.stringMatching(/.../)])
      for (const [, name = ""] of path.matchAll(/\{(\w+)\}/g)) {
        expect(list(value["parameters"])).toContainEqual(expect.objectContaining({ name, in: "path", required: true }))
      }
      const responses = node(value["responses"])
      for (const status of [...(open.has(path) ? [] : ["401", "403", "406", "429"]), "414", "500", "503"])
        expect([path, status, responses[status] !== undefined]).toEqual([path, status, true])
      for (const [status, response] of Object.entries(responses)) {
        const { content, headers } = referent(response, document)
        expect(Object.keys(node(headers))).toContain("X-Request-Id")
        if (Number(status) < 300) continue
        expect(Object.keys(node(content))).toEqual(["application/problem+json"])
        const examples = Object.entries(node(node(node(content)["application/problem+json"])["examples"]))
        expect([path, status, examples.length > 0]).toEqual([path, status, true])
        for (const [code, example] of examples) expect(node(node(example)["value"])).toMatchObject({ code, status: Number(status) })
      }
    }
  })

  test("defines each error response once, shared by the operations that can return it", () => {
    const shared = Object.keys(node(node(document["components"])["responses"]))
    const references = operations().flatMap(({ value }) =>
      Object.entries(node(value["responses"])).flatMap(([status, response]) => (Number(status) < 300 ? [] : [node(response)["$ref"]]))
    )
    expect([...new Set(references)].sort()).toEqual(shared.map((name) => `#/components/responses/${name}`).sort())
    expect(references.length).toBeGreaterThan(5 * shared.length)
  })

  test("has examples that fit their schemas, with strings that look like numbers quoted", () => {
    let count = 0
    walk(document, "", (one, at) => {
      if (one["schema"] === undefined || at.endsWith("/properties")) return
      if (one["example"] !== undefined) {
        expect([at, misfits(one["schema"], one["example"], document)]).toEqual([at, []])
        count++
      }
      for (const [name, example] of Object.entries(node(one["examples"]))) {
        expect([at, name, misfits(one["schema"], node(example)["value"] ?? null, document)]).toEqual([at, name, []])
        count++
      }
    })
    walk(document, "", (one, at) => {
      if (Array.isArray(one["examples"]) && !at.endsWith("/properties")) {
        for (const example of one["examples"]) expect([at, misfits(one, example, document)]).toEqual([at, []])
      }
    })
    expect(count).toBeGreaterThan(50)
    const empty: Array<string> = []
    walk(document, "", (one, at) => {
      if (/"string"|"propertyName|"additionalProp/.test(JSON.stringify([one["example"], one["examples"]])) && !at.endsWith("/properties"))
        empty.push(at)
    })
    expect(empty).toEqual([])
  })

  test("requires exactly the fields that responses have", () => {
    for (const name of ["Vault", "Balance", "Asset", "Transaction", "DepositAddress", "Network"]) {
      const { properties, required } = node(node(node(document["components"])["schemas"])[name])
      expect([name, [...list(required)].sort()]).toEqual([name, Object.keys(node(properties)).sort()])
    }
  })
})

describe("the documentation", () => {
  test("is served without a key, loads from this service only, and has no broken link", async () => {
    const seen = new Set(["/v1/docs", "/v1/docs/guides", "/v1/docs/errors"])
    for (const path of seen) {
      const { headers, status, text } = await app.get(path)
      expect([path, status, headers.get("cache-control")]).toEqual([
        path,
        200,
        expect.stringMatching(/^public, max-age=(300|31536000, immutable)$/)
      ])
      expect(headers.get("content-security-policy")).toContain("default-src 'none'")
      for (const [, target = ""] of text.matchAll(/(?:src|<link[^>]*href)="([^"]*)"/g))
        expect(target).toMatch(/^\/(v1\/docs\/files\/|favicon)/)
      for (const [, target = ""] of text.matchAll(/(?:src|href)="(\/v1\/[^"#]*)/g)) seen.add(target)
    }
    expect([...seen].filter((path) => path.startsWith("/v1/docs/guides/")).length).toBeGreaterThan(10)
    for (const path of ["/v1/docs/nothing", "/v1/docs/guides/nothing", "/v1/docs/errors/signed_out", "/v1/docs/files/x.js"])
      expect([path, (await app.get(path)).status]).toEqual([path, 404])
    expect((await app.get("/v1/docs/errors/invalid_cursor")).text).toContain("nextCursor")
    const { text } = await app.get("/v1/docs/errors/not_found")
    for (const cause of ["no such resource", "Developer role", "vault allowlist", "lacks the scope", "GET /v1/credential"])
      expect(text).toContain(cause)
    const { json } = await app.get("/v1/vaults")
    expect(json.type).toBe("/v1/docs/errors/missing_credentials")
    expect(seen).toContain(json.type)
  })
})
