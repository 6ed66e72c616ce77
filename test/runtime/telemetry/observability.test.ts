import { beforeAll, describe, expect, test } from "bun:test"
import { type Process, useApp } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { smallest, transaction } from "../../support/records.ts"
import { create } from "../../support/webhookFixtures.ts"

const app = useApp(["api"], { LOG_LEVEL: "debug" })
let key = "",
  keyId = ""

beforeAll(async () => {
  await app.feed(smallest())
  const made = await app.key("user_a")
  // No dispatcher runs, so events that match a webhook wait.
  await create(app, made.secret)
  await app.feed([transaction("vault_a", 1)])
  key = made.secret
  keyId = made.key.id
})

const platform = async (path: string) => {
  const response = await fetch(`${app.main?.platformUrl}${path}`)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

interface Family {
  readonly type: string
  readonly samples: Map<string, number>
}
/** Reads the Prometheus text format strictly; throws on an invalid line. */
const parse = (text: string): ReadonlyMap<string, Family> => {
  const families = new Map<string, Family>()
  let current = ""
  expect(text.endsWith("\n")).toBe(true)
  for (const line of text.trimEnd().split("\n")) {
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line)
    if (comment !== null) {
      current = comment[2] ?? ""
      if (comment[1] === "TYPE") {
        expect(["counter", "gauge", "histogram", "summary", "untyped"]).toContain(comment[3] ?? "")
        expect(families.has(current)).toBe(false)
        families.set(current, { type: comment[3] ?? "", samples: new Map() })
      }
      continue
    }
    const [, name = "", labels = "", value = ""] =
      /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (-?[0-9.]+(?:e[+-]?\d+)?|[+-]Inf|NaN)$/.exec(
        line
      ) ?? []
    if (name === "") throw new Error(`no Prometheus line: ${line}`)
    expect(name === current || [`${current}_bucket`, `${current}_sum`, `${current}_count`].includes(name)).toBe(true)
    const { samples } = families.get(current) ?? { samples: new Map() }
    expect(samples.has(`${name}${labels}`)).toBe(false)
    samples.set(`${name}${labels}`, Number(value.replace("Inf", "Infinity")))
  }
  return families
}

describe("health and metrics on the platform listener", () => {
  test("live and ready respond without a token, and ready shows every dependency", async () => {
    expect(JSON.parse((await platform("/health/live")).text)).toEqual({ live: true })
    // A database that is busy for a moment is reported.
    const { body, status } = await until("readiness", async () => {
      const { status, text } = await platform("/health/ready")
      return status === 200 && { status, body: JSON.parse(text) }
    })
    expect([status, body.ready, body.dependencies.postgres]).toEqual([200, true, "ok"])
    expect(body.oldestUndispatchedSeconds).toBeGreaterThan(0)
    expect(body.oldestUndispatchedSeconds).toBeLessThan(300)
  })

  test("metrics are Prometheus text and count responses by status", async () => {
    const count = async (status: number) =>
      parse((await platform("/metrics")).text)
        .get("custody_http_answers_total")
        ?.samples.get(`custody_http_answers_total{status="${status}"}`) ?? 0
    const before = [await count(200), await count(404)]
    for (let times = 0; times < 3; times++) await app.get("/v1/vaults", key)
    await app.get("/v1/vaults/vault_none", key)
    expect([await count(200), await count(404)]).toEqual([(before[0] ?? 0) + 3, (before[1] ?? 0) + 1])

    const { headers, text } = await platform("/metrics")
    expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8")
    const histogram = parse(text).get("custody_http_request_seconds")
    expect(histogram?.type).toBe("histogram")
    const buckets = [...(histogram?.samples ?? [])].filter(([name]) => name.includes("_bucket"))
    const counts = buckets.map(([, value]) => value)
    expect(counts).toEqual([...counts].sort((a, b) => a - b))
    expect(buckets.at(-1)?.[0]).toContain('le="+Inf"')
    expect(counts.at(-1)).toBe(histogram?.samples.get("custody_http_request_seconds_count") ?? -1)
    expect(histogram?.samples.get("custody_http_request_seconds_sum")).toBeGreaterThan(0)
  })

  test("a request's time leaves out the wait that a reader of the feed asks for", async () => {
    const sum = async () =>
      parse((await platform("/metrics")).text)
        .get("custody_http_request_seconds")
        ?.samples.get("custody_http_request_seconds_sum") ?? 0
    const before = await sum()
    const asked = performance.now()
    await app.get("/v1/event-feed?from=now&wait=5", key)
    const took = (performance.now() - asked) / 1000
    expect(took).toBeGreaterThan(4.9)
    expect((await sum()) - before).toBeLessThan(took - 4)
  })

  test("errors have the envelope and X-Request-Id there, too", async () => {
    for (const path of ["/health/live", "/health/ready", "/metrics", "/nothing"]) {
      expect((await platform(path)).headers.get("x-request-id")).toMatch(/^req_/)
    }
    const { headers, status, text } = await platform("/health")
    expect([status, headers.get("content-type"), JSON.parse(text).code]).toEqual([404, "application/problem+json", "not_found"])
    const wrong = await fetch(`${app.main?.platformUrl}/platform/v1/records`)
    expect([wrong.status, wrong.headers.get("allow"), JSON.parse(await wrong.text()).code]).toEqual([405, "POST", "method_not_allowed"])
    expect((await fetch(`${app.main?.platformUrl}/health/live`, { method: "HEAD" })).status).toBe(200)
  })
})

