/** The sample configurations of nginx and Caddy in front of the service, with the real programs where they are installed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import type { IncomingMessage } from "node:http"
import * as https from "node:https"
import * as path from "node:path"
import { Effect } from "effect"
import { type Process, useApp } from "../support/app.ts"
import { BIG, fillVault } from "../support/bigVault.ts"
import { documentText } from "../support/document.ts"
import { temporaryFiles } from "../support/files.ts"
import { freePort } from "../support/freePort.ts"
import { authority, until } from "../support/receiver.ts"
import { smallest, transaction, user, vault } from "../support/records.ts"

const FEED = "/v1/event-feed"
/** An address of clients, and that of a load balancer, neither of them the proxy's. */
const CLIENT = "127.0.0.2",
  BALANCER = "127.0.0.3"
/** Debian installs nginx where only root has it on the PATH. */
const find = (program: string) => Bun.which(program, { PATH: `${process.env["PATH"]}:/usr/sbin` })

/** A sample with some of its texts replaced, each of which it must have. */
const filled = (sample: string, texts: { readonly [text: string]: string }): string =>
  Object.entries(texts).reduce((text, [old, fresh]) => {
    if (!text.includes(old)) throw new Error(`${sample} has no ${old}`)
    return text.replaceAll(old, () => fresh)
  }, documentText(sample))

interface Place {
  /** Where the proxy listens, and where the service does. */
  readonly port: number
  readonly service: string
  /** Files of a certificate for `localhost`. */
  readonly cert: string
  readonly key: string
  readonly files: ReturnType<typeof temporaryFiles>
  /** Whether a load balancer is in front of the proxy. */
  readonly balanced: boolean
}
/** What the sample says of a load balancer. */
const balancerOf = (of: string) => ({
  "# set_real_ip_from 192.0.2.0/24": `set_real_ip_from ${of}/32`,
  "# real_ip_header": "real_ip_header",
  "# real_ip_recursive": "real_ip_recursive"
})
/** For each proxy the command that runs it with its sample. */
const proxies: { readonly [_ in "nginx" | "caddy"]: (place: Place, program: string) => ReadonlyArray<string> } = {
  nginx: ({ balanced, cert, files, key, port, service }, program) => {
    const sample = filled("deploy/proxy/nginx.conf", {
      "listen 443": `listen 127.0.0.1:${port}`,
      "server 127.0.0.1:8080": `server ${service}`,
      "custody.example.com": "localhost",
      "/etc/ssl/custody.pem": cert,
      "/etc/ssl/custody.key": key,
      ...(balanced ? balancerOf(BALANCER) : {})
    })
    const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    const around = `pid ${files.folder}/nginx.pid;
events {}
http {
  access_log off;
${kinds.map((kind) => `  ${kind}_temp_path ${files.folder}/${kind};`).join("\n")}
  include ${files.write("custody.conf", sample)};
}
`
    return [program, "-p", files.folder, "-e", "stderr", "-g", "daemon off;", "-c", files.write("nginx.conf", around)]
  },
  caddy: ({ cert, files, key, port, service }, program) => {
    const sample = filled("deploy/proxy/Caddyfile", {
      "custody.example.com {": `https://localhost:${port} {\n\ttls ${cert} ${key}`,
      "127.0.0.1:8080": service
    })
    const file = files.write("Caddyfile", `{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n}\n${sample}`)
    return [program, "run", "--adapter", "caddyfile", "--config", file]
  }
}

const app = useApp()
beforeAll(async () => {
  const owner = user("user_a", "org_a", ["vault_a", "vault_big"], { organizationRole: "owner" })
  await app.feed([...smallest(), vault("vault_big", "entity_a"), owner], { "x-record-events": "none" })
  await fillVault(app, "vault_big")
})

