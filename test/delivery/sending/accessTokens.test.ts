/** Access tokens of webhooks, from a real authorization server and from token servers that are slow, down or lying. C-12. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as https from "node:https"
import Provider from "oidc-provider"
import { type Answer, App } from "../../support/app.ts"
import { passOn, TrickyProxy } from "../../support/ConnectProxy.ts"
import { deliveriesOf, deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { Dns } from "../../support/dns.ts"
import { type Received, Receiver, receiverEnv, until } from "../../support/receiver.ts"

const SECRET = "planted-secret-0123456789/with+marks"
const receiver = new Receiver()
const app = new App()
const dns = new Dns()
let server: https.Server
let tokenUrl = ""
let key = ""
/** Requests for a token that the authorization server got. */
let asked = 0
/** Tokens that the gateway accepts: those that the server issued, until a test forgets them. */
const issued = new Set<string>()
const isIssued = (headers: Readonly<Record<string, string>>) => issued.has((headers["authorization"] ?? "").replace(/^Bearer /, ""))

beforeAll(async () => {
  await receiver.open()
  await dns.open()
  dns.on("inside.example.com", { a: ["10.0.0.1"] })
  const { cert, key: privateKey } = (await receiver.authority?.sign({ names: ["localhost"] })) ?? {}
  let handle: ((request: never, response: never) => void) | undefined
  server = https.createServer({ cert, key: privateKey }, (request, response) => {
    if (request.url === "/token") asked++
    handle?.(request as never, response as never)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" ? address?.port : 0
  const issuer = `https://localhost:${port}`
  const client = { grant_types: ["client_credentials"], redirect_uris: [], response_types: [] }
  const provider = new Provider(issuer, {
    clients: [
      { ...client, client_id: "custody", client_secret: SECRET },
      { ...client, client_id: "custody-post", client_secret: SECRET, token_endpoint_auth_method: "client_secret_post" as const }
    ],
    features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
    scopes: ["events.write"]
  })
  provider.on("client_credentials.saved", ({ jti }) => issued.add(jti))
  provider.on("client_credentials.issued", ({ jti }) => issued.add(jti))
  handle = provider.callback() as never
  tokenUrl = `${issuer}/token`
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    WEBHOOK_ALLOW_PORTS: `${receiver.port},${port},1`,
    WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s",
    WEBHOOK_DNS_SERVERS: dns.address,
    LOG_LEVEL: "debug"
  })
  key = await feedOrganization(app, 22)
})
afterAll(async () => {
  await app.close()
  await receiver.close()
  dns.close()
  server?.closeAllConnections()
  server?.close()
})

const oauth = (more: object = {}) => ({ tokenUrl, clientId: "custody", clientSecret: SECRET, ...more })
/** A gateway that lets requests with a token through. */
const gateway = (path: string) => receiver.on(path, ({ headers }) => new Response("", { status: isIssued(headers) ? 200 : 401 }))
/** A webhook's newest delivery when there are as many as expected and this one has ended. */
const ended = (id: string, count = 1): Promise<Answer["json"]> =>
  until("the end of a delivery", async () => {
    const [newest, ...others] = await deliveriesOf(app, key, id)
    return others.length === count - 1 && (newest?.status === "DELIVERED" || newest?.status === "FAILED") ? newest : undefined
  })
const results = ({ attempts }: Answer["json"]) => attempts.map(({ result }: { result: string }) => result)
const ping = async (id: string) => (await app.request("POST", `/v1/webhooks/${id}/ping`, { key })).json
/** A token server at the receiver. */
const lying = (path: string, answer: (request: Received) => Response | Promise<Response>) => {
  receiver.on(path, answer)
  return oauth({ tokenUrl: receiver.url(path) })
}
const tokenOf = (access_token: unknown, more: object = {}) =>
  Response.json({ access_token, token_type: "Bearer", expires_in: 3_600, ...more })

