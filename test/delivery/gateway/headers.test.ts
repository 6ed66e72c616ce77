/** Headers of webhooks: creating, changing and reading them. C-12. */
import { describe, expect, test } from "bun:test"
import * as Id from "../../../src/values/Id.ts"
import { useApi } from "../../support/api.ts"
import { create, issues, patch, short, tryCreate, useKeys } from "../../support/webhookFixtures.ts"

const app = useApi()
const keys = useKeys(app)

const shown = (...names: ReadonlyArray<string>) => names.map((name) => ({ name, value: null }))
const sealed = async (id: string) => {
  const [row] = await app.sql("SELECT gateway_credentials FROM webhooks WHERE id = $1", [id])
  return row?.gateway_credentials
}

describe("headers of a webhook", () => {
  test("a creation takes them, and no response has their values", async () => {
    const headers = [
      { name: "X-Api-Key", value: "first-value" },
      { name: "Authorization", value: "Basic dXNlcjpwYXNz" }
    ]
    const answer = await tryCreate(app, keys.owner, { headers })
    expect(answer.json).toMatchObject({ headers: shown("X-Api-Key", "Authorization") })
    const { id } = answer.json
    const patched = await patch(app, keys.owner, id, { description: "x" })
    const [read, list] = [await app.get(`/v1/webhooks/${id}`, keys.owner), await app.get("/v1/webhooks", keys.owner)]
    for (const { text } of [answer, patched, read, list]) {
      expect(text).toContain('"X-Api-Key"')
      expect(text).not.toContain("first-value")
      expect(text).not.toContain("dXNlcjpwYXNz")
    }
    expect((await create(app, keys.owner)).headers).toEqual([])
  })

  test("what the service or HTTP sets is refused, in any case", async () => {
    const refused =
      "Host Content-Length content-type Content-Anything Connection Transfer-Encoding TE Trailer Upgrade Expect Proxy-Authorization User-Agent ACCEPT-ENCODING traceparent tracestate Keep-Alive trailers HTTP2-Settings X-Service-Signature X_Service-Signature x_service_attempt Webhook_Id Content_Length Transfer_Encoding x-service-other Webhook-Id"
    for (const name of refused.split(" ")) {
      const answer = await tryCreate(app, keys.owner, { headers: [{ name, value: "x" }] })
      expect([name, short(answer), issues(answer)]).toEqual([name, "400 invalid_body", ["headers.0.name invalid"]])
    }
    for (const name of ["X-Content-Type", "Cookie", "Hostname", "__proto__", "X-Webhook-Token", "X_Api_Key", "Accept"])
      expect([name, short(await tryCreate(app, keys.owner, { status: "DISABLED", headers: [{ name, value: "x" }] }))]).toEqual([
        name,
        "201"
      ])
  })

  test("names, values and sizes outside the limits are refused without showing values", async () => {
    const of = (...headers: ReadonlyArray<readonly [name: unknown, value: unknown]>) => headers.map(([name, value]) => ({ name, value }))
    const long = "v".repeat(1_024)
    const cases: ReadonlyArray<readonly [unknown, ReadonlyArray<string>]> = [
      [of(["", "secret-value"]), ["headers.0.name invalid"]],
      [of(["a b", "secret-value"]), ["headers.0.name invalid"]],
      [of(["é", "secret-value"]), ["headers.0.name invalid"]],
      [of(["X-A", ""]), ["headers.0.value invalid"]],
      [of(["X-A", "secret-value\n"]), ["headers.0.value invalid"]],
      [of(["X-A", " secret-value"]), ["headers.0.value invalid"]],
      [of(["X-A", "secret-valué"]), ["headers.0.value invalid"]],
      [of(["X-A", "secret-value\u0000"]), ["headers.0.value invalid"]],
      [of(["X-A", `${long}v`]), ["headers.0.value invalid"]],
      [of(["X-A", null]), ["headers.0.value invalid"]],
      [of(["X-A", 1]), ["headers.0.value invalid"]],
      [of(["X-A", "secret-value"], ["x-a", "secret-value"]), ["headers.1.name invalid"]],
      [of(["X-A", long], ["X-B", long], ["X-C", long], ["X-D", long]), ["headers invalid"]],
      [Array.from({ length: 11 }, (_, at) => ({ name: `X-${at}`, value: "secret-value" })), ["headers invalid"]],
      [[{ name: "X-A", value: "secret-value", more: 1 }], ["headers.0.more unknown_field"]],
      [[{ value: "secret-value" }], ["headers.0.name missing"]],
      [{ "X-A": "secret-value" }, ["headers invalid"]],
      [null, ["headers invalid"]]
    ]
    for (const [headers, expected] of cases) {
      const answer = await tryCreate(app, keys.owner, { headers })
      expect([headers, short(answer), issues(answer)]).toEqual([headers, "400 invalid_body", expected])
      expect(answer.text).not.toContain("secret-val")
    }
    const most = [...of(["X-A", long], ["X-B", long], ["X-C", long]), { name: "X-D", value: "v".repeat(4_096 - 3 * 1_027 - 3) }]
    expect(short(await tryCreate(app, keys.owner, { status: "DISABLED", headers: most }))).toBe("201")
  })

  test("a patch replaces all headers, and null keeps a stored value", async () => {
    const { id } = await create(app, keys.owner, {
      headers: [
        { name: "X-A", value: "a" },
        { name: "X-B", value: "b" }
      ]
    })
    const before = await sealed(id)
    expect((await patch(app, keys.owner, id, { description: "same" })).json.headers).toEqual(shown("X-A", "X-B"))
    expect(await sealed(id)).toEqual(before)
    const replaced = await patch(app, keys.owner, id, {
      headers: [
        { name: "x-b", value: null },
        { name: "X-C", value: "c" }
      ]
    })
    expect(replaced.json.headers).toEqual(shown("x-b", "X-C"))
    const unknown = await patch(app, keys.owner, id, { headers: [{ name: "X-A", value: null }] })
    expect([short(unknown), issues(unknown)]).toEqual(["400 invalid_body", ["headers.0.value invalid"]])
    expect((await app.get(`/v1/webhooks/${id}`, keys.owner)).json.headers).toEqual(shown("x-b", "X-C"))
    for (const none of [[], null]) {
      await patch(app, keys.owner, id, { headers: [{ name: "X-A", value: "a" }] })
      expect((await patch(app, keys.owner, id, { headers: none })).json.headers).toEqual([])
      expect(await sealed(id)).toBeNull()
    }
  })

  test("a URL of another origin needs every value again", async () => {
    const headers = [{ name: "X-A", value: "a" }]
    const { id } = await create(app, keys.owner, { headers })
    const [here, there] = ["https://hooks.example.com/other?path", "https://hooks.example.com:8443/custody"]
    expect((await patch(app, keys.owner, id, { url: here })).json).toMatchObject({ url: here, headers: shown("X-A") })
    expect(issues(await patch(app, keys.owner, id, { url: there }))).toEqual(["headers invalid"])
    const kept = await patch(app, keys.owner, id, { url: there, headers: shown("X-A") })
    expect(issues(kept)).toEqual(["headers.0.value invalid"])
    expect((await app.get(`/v1/webhooks/${id}`, keys.owner)).json.url).toBe(here)
    expect((await patch(app, keys.owner, id, { url: there, headers })).json).toMatchObject({ url: there, headers: shown("X-A") })
    expect(short(await patch(app, keys.owner, id, { url: "https://elsewhere.example.com/", headers: [] }))).toBe("200")
    expect(short(await patch(app, keys.owner, id, { url: here }))).toBe("200")
  })

  test("the audit log shows names, also if only a value changed", async () => {
    const { id } = await create(app, keys.owner, { headers: [{ name: "X-A", value: "audited-a" }] })
    await patch(app, keys.owner, id, { headers: [{ name: "X-A", value: "audited-b" }] })
    await patch(app, keys.owner, id, { headers: shown("X-A") })
    await patch(app, keys.owner, id, { headers: [] })
    const { json, text } = await app.get("/v1/audit-log?limit=4", keys.owner)
    expect(json.data.map(({ changes }: { changes: { headers?: unknown } }) => changes.headers)).toEqual([
      { old: ["X-A"], new: null },
      undefined,
      { old: ["X-A"], new: ["X-A"] },
      { old: null, new: ["X-A"] }
    ])
    expect(text).not.toContain("audited-")
  })

  test("a deleted webhook has none", async () => {
    const { id } = await create(app, keys.owner, { headers: [{ name: "X-A", value: "a" }] })
    // One with a delivery keeps its row.
    await app.sql(
      `INSERT INTO deliveries (id, event_id, webhook_id, kind, status, failure_reason, organization_id, sequence)
       SELECT $2, $3, w.id, 'transaction.confirmed', 'FAILED', 'EXHAUSTED', w.organization_id, 1 FROM webhooks w WHERE w.id = $1`,
      [id, Id.make("del"), Id.make("evt")]
    )
    expect(await sealed(id)).toBeInstanceOf(Buffer)
    await app.request("DELETE", `/v1/webhooks/${id}`, { key: keys.owner })
    expect(await app.sql("SELECT header_names, gateway_credentials FROM webhooks WHERE id = $1", [id])).toEqual([
      { header_names: [], gateway_credentials: null }
    ])
  })
})
