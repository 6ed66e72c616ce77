/** The transport of deliveries: with a client certificate, and through a proxy. C-8. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import type { TLSSocket } from "node:tls"
import { long } from "../../faults/Rig.ts"
import { type Answer, App, cli } from "../../support/app.ts"
import { hasTinyproxy, passOn, Tinyproxy, type Trick, TrickyProxy } from "../../support/ConnectProxy.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { Dns } from "../../support/dns.ts"
import { temporaryFiles } from "../../support/files.ts"
import { inTurn } from "../../support/inTurn.ts"
import { KeepAliveEndpoint, ok } from "../../support/KeepAliveEndpoint.ts"
import { type Authority, authority, Receiver, receiverEnv, until } from "../../support/receiver.ts"
import { names, vectors } from "../../support/ssrf.ts"

const files = temporaryFiles()
const ROLES = ["api", "worker", "dispatcher"]
/** What each group opens before the tests, and closes after them. The groups run beside each other. */
const opened: Array<() => Promise<void>> = [],
  closed: Array<() => Promise<void>> = []
beforeAll(() => Promise.all(opened.map((open) => open())))
afterAll(async () => {
  await Promise.all(closed.map((close) => close()))
  files.remove()
})
/** The time limit of a group, in ms: its tests wait for each other. */
const WHOLE = 300_000
/** How long pings of a service took that no worker began, in ms. */
const unsentMs = new Map<App, number>()
/** Pings a webhook, and repeats a ping that a busy machine answers with 503, as its client would. */
const pingOf = (app: App, key: string, id: string): Promise<Answer["json"]> =>
  until(
    "the answer of a ping",
    async () => {
      const since = Date.now()
      const { json, status } = await app.request("POST", `/v1/webhooks/${id}/ping`, { key })
      if (status === 503) unsentMs.set(app, (unsentMs.get(app) ?? 0) + Date.now() - since)
      return status !== 503 && json
    },
    // A full machine answers 503 after 14 s, more than once.
    60
  )

