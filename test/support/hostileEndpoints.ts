/**
 * Endpoints that misbehave: a TLS server that reads a request and then handles the raw connection as the path says, and
 * listeners that break the connection before any request. They count everything they received and sent.
 */
import * as net from "node:net"
import * as tls from "node:tls"

/** How a path handles the connection once the request has arrived. */
export type Behaviour = (scenario: Scenario) => void

/** A connection with a request on it. */
export interface Scenario {
  readonly path: string
  readonly write: (bytes: string | Uint8Array) => boolean
  /** Writes repeatedly, as fast as the other side reads or every so many ms, until the connection closes. */
  readonly forever: (bytes: string | Uint8Array, everyMs?: number) => void
  readonly end: () => void
  /** Resets the connection. */
  readonly reset: () => void
  /** Runs later, unless the connection is closed by then. */
  readonly after: (ms: number, run: () => void) => void
}

/** What a path received and sent. */
export interface Seen {
  requests: number
  /** Bytes that were handed to the kernel for it. */
  sent: number
  readonly bodies: Array<string>
  /** Between the first byte of the response and the end of the connection, in ms. */
  openFor: number | undefined
}

const portOf = (server: net.Server): number => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

export class HostileEndpoints {
  readonly #seen = new Map<string, Seen>()
  readonly #behaviours = new Map<string, Behaviour>()
  readonly #servers: Array<net.Server> = []
  readonly #sockets = new Set<net.Socket>()
  port = 0

  seen(path: string): Seen {
    const known = this.#seen.get(path)
    if (known !== undefined) return known
    const fresh: Seen = { requests: 0, sent: 0, bodies: [], openFor: undefined }
    this.#seen.set(path, fresh)
    return fresh
  }

  on(path: string, behaviour: Behaviour): void {
    this.#behaviours.set(path, behaviour)
  }

  /** Opens the TLS server. */
  async open(options: tls.TlsOptions): Promise<void> {
    this.port = await this.tls(options)
  }

  /** One more TLS server with the same behaviours, such as one with a bad certificate; returns its port. */
  tls(options: tls.TlsOptions): Promise<number> {
    return this.#listen(tls.createServer(options, (socket) => this.#serve(socket)))
  }

  /** A listener without TLS; returns its port. */
  plain(behaviour: (socket: net.Socket) => void): Promise<number> {
    return this.#listen(net.createServer(behaviour))
  }

  #listen(server: net.Server): Promise<number> {
    server.on("connection", (socket: net.Socket) => {
      this.#sockets.add(socket)
      socket.on("error", () => {})
      socket.on("close", () => this.#sockets.delete(socket))
    })
    server.on("tlsClientError", () => {})
    this.#servers.push(server)
    return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(portOf(server))))
  }

  #serve(socket: tls.TLSSocket): void {
    let text = ""
    socket.on("error", () => {})
    const read = (chunk: Buffer) => {
      text += chunk.toString("latin1")
      const end = text.indexOf("\r\n\r\n")
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0)
      if (end < 0 || text.length < end + 4 + length) return
      socket.off("data", read)
      socket.on("data", () => {})
      this.#react(socket, text.split(" ")[1] ?? "", text.slice(end + 4))
    }
    socket.on("data", read)
  }

  #react(socket: tls.TLSSocket, path: string, body: string): void {
    const seen = this.seen(path)
    seen.requests++
    seen.bodies.push(body)
    let first: number | undefined
    const timers: Array<NodeJS.Timeout> = []
    socket.on("close", () => {
      for (const timer of timers) clearTimeout(timer)
      if (first !== undefined) seen.openFor = Math.max(seen.openFor ?? 0, performance.now() - first)
    })
    const write = (bytes: string | Uint8Array) => {
      if (socket.destroyed) return false
      first ??= performance.now()
      seen.sent += bytes.length
      return socket.write(bytes)
    }
    const after = (ms: number, run: () => void) => {
      timers.push(setTimeout(() => socket.destroyed || run(), ms))
    }
    const forever = (bytes: string | Uint8Array, everyMs?: number): void => {
      if (socket.destroyed) return
      const more = write(bytes)
      if (everyMs !== undefined) after(everyMs, () => forever(bytes, everyMs))
      else if (more) setImmediate(() => forever(bytes))
      else socket.once("drain", () => forever(bytes))
    }
    const reset = () => socket.resetAndDestroy()
    this.#behaviours.get(path)?.({ path, write, forever, after, reset, end: () => socket.end() })
  }

  close(): void {
    for (const server of this.#servers) server.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}