describe("logs", () => {
  /** The log of a process, without an unfinished last line. */
  const linesOf = (one: Process | undefined) =>
    (one?.output() ?? "")
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  const lines = () => linesOf(app.main)

  test("are one JSON object per line with time, level and message", () => {
    expect(lines().length).toBeGreaterThan(0)
    for (const line of lines()) {
      expect(line).toMatchObject({
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        level: expect.stringMatching(/^(debug|info|warn|error)/),
        message: expect.any(String)
      })
    }
  })

  test("record each request's id, method, path, status, duration, key and caller, but not its query", async () => {
    const requestId = `log-test-${Date.now()}`
    await app.get("/v1/vaults/vault_a/transactions?status=pending&hash=findme", key, { "x-request-id": requestId })
    await app.get("/v1/vaults/vault_none?cursor=findme", key, { "x-request-id": `${requestId}-2` })
    const found = await until("the lines of both", () => {
      const those = lines().filter((line) => String(line.requestId).startsWith(requestId))
      return those.length >= 2 && those
    })
    expect(found).toMatchObject([
      {
        message: "request",
        requestId,
        method: "GET",
        path: "/v1/vaults/vault_a/transactions",
        status: 200,
        ms: expect.any(Number),
        keyId,
        client: "127.0.0.1"
      },
      { message: "request", requestId: `${requestId}-2`, method: "GET", path: "/v1/vaults/vault_none", status: 400, keyId }
    ])
    expect(app.main?.output()).not.toContain("findme")
  })

  test("leave out successful reads unless they are turned on", async () => {
    const usual = await app.start(["api"], { LOG_LEVEL: "info" })
    const read = (path: string) => fetch(`${usual.baseUrl}${path}`, { headers: { authorization: `Bearer ${key}` } })
    await read("/v1/vaults")
    await read("/v1/vaults/vault_none")
    // Lines follow the order of the requests: the successful read would come before this one.
    await until("the line of the other", () => linesOf(usual).some(({ path }) => path === "/v1/vaults/vault_none"))
    const requests = linesOf(usual).filter(({ message }) => message === "request")
    expect(requests).toMatchObject([{ path: "/v1/vaults/vault_none", status: 404, level: "info" }])
  })
})

describe("traces", () => {
  test("go to the collector of OTEL_EXPORTER_OTLP_ENDPOINT, name the handler, and carry no key", async () => {
    const received: Array<{ readonly path: string; readonly body: string }> = []
    const collector = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        received.push({ path: new URL(request.url).pathname, body: await request.text() })
        return new Response("{}", { headers: { "content-type": "application/json" } })
      }
    })
    try {
      const traced = await app.start(["api"], { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}` })
      const answer = await fetch(`${traced.baseUrl}/v1/vaults/vault_a`, { headers: { authorization: `Bearer ${key}` } })
      expect(answer.status).toBe(200)
      await traced.end()
      const traces = received
        .filter(({ path }) => path === "/v1/traces")
        .map(({ body }) => body)
        .join("\n")
      expect(traces).toContain("getVault")
      expect(traces).toContain("custody-data-service")
      for (const { body } of received) expect(body).not.toContain(key.slice(4, 20))
    } finally {
      await collector.stop(true)
    }
  })
})