describe.concurrent("a client certificate that endpoints may require", () => {
  const next = inTurn()
  const app = new App()
  const endpoint = new KeepAliveEndpoint()
  let clients: Authority
  let key = ""
  let id = ""
  const [certFile, keyFile] = [files.write("client.pem", ""), files.write("client.key", "")]
  const present = async (name: string, by: Authority = clients, expired = false) => {
    const made = await by.sign({ names: [name], expired })
    fs.writeFileSync(keyFile, made.key)
    fs.writeFileSync(certFile, made.cert)
  }
  const peer = (socket: TLSSocket) => String(socket.getPeerCertificate().subject?.CN)

  opened.push(async () => {
    clients = await authority()
    await present("first.client")
    await endpoint.open(["localhost"], { ca: clients.ca, requestCert: true, rejectUnauthorized: true })
    endpoint.on("/mtls", ({ socket }) => socket.write(ok("", peer(socket))))
    await app.open(ROLES, {
      WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
      WEBHOOK_ALLOW_PORTS: String(endpoint.port),
      WEBHOOK_EXTRA_CA: files.write("endpoint.pem", endpoint.ca),
      WEBHOOK_CLIENT_CERT_FILE: certFile,
      WEBHOOK_CLIENT_KEY_FILE: keyFile,
      WEBHOOK_RETRY_SCHEDULE: "0s,1h"
    })
    key = await feedOrganization(app, 1)
    id = (await webhookOf(app, key, 0, endpoint.url("/mtls"))).id
  })
  closed.push(async () => {
    await app.close()
    endpoint.close()
  })

  test(
    "an endpoint that requires one accepts deliveries and pings",
    next(async () => {
      await feedTransactions(app, [0])
      expect((await deliveryWhen(app, key, id, ({ status }) => status === "DELIVERED")).attempts).toMatchObject([
        { bodySnippet: "first.client" }
      ])
      expect(await pingOf(app, key, id)).toMatchObject({ result: "2xx", bodySnippet: "first.client" })
    }),
    WHOLE
  )

  test(
    "a rotated one is presented within 5 seconds, without a restart",
    next(async () => {
      const unsent = () => unsentMs.get(app) ?? 0
      const [rotatedAt, before] = [Date.now(), unsent()]
      await present("second.client")
      await until("the second certificate", async () => (await pingOf(app, key, id)).bodySnippet === "second.client")
      // 5 s, and what a busy machine adds.
      expect(Date.now() - rotatedAt - (unsent() - before)).toBeLessThan(30_000)
      await feedTransactions(app, [0])
      const delivery = await deliveryWhen(app, key, id, ({ attempts }) => attempts[0]?.bodySnippet === "second.client")
      expect(delivery.status).toBe("DELIVERED")
    }),
    WHOLE
  )

  test(
    "a pair that does not match leaves the last good one in use",
    next(async () => {
      const logged = () => app.main?.output().split("the last pair remains in use").length ?? 0
      fs.writeFileSync(keyFile, (await clients.sign({ names: ["other"] })).key)
      await until("the log line", () => logged() === 2)
      expect(await pingOf(app, key, id)).toMatchObject({ result: "2xx", bodySnippet: "second.client" })
      fs.writeFileSync(certFile, "no certificate")
      await until("the log line of the other fault", () => logged() === 3)
      await present("expired.client", clients, true)
      await until("the log line of an expired one", () => app.main?.output().includes("the certificate is valid from") === true)
      const metrics = await (await fetch(`${app.main?.platformUrl}/metrics`)).text()
      expect(Number(/^custody_log_errors_total (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThanOrEqual(2)
      expect(await pingOf(app, key, id)).toMatchObject({ result: "2xx", bodySnippet: "second.client" })
      // A worker that starts with it says so, too.
      const other = await app.start(["worker"])
      await until("the log line of another worker", () => other.output().includes("the certificate is valid from"))
      await other.end()
      await present("third.client")
      await until("the third certificate", async () => (await pingOf(app, key, id)).bodySnippet === "third.client")
    }),
    WHOLE
  )

  test(
    "one of another authority is refused by the endpoint, and the attempt fails",
    next(async () => {
      await present("stranger", await authority())
      const answer = await until("the refusal", async () => {
        const json = await pingOf(app, key, id)
        return json.success === false && json
      })
      expect(["tls_error", "connection_reset"]).toContain(answer.result)
      await present("fourth.client")
    }),
    WHOLE
  )

  test(
    "a certificate without its key, or an invalid one, prevents the start",
    next(async () => {
      const { WEBHOOK_CLIENT_KEY_FILE: _, ...without } = app.env
      const { code, stderr } = await cli(["start"], without)
      expect([code, stderr]).toEqual([3, expect.stringContaining("WEBHOOK_CLIENT_KEY_FILE")])
      const broken = await cli(["start"], { ...app.env, WEBHOOK_CLIENT_CERT_FILE: files.write("broken.pem", "broken") })
      expect([broken.code === 0, `${broken.stderr}${broken.stdout}`]).toEqual([false, expect.stringContaining("WEBHOOK_CLIENT_CERT_FILE")])
    }),
    WHOLE
  )
})

/** An app whose deliveries use a proxy. */
const proxied = async (app: App, receiver: Receiver, url: string, more: { readonly [name: string]: string } = {}) => {
  await app.open(ROLES, { ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s", WEBHOOK_PROXY_URL: url, ...more })
  return feedOrganization(app, 3)
}

describe.concurrent.skipIf(!hasTinyproxy)("a real proxy, tinyproxy", () => {
  const next = inTurn()
  const app = new App()
  const receiver = new Receiver()
  const tinyproxy = new Tinyproxy()
  const dns = new Dns()
  /** The only allowed address. */
  const OUTSIDE = "127.0.9.1"
  const at = (target: string, name = "in") => `https://${name}.proxied.test:${receiver.port}${target}`
  let key = ""
  opened.push(async () => {
    if (!hasTinyproxy) return
    await receiver.open(OUTSIDE, ["in.proxied.test"])
    await Promise.all([tinyproxy.open([receiver.port], "custody s3cret"), dns.open()])
    dns.on("in.proxied.test", { a: [OUTSIDE] })
    dns.on("unnamed.proxied.test", { a: [OUTSIDE] })
    for (const { answers, host } of names)
      dns.on(host, { a: answers.filter((text) => !text.includes(":")), aaaa: answers.filter((text) => text.includes(":")) })
    key = await proxied(app, receiver, `http://custody:s3cret@127.0.0.1:${tinyproxy.port}`, {
      WEBHOOK_ALLOW_CIDRS: "127.0.9.0/24",
      WEBHOOK_DNS_SERVERS: dns.address
    })
  })
  closed.push(async () => {
    if (!hasTinyproxy) return
    await app.close()
    dns.close()
    await tinyproxy.close()
    await receiver.close()
  })

  test(
    "deliveries and pings use it, with user and password, and CONNECT names the checked address",
    next(async () => {
      const webhook = await webhookOf(app, key, 0, at("/through"))
      await feedTransactions(app, [0])
      expect(await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")).toMatchObject({
        attempts: [{ result: "2xx" }]
      })
      expect(await pingOf(app, key, webhook.id)).toMatchObject({ result: "2xx" })
      expect(new Set(tinyproxy.targets)).toEqual(new Set([`${OUTSIDE}:${receiver.port}`]))
      // No log contains the password.
      expect(app.main?.output()).not.toContain("s3cret")
    }),
    WHOLE
  )

  test(
    "the host name is verified through it",
    next(async () => {
      const webhook = await webhookOf(app, key, 1, at("/unnamed", "unnamed"))
      expect(await pingOf(app, key, webhook.id)).toMatchObject({ success: false, result: "tls_error" })
      expect(receiver.to("/unnamed")).toHaveLength(0)
    }),
    WHOLE
  )

  test(
    "the guard's corpus is refused before the proxy is contacted",
    next(async () => {
      const before = tinyproxy.targets.length
      // Every sixth of the corpus, all of it in a long run.
      const urls = [
        ...vectors.map(({ url }) => url).filter((url) => !url.includes("\u0000")),
        ...names.map(({ host }) => `https://${host}:${receiver.port}/inside`)
      ].filter((_, index) => long || index % 6 === 0)
      const queue = [...urls]
      const answers: Array<readonly [string, string]> = []
      await Promise.all(
        Array.from({ length: 8 }, async () => {
          const { id } = await webhookOf(app, key, 2, at("/corpus"), { status: "DISABLED" })
          for (let url = queue.pop(); url !== undefined; url = queue.pop()) {
            await app.sql("UPDATE webhooks SET url = $2 WHERE id = $1", [id, url])
            answers.push([url, (await pingOf(app, key, id)).result])
          }
        })
      )
      expect(answers).toHaveLength(urls.length)
      expect(answers.filter(([, result]) => result !== "blocked_address" && result !== "dns_error")).toEqual([])
      expect(tinyproxy.targets.slice(before)).toEqual([])
      expect(receiver.to("/inside")).toHaveLength(0)
    }),
    WHOLE
  )
})

describe.concurrent("the effect of a proxy on an attempt", () => {
  const next = inTurn()
  const app = new App()
  const receiver = new Receiver()
  const proxy = new TrickyProxy()
  let key = ""
  let id = ""
  opened.push(async () => {
    await receiver.open()
    await proxy.open(await receiver.authority?.sign({ names: ["localhost"] }))
    key = await proxied(app, receiver, `https://localhost:${proxy.port}`)
    id = (await webhookOf(app, key, 0, receiver.url("/pinged"))).id
  })
  closed.push(async () => {
    await app.close()
    await proxy.close()
    await receiver.close()
  })

  const says =
    (text: string): Trick =>
    (near) => {
      near.end(text)
    }
  const scenarios: { readonly [name: string]: readonly [Trick, string] } = {
    "passes on": [passOn(), "2xx"],
    "answers 502": [says("HTTP/1.1 502 Bad Gateway\r\n\r\n"), "network_error"],
    "answers 503": [says("HTTP/1.1 503 Unavailable\r\n\r\n"), "network_error"],
    "answers 504": [says("HTTP/1.0 504 Gateway Timeout\r\n\r\n"), "network_error"],
    "answers 403": [says("HTTP/1.1 403 Forbidden\r\n\r\n"), "proxy_error"],
    "answers 407": [says("HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n"), "proxy_error"],
    "answers 301": [says("HTTP/1.1 301 Moved\r\nLocation: https://localhost/\r\n\r\n"), "proxy_error"],
    "answers with garbage": [says("\u0000\u0001 no HTTP\r\n\r\n"), "proxy_error"],
    "answers without end": [(near) => near.write("HTTP/1.1 200 OK\r\nX-Long: ".padEnd(100_000, "x")), "proxy_error"],
    "closes at once": [(near) => near.destroy(), "proxy_error"],
    "is silent": [() => {}, "proxy_error"],
    "leads to one that speaks first": [says("HTTP/1.1 200 OK\r\n\r\n220 mail.example.com ESMTP\r\n"), "network_error"],
    "says 200 and closes": [(near) => near.end("HTTP/1.1 200 OK\r\n\r\n"), "connection_reset"],
    "says 200 and then what is no TLS": [
      (near) => {
        near.write("HTTP/1.1 200 OK\r\n\r\n")
        setTimeout(() => near.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 100)
      },
      "tls_error"
    ]
  }
  for (const [name, [trick, result]] of Object.entries(scenarios))
    test(
      `one that ${name}: ${result}`,
      next(async () => {
        proxy.trick = trick
        const seen = receiver.to("/pinged").length
        expect(await pingOf(app, key, id)).toMatchObject({ result, httpStatus: result === "2xx" ? 200 : 0 })
        expect(receiver.to("/pinged").length - seen).toBe(result === "2xx" ? 1 : 0)
      }),
      WHOLE
    )

  test(
    "nothing is sent through a proxy that leads to another endpoint",
    next(async () => {
      const other = new KeepAliveEndpoint()
      await other.open(["other.example.com"])
      proxy.trick = passOn(other.port)
      expect(await pingOf(app, key, id)).toMatchObject({ success: false, result: "tls_error" })
      expect(other.requests).toHaveLength(0)
      other.close()
    }),
    WHOLE
  )

  test(
    "an unreachable proxy uses up nothing of the schedule and counts in no health",
    next(async () => {
      await proxy.close()
      const begun = performance.now()
      const logged = () => app.main?.output().match(/The proxy of WEBHOOK_PROXY_URL fails/g)?.length ?? 0
      const before = logged()
      const webhook = await webhookOf(app, key, 1, receiver.url("/away"))
      await feedTransactions(app, [1])
      const waiting = await deliveryWhen(app, key, webhook.id, ({ attempts }) => attempts[0]?.result === "proxy_error")
      expect(waiting).toMatchObject({ status: "RETRYING", attempts: [{ httpStatus: 0, bodySnippet: null }] })
      expect(Date.parse(waiting.nextAttemptAt) - Date.now()).toBeLessThan(30_000)
      const readiness = async () => {
        const response = await fetch(`${app.main?.platformUrl}/health/ready`)
        return { status: response.status, proxy: JSON.parse(await response.text()).dependencies.proxy }
      }
      expect(await readiness()).toEqual({ status: 200, proxy: expect.stringContaining("ECONNREFUSED") })
      // Once a minute, however many attempts need it.
      await until("the log", () => logged() > 0)
      expect(logged() - before).toBeLessThanOrEqual(1 + Math.floor((performance.now() - begun) / 60_000))
      expect((await app.get(`/v1/webhooks/${webhook.id}`, key)).json.health).toMatchObject({ consecutiveFailures: 0, lastFailureAt: null })
      proxy.trick = passOn()
      await proxy.open(await receiver.authority?.sign({ names: ["localhost"] }))
      const delivered = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
      expect(delivered.attempts.at(-1)).toMatchObject({ result: "2xx" })
      expect(receiver.to("/away")).toHaveLength(1)
      expect(await readiness()).toEqual({ status: 200, proxy: "ok" })
    }),
    WHOLE
  )

  test(
    "a proxy whose certificate is for another host gets no request",
    next(async () => {
      await proxy.close()
      const before = proxy.heads.length
      await proxy.open(await receiver.authority?.sign({ names: ["proxy.example.com"] }))
      expect(await pingOf(app, key, id)).toMatchObject({ result: "proxy_error" })
      expect(proxy.heads).toHaveLength(before)
    }),
    WHOLE
  )
})
