/** The TypeScript client against the running service: pagination, errors by code, retries. */
import { beforeAll, describe, expect, spyOn, test } from "bun:test"
import { routes } from "../../src/client/generated/operations.ts"
import { createClient, followEvents, isCustodyError, isErrorOf, NoAnswerError } from "../../src/client/index.ts"
import { useApp } from "../support/app.ts"
import { smallest, transaction } from "../support/records.ts"

const app = useApp()
let key = ""
const client = (more: Partial<Parameters<typeof createClient>[0]> = {}) =>
  createClient({ baseUrl: app.main?.baseUrl ?? "", apiKey: key, ...more })

beforeAll(async () => {
  await app.feed([...smallest(), ...Array.from({ length: 250 }, (_, index) => transaction("vault_a", index, { amount: String(index) }))])
  key = (await app.key("user_a")).secret
})

/** The rejection of a promise. */
const failure = async (call: PromiseLike<unknown>): Promise<unknown> => {
  try {
    await call
  } catch (error) {
    return error
  }
  throw new Error("it did not fail")
}

const body = {
  url: "https://hooks.example.com/custody",
  entityIds: ["entity_a"],
  eventKinds: ["transaction.confirmed"],
  notificationEmail: "ops@example.com"
} as const

/** Every answer as the given status and text, counting the requests. */
const scripted = (...answers: ReadonlyArray<Response | "broken">) => {
  const seen: Array<Request> = []
  const send = async (request: Request): Promise<Response> => {
    seen.push(request)
    const answer = answers[Math.min(seen.length, answers.length) - 1]
    if (answer === undefined || answer === "broken") throw new TypeError("connection reset")
    return new Response(await answer.clone().text(), { status: answer.status, headers: answer.headers })
  }
  return { seen, send }
}
const problem = (status: number, code: string, headers: { readonly [name: string]: string } = {}) =>
  new Response(JSON.stringify({ type: "", title: "T", status, detail: "D.", code, requestId: "req_1" }), { status, headers })

describe("lists", () => {
  test("awaiting a list returns its first page, and iterating returns every item", async () => {
    const page = await client().listTransactions("vault_a", { limit: 100 })
    expect([page.data.length, page.pagination.limit, page.pagination.nextCursor === null]).toEqual([100, 100, false])
    const amounts: Array<string> = []
    for await (const { amount } of client().listTransactions("vault_a", { limit: 100 })) amounts.push(amount)
    expect(amounts.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 250 }, (_, index) => index))
    const sizes: Array<number> = []
    for await (const { data } of client().listTransactions("vault_a", { limit: 100 }).pages()) sizes.push(data.length)
    expect(sizes).toEqual([100, 100, 50])
    const rest = await client().listTransactions("vault_a", { limit: 500, cursor: page.pagination.nextCursor ?? "" })
    expect([rest.data.length, rest.pagination.nextCursor]).toEqual([150, null])
  })

  test("pages are requested lazily, and none is requested after iteration stops", async () => {
    const { seen, send } = scripted(new Response(JSON.stringify({ data: [1, 2], pagination: { limit: 2, nextCursor: "c" } })))
    const list = client({ fetch: send }).listVaults()
    await Bun.sleep(5)
    expect(seen.length).toBe(0)
    for await (const _ of list) break
    expect(seen.length).toBe(1)
  })

  test("a list whose cursor repeats ends with an error", async () => {
    const { seen, send } = scripted(
      new Response(JSON.stringify({ data: [1], pagination: { limit: 1, nextCursor: "a" } })),
      new Response(JSON.stringify({ data: [2], pagination: { limit: 1, nextCursor: "b" } })),
      new Response(JSON.stringify({ data: [3], pagination: { limit: 1, nextCursor: "a" } }))
    )
    const found: Array<unknown> = []
    const all = async () => {
      for await (const one of client({ fetch: send }).listVaults()) found.push(one)
    }
    expect(await failure(all())).toMatchObject({
      reason: "unexpected_answer",
      message: expect.stringContaining("the cursor of an earlier page")
    })
    expect([found.length, seen.length]).toEqual([2, 3])
  })

  test("filters become query parameters: arrays are repeated, and absent filters are left out", async () => {
    const { seen, send } = scripted(new Response(JSON.stringify({ data: [], pagination: { limit: 2, nextCursor: null } })))
    await client({ fetch: send }).listWebhookDeliveries("whs_1", { status: ["PENDING", "FAILED"], kind: undefined, limit: 2 })
    expect(new URL(seen[0]?.url ?? "").search).toBe("?status=PENDING&status=FAILED&limit=2")
  })

  test("an empty list as a filter, which would request everything, is an error", async () => {
    const { seen, send } = scripted()
    const options = { baseUrl: "https://custody.example.com", apiKey: "cds_x", fetch: send }
    const failures = [
      async () => client({ fetch: send }).listAllTransactions({ vaultId: [] }),
      async () => followEvents(options, { vaultId: [] }).next()
    ]
    for (const failing of failures) expect(await failing().catch((error: unknown) => error)).toBeInstanceOf(TypeError)
    expect(seen).toEqual([])
  })
})

