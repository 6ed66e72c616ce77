/** Egress proxies: a real one (Debian's tinyproxy, if installed) and a scripted one that misbehaves. */
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import * as tls from "node:tls"
import { Effect } from "effect"
import { freePort } from "./freePort.ts"
import { until } from "./receiver.ts"

/** Whether tinyproxy is there; `apt-get install tinyproxy`. */
export const hasTinyproxy = Bun.which("tinyproxy") !== null

const portOf = (server: net.Server): number => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

/** A tinyproxy, optionally with `user` and `password`, that allows CONNECT to the given ports. */
export class Tinyproxy {
  readonly #folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-tinyproxy-"))
  #child: ChildProcess | undefined
  port = 0

  async open(ports: ReadonlyArray<number>, credentials = ""): Promise<void> {
    this.port = await Effect.runPromise(freePort)
    const file = path.join(this.#folder, "tinyproxy.conf")
    fs.writeFileSync(
      file,
      [
        `Port ${this.port}`,
        "Listen 127.0.0.1",
        "Timeout 600",
        "MaxClients 200",
        "Allow 127.0.0.1",
        `LogFile "${this.#log}"`,
        "LogLevel Connect",
        ...(credentials === "" ? [] : [`BasicAuth ${credentials}`]),
        ...ports.map((port) => `ConnectPort ${port}`),
        ""
      ].join("\n")
    )
    this.#child = spawn("tinyproxy", ["-d", "-c", file], { stdio: "ignore" })
    await until(
      "tinyproxy",
      () =>
        new Promise<boolean>((resolve) => {
          const socket = net.connect(this.port, "127.0.0.1", () => resolve(socket.destroy() !== undefined))
          socket.on("error", () => resolve(false))
        })
    )
  }

  get #log(): string {
    return path.join(this.#folder, "log")
  }

  /** Requested targets. */
  get targets(): ReadonlyArray<string> {
    return [...fs.readFileSync(this.#log, "utf8").matchAll(/CONNECT (\S+) HTTP/g)].map(([, target = ""]) => target)
  }

  async close(): Promise<void> {
    const child = this.#child
    if (child !== undefined && child.exitCode === null) {
      const ended = new Promise((resolve) => child.once("exit", resolve))
      child.kill("SIGKILL")
      await ended
    }
    fs.rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** How a proxy handles a connection once it has read the head of a CONNECT. */
export type Trick = (near: net.Socket, target: string) => void

/** Connects to the target, or to another one, and passes everything on. */
export const passOn =
  (instead?: number): Trick =>
  (near, target) => {
    const port = instead ?? Number(target.split(":").at(-1))
    const far = net.connect(port, "127.0.0.1", () => {
      near.write("HTTP/1.1 200 Connection established\r\n\r\n")
      near.pipe(far)
      far.pipe(near)
    })
    far.on("error", () => near.destroy())
    near.on("close", () => far.destroy())
  }

/** A scripted proxy, over TLS if it has a certificate. */
export class TrickyProxy {
  readonly heads: Array<string> = []
  readonly #sockets = new Set<net.Socket>()
  #server: net.Server | undefined
  trick: Trick = passOn()
  port = 0

  async open(certificate?: { readonly cert: string; readonly key: string }): Promise<void> {
    const serve = (near: net.Socket) => {
      this.#sockets.add(near)
      near.on("error", () => {})
      near.on("close", () => this.#sockets.delete(near))
      near.once("data", (chunk: Buffer) => {
        this.heads.push(chunk.toString("latin1"))
        this.trick(near, chunk.toString("latin1").split(" ")[1] ?? "")
      })
    }
    const server = certificate === undefined ? net.createServer(serve) : tls.createServer(certificate, serve)
    this.#server = server
    await new Promise<void>((resolve) => server.listen(this.port, "127.0.0.1", resolve))
    this.port = portOf(server)
  }

  /** Stops; `open` starts it again on the same port. */
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => (this.#server === undefined ? resolve(undefined) : this.#server.close(resolve)))
  }
}