describe("a token of a real authorization server", () => {
  test("is requested once, kept, and sent with every attempt", async () => {
    gateway("/kept")
    const { id } = await webhookOf(app, key, 0, receiver.url("/kept"), {
      oauth: oauth({ scope: "events.write" }),
      headers: [{ name: "X-Tenant", value: "a" }]
    })
    const before = asked
    await feedTransactions(app, [0, 0, 0, 0, 0])
    await until("all deliveries", async () => (await app.get(`/v1/webhooks/${id}`, key)).json.health.delivered24h === 5)
    expect(asked).toBe(before + 1)
    expect(new Set(receiver.to("/kept").map(({ headers }) => headers["authorization"])).size).toBe(1)
    expect(await ping(id)).toMatchObject({ success: true })
    // A ping shows whether the credentials work now.
    expect(asked).toBe(before + 2)
    await app.request("DELETE", `/v1/webhooks/${id}`, { key })
    expect(await app.sql("SELECT header_names, oauth, gateway_credentials FROM webhooks WHERE id = $1", [id])).toEqual([
      { header_names: [], oauth: null, gateway_credentials: null }
    ])
  })

  test("is got by a client that authenticates in the body", async () => {
    gateway("/post")
    const { id } = await webhookOf(app, key, 1, receiver.url("/post"), {
      oauth: oauth({ clientId: "custody-post", clientAuthentication: "post" })
    })
    expect(await ping(id)).toMatchObject({ success: true, result: "2xx" })
  })

  test("that is no longer accepted is replaced at once, using up no attempt", async () => {
    gateway("/revoked")
    const { id } = await webhookOf(app, key, 2, receiver.url("/revoked"), { oauth: oauth() })
    await feedTransactions(app, [2])
    await ended(id)
    issued.clear()
    await feedTransactions(app, [2])
    const replaced = await ended(id, 2)
    expect([replaced.status, results(replaced)]).toEqual(["DELIVERED", ["4xx", "2xx"]])
    expect(await app.sql("SELECT uses_schedule FROM delivery_attempts WHERE delivery_id = $1 ORDER BY number", [replaced.id])).toEqual([
      { uses_schedule: false },
      { uses_schedule: true }
    ])
    // Not a second time within a minute: the attempts of the schedule are used up.
    receiver.on("/revoked", () => new Response("", { status: 401 }))
    await feedTransactions(app, [2])
    const failed = await ended(id, 3)
    expect([failed.status, results(failed)]).toEqual(["FAILED", ["4xx", "4xx", "4xx"]])
  })

  test("is not got with a wrong secret, and the reason shows nothing of it", async () => {
    gateway("/wrong")
    const { id } = await webhookOf(app, key, 3, receiver.url("/wrong"), { oauth: oauth({ clientSecret: "planted-wrong-secret" }) })
    await feedTransactions(app, [3])
    const failed = await ended(id)
    expect(failed.status).toBe("FAILED")
    for (const attempt of failed.attempts)
      expect(attempt).toMatchObject({
        result: "auth_error",
        httpStatus: 0,
        bodySnippet: null,
        detail: "the token server answered 401: invalid_client, client authentication failed"
      })
    expect(failed.attempts).toHaveLength(3)
    expect(receiver.to("/wrong")).toEqual([])
    expect(await ping(id)).toMatchObject({
      success: false,
      result: "auth_error",
      bodySnippet: null,
      detail: "the token server answered 401: invalid_client, client authentication failed"
    })
    await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { oauth: { clientSecret: SECRET } } })
    expect(await ping(id)).toMatchObject({ success: true })
  })
})