describe("every operation", () => {
  test("reads and mutations return what the contract defines", async () => {
    const custody = client()
    expect(await custody.getVault("vault_a")).toMatchObject({ id: "vault_a", networks: ["ethereum"] })
    expect((await custody.listVaults()).data.map(({ id }) => id)).toEqual(["vault_a"])
    expect((await custody.listNetworks()).data).toEqual([{ name: "ethereum", kind: "mainnet" }])
    expect((await custody.listAssets({ symbol: "ETH" })).data.length).toBe(1)
    expect((await custody.listBalances("vault_a")).data).toEqual([])
    expect((await custody.listAddresses("vault_a")).data).toEqual([])
    const created = await custody.createWebhook(body)
    expect(created.secret).toStartWith("whsec_")
    expect((await custody.getWebhook(created.id)).health.state).toBe("HEALTHY")
    expect((await custody.updateWebhook(created.id, { description: "Ledger", vaultIds: ["vault_a"] })).vaultIds).toEqual(["vault_a"])
    expect((await custody.listWebhooks({ status: "ACTIVE" })).data.length).toBe(1)
    expect((await custody.rotateSecret(created.id)).secret).not.toBe(created.secret)
    expect((await custody.rotateSecret(created.id, { expirePrevious: "now" })).previousSecretExpiresAt).toBeNull()
    const [event] = (await custody.listEvents({ kind: "transaction.confirmed", limit: 1 })).data
    expect(await custody.getEvent(event?.id ?? "")).toMatchObject({ matchedCount: 0 })
    expect(await custody.listEventDeliveries(event?.id ?? "")).toEqual({ data: [] })
    expect((await custody.listWebhookDeliveries(created.id)).data).toEqual([])
    expect(isErrorOf(await failure(custody.redeliver("del_absent")), "redeliver")).toBe(true)
    expect(isErrorOf(await failure(custody.pingWebhook("whs_absent", { eventKind: "vault.created" })), "pingWebhook")).toBe(true)
    expect(await custody.deleteWebhook(created.id)).toBeUndefined()
    expect(await custody.getWebhookSourceAddresses()).toEqual({ addresses: [] })
    expect(Object.keys(custody).sort()).toEqual(Object.keys(routes).sort())
  })

  test("an id is one path segment, and one that names another path is not sent", async () => {
    expect(isCustodyError(await failure(client().getVault("../delivery/webhooks?limit=1")), "not_found")).toBe(true)
    for (const id of ["", ".", ".."]) expect(await failure(client().getVault(id))).toBeInstanceOf(TypeError)
  })
})

