/**
 * An HTTPS endpoint with keep-alive, on raw sockets, so that a path can do to a kept connection what servers and networks
 * do: close it, close half of it, or send an unsolicited response.
 */
import type * as net from "node:net"
import * as tls from "node:tls"
import { type Authority, authority } from "./receiver.ts"

/** A request with the connection that it came on, both counted from 1. */
export interface ReceivedRequest {
  readonly path: string
  readonly connection: number
  /** Which request of its connection it is. */
  readonly nth: number
  readonly attempt: string
  readonly at: number
  readonly socket: tls.TLSSocket
}

/** A 200 response that keeps the connection. */
export const ok = (more = "", body = "ok") => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`

export class KeepAliveEndpoint {
  readonly requests: Array<ReceivedRequest> = []
  /** When each connection was closed, by its number. */
  readonly closed = new Map<number, number>()
  readonly #behaviours = new Map<string, (request: ReceivedRequest) => void>()
  #server: net.Server | undefined
  #connections = 0
  #sockets = new Set<net.Socket>()
  #authority: Authority | undefined
  port = 0

  async open(names: ReadonlyArray<string> = ["localhost"], more: tls.TlsOptions = {}): Promise<void> {
    this.#authority = await authority()
    const server = tls.createServer({ ...(await this.#authority.sign({ names })), allowHalfOpen: true, ...more }, (socket) =>
      this.#serve(socket)
    )
    this.#server = server
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    this.port = typeof address === "object" && address !== null ? address.port : 0
  }

  /** PEM of the authority that signed its certificate. */
  get ca(): string {
    return this.#authority?.ca ?? ""
  }

  get connections(): number {
    return this.#connections
  }

  url(path: string, host = "localhost"): string {
    return `https://${host}:${this.port}${path}`
  }

  on(path: string, behaviour: (request: ReceivedRequest) => void): void {
    this.#behaviours.set(path, behaviour)
  }

  to(path: string): ReadonlyArray<ReceivedRequest> {
    return this.requests.filter((one) => one.path === path)
  }

  #serve(socket: tls.TLSSocket): void {
    const connection = ++this.#connections
    let nth = 0,
      text = ""
    this.#sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => {
      this.#sockets.delete(socket)
      this.closed.set(connection, performance.now())
    })
    socket.on("end", () => socket.end())
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1")
      const end = text.indexOf("\r\n\r\n")
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0)
      if (end < 0 || text.length < end + 4 + length) return
      const path = text.split(" ")[1] ?? ""
      const attempt = /^x-service-attempt: (\d+)/im.exec(text)?.[1] ?? ""
      text = text.slice(end + 4 + length)
      const request = { path, connection, nth: ++nth, attempt, at: performance.now(), socket }
      this.requests.push(request)
      const behaviour = this.#behaviours.get(path)
      if (behaviour === undefined) socket.write(ok())
      else behaviour(request)
    })
  }

  close(): void {
    this.#server?.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}
