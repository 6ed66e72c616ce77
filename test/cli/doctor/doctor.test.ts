/** custody doctor: each fault is reported with what to do, and with the exit code of its kind. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { Client } from "@temporalio/client"
import { msToTs } from "@temporalio/common/lib/time"
import { cli, useApp } from "../../support/app.ts"
import { TrickyProxy } from "../../support/ConnectProxy.ts"
import { authority, receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { smallest } from "../../support/records.ts"
import { servers } from "../../support/servers.ts"
import { operator } from "../../support/temporal.ts"

const receiver = useReceiver()
const app = useApp([])
let env: { readonly [name: string]: string } = {}

beforeAll(async () => {
  env = { ...app.env, ...receiverEnv(receiver) }
  app.main = await app.start(["api", "worker", "dispatcher"], { ...receiverEnv(receiver), TRUSTED_PROXY: "10.0.0.1" })
  await app.feed(smallest())
  const { secret } = await app.key("user_a")
  const body = {
    url: receiver.url("/hook"),
    entityIds: ["entity_a"],
    eventKinds: ["vault.updated"],
    notificationEmail: "ops@example.com"
  }
  expect((await app.request("POST", "/v1/webhooks", { key: secret, body })).status).toBe(201)
  // A service is ready a moment before its worker polls for the first time.
  await until("a worker", async () => typeof (await doctor()).wellOf("Workers") === "string")
})

interface Found {
  readonly subject: string
  readonly state: string
  readonly says: string
  readonly advice?: string
}

/** The doctor's report with these settings changed. */
const doctor = async (changed: { readonly [name: string]: string } = {}) => {
  const { code, stderr, stdout } = await cli(["doctor", "--json"], { ...env, ...changed })
  expect(stderr).toBe("")
  const report = JSON.parse(stdout)
  const findings: ReadonlyArray<Found> = report.findings
  return {
    code,
    stdout,
    settings: report.settings as ReadonlyArray<{ name: string; value?: string; fault?: string; given: boolean }>,
    findings,
    /** The finding about a subject that is not in order. */
    about: (subject: string) => findings.find((one) => one.subject === subject && one.state !== "well") ?? findings,
    wellOf: (subject: string) => findings.find((one) => one.subject === subject && one.state === "well")?.says ?? findings
  }
}

/** A loopback port that is in use while `use` runs. */
const occupied = async <A>(use: (port: number) => Promise<A>): Promise<A> => {
  const server = net.createServer()
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const address = server.address()
  try {
    return await use(typeof address === "object" && address !== null ? address.port : 0)
  } finally {
    server.close()
  }
}
/** A free loopback port. */
const vacant = () => occupied(async (port) => port)

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "custody-doctor-"))
afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }))
const freshFolder = () => fs.mkdtempSync(path.join(scratch, "data-"))

const file = (name: string, text: string) => {
  const folder = freshFolder()
  fs.writeFileSync(path.join(folder, name), text)
  return path.join(folder, name)
}