describe.concurrent("a token server", () => {
  const cases: ReadonlyArray<readonly [name: string, answer: (request: Received) => Response | Promise<Response>, detail: string]> = [
    [
      "/huge",
      () => new Response(`{"access_token":"${"x".repeat(100_000)}"}`),
      "the token server's 200 response is incomplete or too large"
    ],
    ["/no-json", () => new Response("<html>"), "the token server's response is not an access token"],
    ["/array", () => Response.json([]), "the token server's response is not an access token"],
    ["/number", () => tokenOf(1), "the token server's response is not an access token"],
    ["/line", () => tokenOf("a\r\nx-injected: 1"), "the token server's token cannot be sent in a header"],
    ["/mac", () => tokenOf("a", { token_type: "mac" }), "the token server's response is not an access token"],
    ["/redirect", () => new Response("", { status: 302, headers: { location: tokenUrl } }), "the token server answered 302"],
    ["/broken", () => new Response("", { status: 503 }), "the token server answered 503"],
    [
      "/echo",
      () => Response.json({ error: "invalid_client", error_description: `${SECRET} is ${encodeURIComponent(SECRET)}` }, { status: 400 }),
      "the token server answered 400: invalid_client, *** is ***"
    ],
    [
      "/echo-header",
      ({ headers }) => Response.json({ error: "invalid_client", error_description: headers["authorization"]?.slice(6) }, { status: 400 }),
      "the token server answered 400: invalid_client, ***"
    ]
  ]
  test.each([...cases])("that answers with %s fails the attempts of its webhook", async (path, answer, detail) => {
    const number = 4 + cases.findIndex(([name]) => name === path)
    const { id } = await webhookOf(app, key, number, receiver.url(`${path}/hook`), { oauth: lying(path, answer) })
    await feedTransactions(app, [number])
    const failed = await ended(id)
    expect(failed.status).toBe("FAILED")
    expect(failed.attempts.map(({ detail }: { detail: string }) => detail)).toEqual([detail, detail, detail])
    expect(results(failed)).toEqual(["auth_error", "auth_error", "auth_error"])
    expect(receiver.to(`${path}/hook`)).toEqual([])
  })

  test("that is down, unknown, or at a refused address fails the attempts", async () => {
    const cases = [
      ["https://localhost:1/token", "the token server could not be reached: connection_refused"],
      ["https://unknown.example.com/token", "the name of the token server does not resolve"],
      ["https://inside.example.com/token", "the token server's address is not allowed"]
    ] as const
    const { id } = await webhookOf(app, key, 14, receiver.url("/down/hook"), { oauth: oauth() })
    for (const [index, [tokenUrl, detail]] of cases.entries()) {
      await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { oauth: { tokenUrl, clientSecret: SECRET } } })
      await feedTransactions(app, [14])
      const { attempts } = await ended(id, index + 1)
      for (const attempt of attempts) expect(attempt).toMatchObject({ result: "auth_error", detail })
    }
    expect(receiver.to("/down/hook")).toEqual([])
  })

  test("that never answers costs five seconds, and other webhooks nothing", async () => {
    const { promise: never, resolve: release } = Promise.withResolvers<void>()
    gateway("/beside")
    const slow = await webhookOf(app, key, 15, receiver.url("/slow/hook"), {
      oauth: lying("/slow", () => never.then(() => tokenOf("late")))
    })
    const beside = await webhookOf(app, key, 16, receiver.url("/beside"), { oauth: oauth() })
    await feedTransactions(app, [15, 15, 15, 15])
    await until("the token request", () => receiver.to("/slow")[0])
    await feedTransactions(app, [16])
    expect(results(await ended(beside.id))).toEqual(["2xx"])
    // All attempts wait for one request, or for the one that follows its end.
    const asked = receiver.to("/slow").map(({ at }) => at)
    for (const at of asked.slice(1)) expect(at - (asked[0] ?? 0)).toBeGreaterThanOrEqual(4_500)
    const { attempts } = await deliveryWhen(app, key, slow.id, ({ attempts }) =>
      attempts.some(({ result }: Answer["json"]) => result === "auth_error")
    )
    expect(attempts[0].detail).toBe("the token server did not answer in time")
    expect(attempts[0].latencyMs).toBeGreaterThanOrEqual(4_900)
    expect(attempts[0].latencyMs).toBeLessThan(9_500)
    release()
  })

  test("whose tokens have no end, or end within a minute, is asked for every attempt", async () => {
    for (const [at, path, expires_in] of [
      [17, "/endless", undefined],
      [18, "/short", 60]
    ] as const) {
      receiver.on(
        `${path}/hook`,
        ({ headers }, count) => new Response("", { status: headers["authorization"] === `Bearer t-${count}` ? 200 : 401 })
      )
      let count = 0
      const { id } = await webhookOf(app, key, at, receiver.url(`${path}/hook`), {
        oauth: lying(path, () => tokenOf(`t-${++count}`, { expires_in }))
      })
      for (const deliveries of [1, 2, 3]) {
        await feedTransactions(app, [at])
        await until("the delivery", async () => (await app.get(`/v1/webhooks/${id}`, key)).json.health.delivered24h === deliveries)
      }
      expect(count).toBe(3)
    }
  })

  test("that is slow lets no attempt use the URL or secret from before a change", async () => {
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
    const { promise: late, resolve: release } = Promise.withResolvers<void>()
    gateway("/old")
    receiver.on("/new", () => new Response(""))
    const { id } = await webhookOf(app, key, 20, receiver.url("/old"), {
      oauth: lying("/slowly", () => {
        ask()
        return late.then(() => tokenOf("late"))
      })
    })
    await feedTransactions(app, [20])
    await asked
    // A check is made for attempts that take longer than this.
    await Bun.sleep(600)
    await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { url: receiver.url("/new") } })
    release()
    expect(results(await ended(id))).toEqual(["2xx"])
    expect([receiver.to("/old").length, receiver.to("/new").length]).toEqual([0, 1])
  })

  test("that gives the refused token again causes no further repetition", async () => {
    const { id } = await webhookOf(app, key, 21, receiver.url("/same/hook"), { oauth: lying("/same", () => tokenOf("same")) })
    let count = 0
    receiver.on("/same/hook", () => new Response("", { status: count++ === 0 ? 200 : 401 }))
    await feedTransactions(app, [21])
    await ended(id)
    await feedTransactions(app, [21, 21, 21])
    const all = await until("the end of all", async () => {
      const deliveries = await deliveriesOf(app, key, id)
      return deliveries.filter(({ status }) => status === "FAILED").length === 3 && deliveries
    })
    // Only those that were under way when the token was first refused are repeated.
    const repeated = all.map(({ attempts }) => Math.max(0, attempts.length - 3))
    expect(repeated.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(3)
  })

  test("whose tokens end early repeats an attempt at once, no more than once", async () => {
    let tokens = 0
    const { id } = await webhookOf(app, key, 19, receiver.url("/late/hook"), {
      oauth: lying("/late", () => tokenOf(`late-${++tokens}`, { expires_in: 61 }))
    })
    receiver.on("/late/hook", async () => {
      await Bun.sleep(1_150)
      return new Response("", { status: 401 })
    })
    for (let count = 1; count <= 6; count++) {
      await feedTransactions(app, [19])
      await until("the first attempt", () => receiver.to("/late/hook").length >= count)
    }
    await until("the end of all", async () => {
      const deliveries = await deliveriesOf(app, key, id)
      return deliveries.length === 6 && deliveries.every(({ status }) => status === "FAILED")
    })
    const attempts = await app.sql(
      `SELECT count(*) FILTER (WHERE NOT uses_schedule)::int AS repeated, count(*) FILTER (WHERE uses_schedule)::int AS used
       FROM delivery_attempts WHERE webhook_id = $1 GROUP BY delivery_id`,
      [id]
    )
    for (const { repeated, used } of attempts) expect([Number(repeated) <= 1, used]).toEqual([true, 3])
  })

  test("gets neither a secret nor a token into the log", async () => {
    gateway("/logged")
    const { id } = await webhookOf(app, key, 19, receiver.url("/logged"), { oauth: oauth() })
    expect(await ping(id)).toMatchObject({ success: true })
    const token = (receiver.to("/logged")[0]?.headers["authorization"] ?? "").replace("Bearer ", "")
    expect(token.length).toBeGreaterThan(20)
    for (const secret of [token, SECRET, "planted-wrong-secret"]) expect(app.main?.output().includes(secret)).toBe(false)
  })
})