describe("errors", () => {
  test("an API error carries its code, status, request id and the fields at fault", async () => {
    const error = await failure(client().createWebhook({ ...body, eventKinds: [], url: "http://x" }, { requestId: "my-request-1" }))
    if (!isErrorOf(error, "createWebhook")) throw error
    expect([error.code, error.status, error.requestId, error.retryAfter]).toEqual(["invalid_body", 400, "my-request-1", undefined])
    expect(error.errors.map(({ field }) => field)).toContain("eventKinds")
    expect(isCustodyError(error, "invalid_body", "malformed_json")).toBe(true)
    expect(isCustodyError(error, "not_found")).toBe(false)
    const refused = await failure(client({ apiKey: "cds_nonsense" }).getVault("vault_a"))
    expect(isCustodyError(refused, "invalid_api_key")).toBe(true)
  })

  test("a failed connection, a timeout, an aborted call and an unexpected response are distinguished", async () => {
    const reason = async (call: PromiseLike<unknown>) => {
      const error = await failure(call)
      return error instanceof NoAnswerError ? error.reason : error
    }
    expect(await reason(client({ baseUrl: "http://127.0.0.1:9", retries: 0 }).getVault("vault_a"))).toBe("network")
    const silent = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Promise<Response>(() => {}) })
    const baseUrl = `http://127.0.0.1:${silent.port}`
    expect(await reason(client({ baseUrl, retries: 0, timeout: 50 }).getVault("vault_a"))).toBe("timeout")
    // The service was asked to wait for events.
    const begun = performance.now()
    expect(await reason(client({ baseUrl, retries: 0, timeout: 50 }).readEventFeed({ wait: 1 }))).toBe("timeout")
    expect(performance.now() - begun).toBeGreaterThan(1_000)
    expect(await reason(client({ baseUrl }).getVault("vault_a", { signal: AbortSignal.timeout(50) }))).toBe("aborted")
    await silent.stop(true)
    const page = () => new Response("<html>", { status: 502 })
    expect(await reason(client({ fetch: async () => page(), retries: 0 }).getVault("vault_a"))).toBe("unexpected_answer")
    for (const body of ["<html>", "null", "[]", "7"]) {
      const gateway = client({ fetch: async () => new Response(body) })
      expect([body, await reason(gateway.getVault("vault_a"))]).toEqual([body, "unexpected_answer"])
      expect([body, await reason(gateway.exportTransactions("vault_a", { format: "csv" }))]).toEqual([body, "unexpected_answer"])
    }
    for (const body of ['{"status":"ok"}', '{"data":[]}', '{"data":{},"pagination":{}}', '{"data":[],"pagination":{"nextCursor":{}}}']) {
      const gateway = client({ fetch: async () => new Response(body) })
      expect([body, await reason(gateway.listVaults())]).toEqual([body, "unexpected_answer"])
    }
  })

  test("reading an export that stops is rejected after the timeout", async () => {
    const row = '{"id":"tx_1"}\n'
    const stopped = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => {
        const body = new ReadableStream<string>({ start: (stream) => stream.enqueue(row) })
        return new Response(body, { headers: { "content-type": "application/x-ndjson" } })
      }
    })
    const rows: Array<string> = []
    const reading = async () => {
      const custody = client({ baseUrl: `http://127.0.0.1:${stopped.port}`, timeout: 500, retries: 0 })
      for await (const part of await custody.exportAllTransactions({ format: "ndjson" })) rows.push(new TextDecoder().decode(part))
    }
    expect(await failure(reading())).toMatchObject({ reason: "timeout", message: expect.stringContaining("incomplete") })
    expect(rows).toEqual([row])
    await stopped.stop(true)
  })

  test("a redirect is named in the error, and is not followed with the key", async () => {
    let followed = 0
    const elsewhere = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(String(++followed)) })
    const service = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.redirect(`http://127.0.0.1:${elsewhere.port}/x`, 307)
    })
    const baseUrl = `http://127.0.0.1:${service.port}`
    const named = {
      reason: "unexpected_answer",
      status: 307,
      message: expect.stringContaining(`redirect to http://127.0.0.1:${elsewhere.port}/x. It is not followed`)
    }
    expect(await failure(client({ baseUrl }).getVault("vault_a"))).toMatchObject(named)
    expect(await failure(followEvents({ baseUrl, apiKey: key }).next())).toMatchObject(named)
    expect(followed).toBe(0)
    await Promise.all([elsewhere.stop(true), service.stop(true)])
  })

  test("a follower waits at most five minutes, whatever it is asked to", async () => {
    const asked = problem(503, "service_unavailable", { "retry-after": "999999999" })
    const stop = new AbortController()
    const waits: Array<number> = []
    const timers = spyOn(globalThis, "setTimeout").mockImplementation(((_: () => void, millis = 0) => {
      waits.push(millis)
      if (millis > 60_000) queueMicrotask(() => stop.abort())
    }) as typeof setTimeout)
    try {
      await followEvents({ baseUrl: "http://127.0.0.1:9", apiKey: key, fetch: scripted(asked).send }, { signal: stop.signal }).next()
    } finally {
      timers.mockRestore()
    }
    expect(Math.max(...waits)).toBe(300_000)
  })

  test("a follower reads no message without an end", async () => {
    let sent = 0
    const endless = () => {
      const body = new ReadableStream<Uint8Array>({ pull: (stream) => stream.enqueue(new Uint8Array(sent++ < 400 ? 65_536 : 0).fill(97)) })
      return new Response(body, { headers: { "content-type": "text/event-stream" } })
    }
    const following = followEvents({ baseUrl: "http://127.0.0.1:9", apiKey: key, fetch: async () => endless() })
    expect(await failure(following.next())).toMatchObject({ reason: "unexpected_answer", message: expect.stringContaining("does not end") })
    expect(sent).toBeLessThan(100)
  })

  test("no error contains the key", async () => {
    const errors = [
      await failure(client({ baseUrl: "http://127.0.0.1:9", retries: 0 }).getVault("vault_a")),
      await failure(client().getVault("vault_absent"))
    ]
    expect(Bun.inspect(errors, { depth: 10 })).not.toContain(key.slice(4, 30))
  })
})

