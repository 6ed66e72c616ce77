/**
 * A real HTTPS receiver that records every request, with a certificate of its own authority. Responses are scripted per
 * path.
 */
import "reflect-metadata"
import { afterAll, beforeAll } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as x509 from "@peculiar/x509"

/** A certificate authority and the certificate that it signed, in PEM. */
export interface Authority {
  readonly ca: string
  readonly sign: (options: {
    readonly names: ReadonlyArray<string>
    readonly expired?: boolean
  }) => Promise<{ readonly cert: string; readonly key: string }>
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const
const DAY = 86_400_000
/** How long certificates are valid, in days: also by a clock that a test sets weeks ahead. */
const VALID = 90

const pem = async (key: CryptoKey) => {
  const der = Buffer.from(await crypto.subtle.exportKey("pkcs8", key)).toString("base64")
  return `-----BEGIN PRIVATE KEY-----\n${der.replace(/.{64}/g, "$&\n")}\n-----END PRIVATE KEY-----\n`
}

/** A fresh authority. */
export const authority = async (): Promise<Authority> => {
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"])
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    name: "CN=Test authority",
    notBefore: new Date(Date.now() - DAY),
    notAfter: new Date(Date.now() + VALID * DAY),
    keys,
    signingAlgorithm: algorithm,
    extensions: [new x509.BasicConstraintsExtension(true, 1, true), new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true)]
  })
  return {
    ca: ca.toString("pem"),
    sign: async ({ expired = false, names }) => {
      const own = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"])
      const cert = await x509.X509CertificateGenerator.create({
        serialNumber: String(Date.now()),
        subject: `CN=${names[0]}`,
        issuer: ca.subject,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        notBefore: new Date(Date.now() - 10 * DAY),
        notAfter: new Date(Date.now() + (expired ? -1 : VALID) * DAY),
        signingAlgorithm: algorithm,
        extensions: [
          new x509.SubjectAlternativeNameExtension(
            names.map((value) => ({ type: /^[\d.:]+$/.test(value) ? ("ip" as const) : ("dns" as const), value }))
          )
        ]
      })
      return { cert: cert.toString("pem"), key: await pem(own.privateKey) }
    }
  }
}

/** A request as the receiver saw it. */
export interface Received {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly at: number
}

type Script = (request: Received, count: number) => Response | Promise<Response>

export class Receiver {
  readonly requests: Array<Received> = []
  readonly #scripts = new Map<string, Script>()
  readonly #counts = new Map<string, number>()
  #server: ReturnType<typeof Bun.serve> | undefined
  #folder = ""
  authority: Authority | undefined

  async open(host = "127.0.0.1", names: ReadonlyArray<string> = []): Promise<void> {
    this.authority = await authority()
    const { cert, key } = await this.authority.sign({ names: ["localhost", host, ...names] })
    this.#folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-receiver-"))
    fs.writeFileSync(this.caFile, this.authority.ca)
    this.#server = Bun.serve({
      hostname: host,
      port: 0,
      tls: { cert, key },
      idleTimeout: 60,
      fetch: async (request) => {
        const received = {
          path: new URL(request.url).pathname,
          headers: Object.fromEntries(request.headers.entries()),
          body: await request.text(),
          at: Date.now()
        }
        this.requests.push(received)
        const count = (this.#counts.get(received.path) ?? 0) + 1
        this.#counts.set(received.path, count)
        return await (this.#scripts.get(received.path) ?? (() => new Response("ok")))(received, count)
      }
    })
  }

  /** PEM file of the authority: `WEBHOOK_EXTRA_CA`. */
  get caFile(): string {
    return path.join(this.#folder, "ca.pem")
  }

  get port(): number {
    return this.#server?.port ?? 0
  }

  /** The receiver's URL of a path. */
  url(path: string): string {
    return `https://localhost:${this.port}${path}`
  }

  /** Sets a path's response; `count` is the number of the request to it, from 1. */
  on(path: string, script: Script): void {
    this.#scripts.set(path, script)
  }

  /** Requests to a path. */
  to(path: string): ReadonlyArray<Received> {
    return this.requests.filter((request) => request.path === path)
  }

  async close(): Promise<void> {
    await this.#server?.stop(true)
    fs.rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Settings of the program by which it delivers to the receiver. */
export const receiverEnv = (receiver: Receiver) => ({
  WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
  WEBHOOK_ALLOW_PORTS: String(receiver.port),
  WEBHOOK_EXTRA_CA: receiver.caFile
})

/** A receiver for the test file that calls this. */
export const useReceiver = (): Receiver => {
  const receiver = new Receiver()
  beforeAll(() => receiver.open())
  afterAll(() => receiver.close())
  return receiver
}

/**
 * Waits until a condition holds, and returns its value; fails with `what` after `seconds`, which are many, so that a busy
 * machine fails nothing, but fewer than the sweep needs to mend what went wrong before. The pause between two checks grows with
 * the time waited, from 20 ms to 1 s: most checks are requests, and would use CPU that the awaited work needs.
 */
export const until = async <A>(
  what: string,
  condition: () => Promise<A | undefined | false> | A | undefined | false,
  seconds = 60
): Promise<A> => {
  let waited = 0
  for (;;) {
    const lookedAt = Date.now()
    const value = await condition()
    if (value !== undefined && value !== false) return value
    if (waited > seconds * 1_000) throw new Error(`${what}: not within ${seconds} s`)
    const [took, pause, sleptAt] = [Date.now() - lookedAt, Math.min(1_000, Math.max(20, waited / 10)), Date.now()]
    await Bun.sleep(pause)
    // Time in which the machine was suspended does not count.
    waited += took + Math.min(Date.now() - sleptAt, 2 * pause)
  }
}