for (const [name, balanced] of [
  ["nginx", false],
  ["nginx", true],
  ["caddy", false]
] as const) {
  const commandOf = proxies[name]
  const program = find(name)
  const title = `behind ${name}${balanced ? " and a load balancer" : ""}${program === null ? " (skipped: it is not installed)" : ""}`
  describe.skipIf(program === null)(title, () => {
    const files = temporaryFiles()
    let service: Process, proxy: Bun.Subprocess, origin: string, port: number, ca: string

    beforeAll(async () => {
      if (program === null) return
      fs.chmodSync(files.folder, 0o755)
      const signer = await authority()
      const { cert, key } = await signer.sign({ names: ["localhost"] })
      ca = signer.ca
      port = await Effect.runPromise(freePort)
      origin = `https://localhost:${port}`
      service = await app.start(["api"], { TRUSTED_PROXIES: "127.0.0.1/32", PORTAL_BASE_URL: origin })
      const place = {
        port,
        service: new URL(service.baseUrl).host,
        cert: files.write("cert", cert),
        key: files.write("key", key),
        files,
        balanced
      }
      proxy = Bun.spawn([...commandOf(place, program)], {
        env: { ...process.env, HOME: files.folder, XDG_DATA_HOME: files.folder, XDG_CONFIG_HOME: files.folder },
        stdout: "ignore",
        stderr: Bun.file(path.join(files.folder, "log"))
      })
      await until(name, async () => {
        if (proxy.exitCode !== null) throw new Error(`${name} ended:\n${fs.readFileSync(path.join(files.folder, "log"), "utf8")}`)
        return ask("/v1/jwks.json").then(
          ({ status }) => status === 200,
          () => false
        )
      })
    })
    afterAll(async () => {
      // One that ends by itself waits for open streams.
      proxy?.kill("SIGKILL")
      await proxy?.exited
      files.remove()
    })

    /** A request of a client. A load balancer adds the client's address to what the client sent. */
    const open = (target: string, headers: { readonly [name: string]: string } = {}, client = CLIENT) =>
      new Promise<IncomingMessage>((resolve, reject) => {
        const localAddress = balanced ? BALANCER : client
        const to = { host: "127.0.0.1", port, path: target, localAddress, servername: "localhost", ca, agent: false as const }
        const forwarded = [headers["x-forwarded-for"] ?? [], client].flat().join(", ")
        const sent = { host: `localhost:${port}`, ...headers, ...(balanced ? { "x-forwarded-for": forwarded } : {}) }
        https.get({ ...to, headers: sent }, resolve).on("error", reject)
      })
    const ask = async (target: string, headers: { readonly [name: string]: string } = {}) => {
      const response = await open(target, headers)
      let text = ""
      for await (const chunk of response) text += String(chunk)
      return { status: response.statusCode, headers: response.headers, text }
    }
    const bearer = async (...ipAllowlist: ReadonlyArray<string>) => ({
      authorization: `Bearer ${(await app.key("user_a", { ipAllowlist })).secret}`
    })

    test("the service sees the client's address, and believes no forged one", async () => {
      expect((await ask("/v1/vaults", await bearer("127.0.0.2"))).status).toBe(200)
      const elsewhere = await bearer("203.0.113.7")
      for (const header of ["x-forwarded-for", "forwarded", "x-real-ip"]) {
        const value = header === "forwarded" ? "for=203.0.113.7" : "203.0.113.7"
        const { status, text } = await ask("/v1/vaults", { ...elsewhere, [header]: value })
        expect([header, status, text]).toEqual([header, 403, expect.stringContaining("not allowed from 127.0.0.2")])
      }
    })

    test("events arrive while a stream is open, and in a long poll", async () => {
      const key = await bearer()
      const { resumeCursor } = JSON.parse((await ask(`${FEED}?from=now`, key)).text)
      const poll = ask(`${FEED}?after=${resumeCursor}&wait=30`, key)
      const stream = await open(`${FEED}/stream?from=now`, key)
      let text = ""
      stream.on("data", (chunk) => {
        text += String(chunk)
      })
      await until("the first comment", () => text.startsWith(":"))
      await app.feed([transaction("vault_a", port)])
      await until("the event", () => text.includes("event: webhook-event"))
      expect([stream.statusCode, stream.headers["content-type"]]).toEqual([200, "text/event-stream"])
      expect(JSON.parse((await poll).text).data).toHaveLength(1)
      stream.destroy()
    })

    test("a reader that leaves a stream makes room for another", async () => {
      const key = await bearer()
      const one = () => open(`${FEED}/stream?from=now`, key)
      const streams = await Promise.all([one(), one(), one(), one(), one()])
      expect(streams.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200, 200])
      expect((await ask(`${FEED}/stream?from=now`, key)).status).toBe(429)
      for (const stream of streams) stream.destroy()
      // A proxy that does not close them leaves that to the service, which takes a minute.
      const room = async () => {
        const stream = await one()
        if (stream.statusCode === 200) return stream
        stream.destroy()
        return false
      }
      const last = await until("room", room, 20)
      last.destroy()
    })

    test("the streams of one client leave room for another's requests", async () => {
      const streams: Array<IncomingMessage> = []
      for (let keys = 0; keys < 11; keys++) {
        const key = await bearer()
        for (let count = 0; count < 5; count++) streams.push(await open(`${FEED}/stream?from=now`, key))
      }
      // Caddy has no such limit.
      const refused = streams.filter(({ statusCode }) => statusCode !== 200).length
      expect(refused).toBe(name === "nginx" ? 5 : 0)
      expect((await open("/v1/vaults", await bearer(), "127.0.0.4")).statusCode).toBe(200)
      for (const stream of streams) stream.destroy()
    })

    test("a large export arrives complete", async () => {
      const key = await bearer()
      const target = "/v1/vaults/vault_big/transactions/export?format=ndjson"
      const { status, text } = await ask(target, key)
      expect([status, text.trimEnd().split("\n").length]).toEqual([200, BIG])
      const direct = await (await fetch(`${service.baseUrl}${target}`, { headers: key })).text()
      expect(Bun.hash(text)).toBe(Bun.hash(direct))
    })

    test("the portal is served at its public name, and long headers reach the service", async () => {
      const page = await ask("/portal", { accept: "text/html" })
      expect([page.status, page.headers["content-security-policy"]]).toEqual([200, expect.stringContaining("default-src")])
      const key = await bearer()
      expect((await ask("/v1/vaults", { ...key, cookie: `a=${"x".repeat(12_000)}` })).status).toBe(200)
      const long = await ask(`/v1/vaults?cursor=${"x".repeat(12_000)}`, key)
      expect([long.status, JSON.parse(long.text).code]).toEqual([414, "uri_too_long"])
    })
  })
}