describe("retries", () => {
  test("a read is retried after a broken connection and after 503 with Retry-After", async () => {
    const found = new Response(JSON.stringify({ id: "vault_a" }))
    const { seen, send } = scripted("broken", problem(503, "service_unavailable", { "retry-after": "0" }), found)
    expect(await client({ fetch: send }).getVault("vault_a")).toMatchObject({ id: "vault_a" })
    expect(seen.length).toBe(3)
  })

  test("a read is retried after a page of a busy proxy", async () => {
    for (const status of [429, 502]) {
      const { seen, send } = scripted(new Response("<html>", { status }), new Response(JSON.stringify({ id: "vault_a" })))
      expect(await client({ fetch: send }).getVault("vault_a")).toMatchObject({ id: "vault_a" })
      expect(seen.length).toBe(2)
    }
  })

  test("a Retry-After that is an HTTP date is waited for", async () => {
    const found = new Response(JSON.stringify({ id: "vault_a" }))
    // HTTP dates have whole seconds.
    const at = Math.ceil(Date.now() / 1_000) * 1_000 + 1_000
    const { seen, send } = scripted(problem(503, "service_unavailable", { "retry-after": new Date(at).toUTCString() }), found)
    expect(await client({ fetch: send }).getVault("vault_a")).toMatchObject({ id: "vault_a" })
    expect([seen.length, Date.now() >= at - 50]).toEqual([2, true])
    const past = scripted(problem(429, "rate_limited", { "retry-after": "Sun, 06 Nov 1994 08:49:37 GMT" }), found)
    expect(await client({ fetch: past.send }).getVault("vault_a")).toMatchObject({ id: "vault_a" })
    const far = scripted(problem(503, "service_unavailable", { "retry-after": "Fri, 31 Dec 2100 23:59:59 GMT" }))
    const error = await failure(client({ fetch: far.send }).getVault("vault_a"))
    expect([isCustodyError(error) && (error.retryAfter ?? 0) > 1e9, far.seen.length]).toEqual([true, 1])
    const neither = await failure(
      client({ fetch: scripted(problem(404, "not_found", { "retry-after": "soon" })).send }).getVault("vault_a")
    )
    expect(isCustodyError(neither) && neither.retryAfter).toBeUndefined()
  })

  test("a refused request is not retried, and retries stop at the configured number", async () => {
    const refused = scripted(problem(404, "not_found"))
    await failure(client({ fetch: refused.send }).getVault("vault_a"))
    expect(refused.seen.length).toBe(1)
    const away = scripted("broken")
    await failure(client({ fetch: away.send, retries: 1 }).getVault("vault_a"))
    expect(away.seen.length).toBe(2)
  })

  test("a creation is retried with the same Idempotency-Key, so that it is carried out once", async () => {
    // The first request is carried out, and its response is lost.
    let lost = false
    const keys: Array<string | null> = []
    const send = async (request: Request) => {
      keys.push(request.headers.get("idempotency-key"))
      const response = await fetch(request)
      if (lost) return response
      lost = true
      await response.text()
      throw new TypeError("connection reset")
    }
    const before = (await client().listWebhooks()).data.length
    const created = await client({ fetch: send }).createWebhook(body)
    expect(created.secret).toStartWith("whsec_")
    expect([keys.length, keys[0], (await client().listWebhooks()).data.length]).toEqual([2, keys[1] ?? "", before + 1])
  })

  test("a PATCH, DELETE or ping is retried only if it was rate-limited", async () => {
    const broken = scripted("broken")
    const custody = client({ fetch: broken.send })
    await failure(custody.updateWebhook("whs_1", {}))
    await failure(custody.deleteWebhook("whs_1"))
    await failure(custody.pingWebhook("whs_1"))
    expect(broken.seen.length).toBe(3)
    const limited = scripted(problem(429, "rate_limited", { "retry-after": "0" }), new Response(null, { status: 204 }))
    await client({ fetch: limited.send }).deleteWebhook("whs_1")
    expect(limited.seen.length).toBe(2)
  })

  test("a result is taken only with the status that its operation has", async () => {
    const answering = (response: Response) => client({ fetch: scripted(response).send, retries: 0 })
    const nothing = await failure(answering(new Response(null, { status: 204 })).getVault("vault_a"))
    const page = await failure(answering(new Response("{}")).deleteWebhook("whs_1"))
    expect([nothing, page]).toMatchObject([{ reason: "unexpected_answer" }, { reason: "unexpected_answer" }])
  })
})