describe("behind an egress proxy", () => {
  const proxied = new App()
  const proxy = new TrickyProxy()
  beforeAll(async () => {
    await proxy.open()
    await proxied.open(["api", "worker"], {
      ...receiverEnv(receiver),
      WEBHOOK_ALLOW_PORTS: `${receiver.port},${new URL(tokenUrl).port}`,
      WEBHOOK_PROXY_URL: `http://127.0.0.1:${proxy.port}`
    })
  })
  afterAll(async () => {
    await proxied.close()
    await proxy.close()
  })

  test("the token is requested through it, too, at the checked address", async () => {
    gateway("/proxied")
    const own = await feedOrganization(proxied, 1)
    const { id } = await webhookOf(proxied, own, 0, receiver.url("/proxied"), { oauth: oauth() })
    const pinged = async () => (await proxied.request("POST", `/v1/webhooks/${id}/ping`, { key: own })).json.result
    expect(await pinged()).toBe("2xx")
    const targets = proxy.heads.map((head) => head.split("\r\n", 1)[0])
    expect(targets).toEqual([`CONNECT 127.0.0.1:${new URL(tokenUrl).port} HTTP/1.1`, `CONNECT 127.0.0.1:${receiver.port} HTTP/1.1`])
    proxy.trick = (near) => near.end("HTTP/1.1 403 Forbidden\r\n\r\n")
    // The service's own failure is not the token server's.
    expect(await pinged()).toBe("proxy_error")
    proxy.trick = passOn()
    expect(await pinged()).toBe("2xx")
  })
})