describe("custody doctor", () => {
  test("finds no fault in a running service: exit code 0", async () => {
    const { code, findings, wellOf } = await doctor()
    expect([code, findings.filter(({ state }) => state === "fault")]).toEqual([0, []])
    expect(wellOf("Postgres")).toMatch(/^version 1[5-9][\d.]* answers$/)
    expect(wellOf("Migrations")).toMatch(/^applied up to \d{4}_\w+$/)
    expect(wellOf("Clock")).toBe("within 5 s of Postgres")
    expect(wellOf("Temporal")).toMatch(/^server [\d.]+ answers$/)
    expect(wellOf("Namespace")).toBe("default")
    expect(wellOf("Search attributes")).toContain("WebhookId")
    expect(wellOf("Workers")).toMatch(/^1 polled /)
    expect(wellOf("Master key")).toBe("decrypts the last 1 webhook secrets")
    expect(wellOf("Signing key")).toMatch(/^[\w-]{43} is published/)
    expect(wellOf("Public API")).toContain(`in use by this service (process ${app.main?.child.pid})`)
    expect(wellOf("WEBHOOK_EXTRA_CA")).toMatch(/^valid for \d+ more days$/)
  })

  test("prints every setting with its value or default, then the checks, and no secret", async () => {
    const secrets = { DATABASE_URL: app.databaseUrl, MASTER_KEY: env.MASTER_KEY ?? "", PLATFORM_TOKEN: env.PLATFORM_TOKEN ?? "" }
    const { code, stdout } = await cli(["doctor"], env)
    expect(code).toBe(0)
    expect(stdout).toMatch(/\nSettings\n {2}HOST +127\.0\.0\.1\n/)
    expect(stdout).toMatch(/\n {2}DATABASE_URL +set \(hidden\)\n/)
    expect(stdout).toMatch(/\n {2}WEBHOOK_RETRY_SCHEDULE +0s,5s,5m,30m,2h,5h,10h,14h,20h,24h\n/)
    expect(stdout).toMatch(/\nChecks\n✓ /)
    expect(stdout).toMatch(/^Not ready for production \(0 faults, \d notices?\): /)
    const password = new URL(app.databaseUrl).password
    for (const text of [stdout, (await doctor()).stdout]) {
      for (const value of [...Object.values(secrets), password]) expect(text).not.toContain(value)
    }
  })

  test("says in its first line whether the installation is ready for production", async () => {
    const first = async (changed: { readonly [name: string]: string }) =>
      (await cli(["doctor"], { ...env, ...changed })).stdout.split("\n")[0]
    const mail = net.createServer((socket) => {
      socket.write("220 mail ESMTP\r\n")
      socket.on("data", (data) => socket.write(/^(EHLO|HELO)/i.test(String(data)) ? "250 mail\r\n" : "221 bye\r\n"))
      socket.on("error", () => {})
    })
    await new Promise<void>((done) => mail.listen(0, "127.0.0.1", done))
    const address = mail.address()
    const SMTP_URL = `smtp://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
    try {
      expect(await first({ SMTP_URL, RATE_LIMIT: "50/1s burst 100" })).toMatch(/^Ready for production \(0 faults, \d notices?\)\.$/)
      expect(await first({ SMTP_URL, RATE_LIMIT: "50/1s burst 100", HOST: "0.0.0.0" })).toMatch(
        /^Not ready for production \(0 faults, \d notices?\): Clear text\.$/
      )
    } finally {
      mail.close()
    }
    expect(await first({ PORT: "eighty" })).toBe("Not ready for production (1 fault, 0 notices): PORT.")
    expect(await first({ RATE_LIMIT: "off" })).toMatch(/^Not ready for production \(0 faults, \d notices?\): Mail server, Rate limit\.$/)
    const embedded = { DATABASE_URL: "", TEMPORAL_ADDRESS: "", MASTER_KEY: "", RATE_LIMIT: "50/1s burst 100", DATA_DIR: freshFolder() }
    expect(await first({ ...embedded, PORT: "0", PLATFORM_PORT: "0" })).toEndWith("Mail server, Embedded servers.")
  })

  test("misses the proxy that serves a portal's https address", async () => {
    const PORTAL_BASE_URL = "https://custody.example.com"
    expect((await doctor({ PORTAL_BASE_URL })).about("Proxies")).toMatchObject({
      state: "notice",
      advice: expect.stringContaining("TRUSTED_PROXIES")
    })
    const { findings } = await doctor({ PORTAL_BASE_URL, TRUSTED_PROXIES: "10.0.0.0/8" })
    expect(findings.filter(({ subject }) => subject === "Proxies")).toEqual([])
  })

  test("says that a port is free although the service runs with another one", async () => {
    const port = await vacant()
    const { wellOf } = await doctor({ PORT: String(port) })
    expect(wellOf("Public API")).toBe(`port ${port} on 127.0.0.1 is free`)
  })

  test("says what owners of a down endpoint are told, with and without a mail server", async () => {
    await app.sql("INSERT INTO webhook_queues (webhook_id, live, down, down_at) SELECT id, true, true, now() FROM webhooks")
    try {
      expect((await doctor()).about("Endpoints")).toMatchObject({ advice: expect.stringContaining("without SMTP_URL no e-mail does") })
      const SMTP_URL = `smtp://127.0.0.1:${await vacant()}`
      expect((await doctor({ SMTP_URL })).about("Endpoints")).toMatchObject({ advice: expect.stringContaining("get an e-mail") })
    } finally {
      await app.sql("DELETE FROM webhook_queues")
    }
  })

  test("names every invalid setting and checks no server by a wrong one: exit code 3", async () => {
    const { code, findings, settings } = await doctor({ PORT: "eighty", RATE_LIMIT: "fast" })
    expect(code).toBe(3)
    expect(findings.map(({ subject }) => subject)).toEqual(["PORT", "RATE_LIMIT"])
    expect(findings[0]?.says).toBe("read “eighty”, expected a whole number from 0 to 65535.")
    expect(settings.filter(({ fault }) => fault !== undefined).map(({ name }) => name)).toEqual(["PORT", "RATE_LIMIT"])
    expect(settings.find(({ name }) => name === "DATABASE_URL")).toEqual({ name: "DATABASE_URL", value: "set (hidden)", given: true })
    const pair = await doctor({ TLS_CERT_FILE: "/etc/ssl/cert.pem" })
    expect([pair.code, pair.findings.map(({ subject }) => subject)]).toEqual([3, ["TLS_KEY_FILE"]])
    const { about, code: keyCode } = await doctor({ MASTER_KEY: "" })
    expect([keyCode, about("MASTER_KEY")]).toMatchObject([3, { says: "It is not set, but DATABASE_URL is." }])
  })

  test("reports an unreachable Postgres without the password: exit code 5", async () => {
    const { about, code, stdout } = await doctor({ DATABASE_URL: `postgres://someone:hunter2hunter2@127.0.0.1:${await vacant()}/custody` })
    expect([code, about("Postgres")]).toMatchObject([
      5,
      { state: "fault", says: expect.stringContaining("ECONNREFUSED"), advice: expect.stringContaining("DATABASE_URL") }
    ])
    expect(stdout).not.toContain("hunter2")
  })

  test("says that Postgres may lose what was acknowledged", async () => {
    const database = new URL(app.databaseUrl).pathname.slice(1)
    await app.sql(`ALTER DATABASE "${database}" SET synchronous_commit = off`)
    try {
      expect((await doctor()).about("Durability")).toMatchObject({
        state: "notice",
        says: expect.stringContaining("synchronous_commit is off")
      })
    } finally {
      await app.sql(`ALTER DATABASE "${database}" RESET synchronous_commit`)
    }
  })

  test("lists missing migrations and the command that applies them", async () => {
    const url = new URL((await servers()).postgres)
    url.pathname = "/postgres"
    const { about, code } = await doctor({ DATABASE_URL: url.toString() })
    expect([code, about("Migrations")]).toMatchObject([
      0,
      { says: expect.stringMatching(/^0001_baseline.* (is|are) missing\.$/), advice: expect.stringContaining("custody migrate") }
    ])
  })

  test("reports a wrong master key as a fault and a half-finished rotation as a notice", async () => {
    const another = randomBytes(32).toString("base64")
    expect((await app.get("/v1/jwks.json")).json.keys).toHaveLength(1)
    const wrong = await doctor({ MASTER_KEY: another })
    // It shows on a restored database that contains no secrets as well, and whatever the previous key is.
    for (const previous of [{}, { MASTER_KEY_PREVIOUS: randomBytes(32).toString("base64") }])
      expect((await doctor({ MASTER_KEY: another, ...previous })).about("Signing key")).toMatchObject({
        state: "fault",
        says: expect.stringContaining("no process starts")
      })
    expect([wrong.code, wrong.about("Master key")]).toMatchObject([
      3,
      { says: expect.stringContaining("1 of the last 1 webhook secrets were encrypted with another key") }
    ])
    const rotating = await doctor({ MASTER_KEY: another, MASTER_KEY_PREVIOUS: env.MASTER_KEY ?? "" })
    expect([rotating.code, rotating.about("Master key")]).toMatchObject([
      0,
      { state: "notice", advice: expect.stringContaining("custody secrets reencrypt") }
    ])
    expect(rotating.wellOf("Signing key")).toContain("is published with its first signature; 1 earlier key stays published")
  })

  test("reports an unreachable Temporal server, a missing namespace and a queue without workers", async () => {
    const port = await vacant()
    const away = await doctor({ TEMPORAL_ADDRESS: `127.0.0.1:${port}` })
    expect([away.code, away.about("Temporal")]).toMatchObject([5, { says: expect.stringContaining(`127.0.0.1:${port} cannot be reached`) }])
    const nowhere = await doctor({ TEMPORAL_NAMESPACE: "nowhere" })
    expect([nowhere.code, nowhere.about("Namespace")]).toMatchObject([
      5,
      { says: "There is no namespace nowhere.", advice: expect.stringContaining("temporal operator namespace create") }
    ])
    const idle = await doctor({ TEMPORAL_TASK_QUEUE: `idle-${process.pid}` })
    expect([idle.code, idle.about("Workers")]).toMatchObject([0, { state: "notice" }])
  })

  test("counts workflows that wait on a task queue without workers", async () => {
    const { client, close } = await operator()
    // A namespace of its own: other tests leave workflows on their queues.
    const [namespace, taskQueue] = [`earlier-${process.pid}`, "earlier"]
    await client.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs("1 day") })
    const there = new Client({ connection: client.connection, namespace })
    const start = () => there.workflow.start("notify", { taskQueue, workflowId: "earlier", args: [{ noticeId: "ntc_none" }] })
    await until("the namespace", () =>
      start().then(
        () => true,
        () => false
      )
    )
    const idle = async () => (await doctor({ TEMPORAL_NAMESPACE: namespace })).stdout.includes(`five minutes: 1 on ${taskQueue}.`)
    await until("the workflow to be listed", idle)
    // What docs/temporal.md says.
    await there.workflow.getHandle("earlier").terminate("task queue changed")
    await until("its end to be listed", async () => !(await idle()))
    await close()
  })

  test("reports a port in use with its setting: exit code 5", async () => {
    await occupied(async (port) => {
      const { about, code } = await doctor({ DATA_DIR: freshFolder(), PORT: String(port) })
      expect([code, about("Public API")]).toMatchObject([
        5,
        { says: `Port ${port} is in use by another program.`, advice: expect.stringContaining("set PORT") }
      ])
    })
    const foreign = await doctor({ DATA_DIR: path.join(scratch, "none"), HOST: "192.0.2.1", PORT: "18080" })
    expect([foreign.code, foreign.about("Public API")]).toMatchObject([3, { advice: "Set HOST to an address of this machine." }])
  })

  test("reports certificates that are missing, invalid, expired or do not match their key", async () => {
    const signer = await authority()
    const [good, other] = [await signer.sign({ names: ["localhost"] }), await signer.sign({ names: ["localhost"] })]
    const expired = await signer.sign({ names: ["localhost"], expired: true })
    const look = (cert: string, key: string, ca?: string) =>
      doctor({
        TLS_CERT_FILE: file("cert.pem", cert),
        TLS_KEY_FILE: file("key.pem", key),
        ...(ca === undefined ? {} : { WEBHOOK_EXTRA_CA: ca })
      })
    expect((await look(good.cert, good.key)).wellOf("TLS_CERT_FILE")).toMatch(/^valid for/)
    const mixed = await look(good.cert, other.key, file("ca.pem", "nothing"))
    expect([mixed.code, mixed.about("TLS_KEY_FILE")]).toMatchObject([
      3,
      { says: "The key does not belong to the certificate of TLS_CERT_FILE." }
    ])
    expect(mixed.about("WEBHOOK_EXTRA_CA")).toMatchObject({ says: expect.stringContaining("contains no certificate") })
    const old = await look(expired.cert, expired.key, "/nowhere/ca.pem")
    expect([old.code, old.about("TLS_CERT_FILE")]).toMatchObject([3, { says: expect.stringContaining("expired on") }])
    expect(old.about("WEBHOOK_EXTRA_CA")).toMatchObject({ says: expect.stringContaining("cannot be read") })
  })

  test("reports an unresponsive mail server, resolver, collector or identity provider: exit code 5", async () => {
    const port = await vacant()
    const { about, code } = await doctor({
      SMTP_URL: `smtp://user:hunter2hunter2@127.0.0.1:${port}`,
      WEBHOOK_DNS_SERVERS: `127.0.0.1:${port}`,
      WEBHOOK_PROXY_URL: `http://user:hunter2hunter2@127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      PORTAL_BASE_URL: "http://127.0.0.1:8080",
      PORTAL_OIDC_ISSUER: `http://127.0.0.1:${port}`,
      PORTAL_OIDC_CLIENT_ID: "custody",
      PORTAL_OIDC_CLIENT_SECRET: "hunter2hunter2"
    })
    expect(code).toBe(5)
    for (const subject of ["Mail server", `Resolver 127.0.0.1:${port}`, "Egress proxy", "Collector", "Identity provider"]) {
      expect([subject, about(subject)]).toMatchObject([subject, { state: "fault" }])
    }
    expect(about("NOTICE_FROM")).toMatchObject({ state: "notice", says: "E-mail is sent from webhooks@localhost." })
    for (const subject of ["Mail server", "Egress proxy"]) expect(JSON.stringify(about(subject))).not.toContain("hunter2")
  })

  test("asks the egress proxy for a tunnel", async () => {
    const proxy = new TrickyProxy()
    await proxy.open()
    const setting = { WEBHOOK_PROXY_URL: `http://user:p%25ss@127.0.0.1:${proxy.port}` }
    proxy.trick = (near) => near.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
    const refused = await doctor(setting)
    expect([refused.code, refused.about("Egress proxy")]).toMatchObject([5, { says: "It cannot be used: the proxy answered 407." }])
    proxy.trick = (near) => near.end("HTTP/1.1 502 Bad Gateway\r\n\r\n")
    expect((await doctor(setting)).wellOf("Egress proxy")).toBe(`127.0.0.1:${proxy.port} accepts CONNECT`)
    expect(proxy.heads[0]).toMatch(new RegExp(`^proxy-authorization: Basic ${btoa("user:p%ss")}\r$`, "im"))
    await proxy.close()
  })

  test("reports what looks like a setting and is none, with the nearest setting", async () => {
    const { about, code } = await doctor({ WEBHOOK_ALLOW_CIDR: "10.0.0.0/8", RATE_LIMITS: "off" })
    expect(code).toBe(3)
    expect(about("WEBHOOK_ALLOW_CIDR")).toMatchObject({ advice: expect.stringContaining("WEBHOOK_ALLOW_CIDRS") })
    expect(app.main?.output()).toContain("TRUSTED_PROXY is not a setting and has no effect. The nearest setting is TRUSTED_PROXIES.")
    expect(about("RATE_LIMITS")).toMatchObject({ advice: expect.stringContaining("RATE_LIMIT.") })
  })

  test("gives notice of a proxy variable, clear text, no rate limit and no mail server", async () => {
    const { about, code } = await doctor({ HTTPS_PROXY: "http://proxy.example:3128", HOST: "0.0.0.0" })
    expect(code).toBe(0)
    expect(about("Proxy")).toMatchObject({ says: "HTTPS_PROXY is set.", advice: expect.stringContaining("Deliveries ignore it") })
    for (const subject of ["Clear text", "Rate limit", "Mail server"])
      expect([subject, about(subject)]).toMatchObject([subject, { state: "notice" }])
  })

  test("gives notice of ranges that contain every address", async () => {
    const { about } = await doctor({ TRUSTED_PROXIES: "10.0.0.1/32,0.0.0.0/0", WEBHOOK_ALLOW_CIDRS: "::/0" })
    for (const subject of ["TRUSTED_PROXIES", "WEBHOOK_ALLOW_CIDRS"])
      expect([subject, about(subject)]).toMatchObject([subject, { state: "notice", says: "It contains every address." }])
  })

  test("starts and writes nothing on a machine where nothing was started", async () => {
    const folder = path.join(freshFolder(), "data")
    const embedded = { DATABASE_URL: "", TEMPORAL_ADDRESS: "", TEMPORAL_UI_URL: "", MASTER_KEY: "", DATA_DIR: folder }
    const { code, settings, wellOf } = await doctor({ ...embedded, EMBEDDED_TEMPORAL_UI_PORT: "0" })
    const ui = (all: typeof settings) => all.find(({ name }) => name === "TEMPORAL_UI_URL")?.value
    expect(ui(settings)).toBe("a free port, chosen at start")
    expect(ui((await doctor({ ...embedded, EMBEDDED_TEMPORAL_UI_PORT: "8299" })).settings)).toBe("http://127.0.0.1:8299")
    expect(wellOf("Postgres")).toBe("the embedded server is not running; `custody start` creates it")
    expect(wellOf("Temporal")).toBe("the embedded server is not running; `custody start` starts it")
    expect([code === 0 || code === 5, fs.existsSync(folder)]).toEqual([true, false])
    // Only the address of a started server is known.
    fs.mkdirSync(path.join(folder, "run"), { recursive: true })
    fs.writeFileSync(path.join(folder, "run", "servers.json"), JSON.stringify({ temporalUi: "http://127.0.0.1:40443" }))
    expect(ui((await doctor({ ...embedded, EMBEDDED_TEMPORAL_UI_PORT: "0" })).settings)).toBe("http://127.0.0.1:40443")
  })
})
