/**
 * Connections to endpoints, kept for a few seconds between attempts, because a TCP and TLS handshake costs more than the
 * request. A connection is only shared by attempts of one webhook, to one checked address, with one server name and one
 * client certificate. The SSRF guard checks again for every attempt and closes idle connections that it no longer allows.
 * Callers handle failures of kept connections: see webhookRequest.ts. Decision D-21; reliability, pitfalls of Bun.
 */
import * as https from "node:https"
import type { Duplex } from "node:stream"
import * as tls from "node:tls"
import { openTunnel, type Proxy } from "../../../runtime/processes/egressProxy.ts"

/** Longest idle time of a connection, in ms: shorter than the idle timeout of any common server. */
const IDLE_MS = 4_000
/** Most idle connections of a process; beyond it, the one that is idle for longest is closed. */
const IDLE = 1_024

/** The target and options of a connection. Attempts share one only if all of it is equal. */
export interface Route {
  readonly webhookId: string
  /** The checked address. */
  readonly address: string
  readonly port: number
  /** The name that the certificate was verified against. */
  readonly host: string
  /** Identifies the client certificate; empty without one. */
  readonly certificate: string
}

/** Options of a request through the pool. */
export interface PooledOptions extends https.RequestOptions {
  readonly route: Route
  readonly secureContext: tls.SecureContext
  /** Aborts a proxy tunnel that is being opened for the request. */
  readonly dialing: AbortSignal
}

const nameOf = ({ address, certificate, host, port, webhookId }: Route): string => [webhookId, host, port, address, certificate].join(" ")

const pooled = (options: object | undefined): PooledOptions => {
  if (options !== undefined && "route" in options) return options as PooledOptions // every request of the pool has them
  throw new Error("a request without a route cannot use the pool")
}
const routeOf = (options: object | undefined): Route => pooled(options).route

export class ConnectionPool extends https.Agent {
  readonly #most: number
  readonly #routes = new WeakMap<object, Route>()
  /** Idle connections with the timers that close them, longest idle first. */
  readonly #idle = new Map<Duplex, NodeJS.Timeout>()
  readonly #ofWebhook = new Map<string, Set<Duplex>>()

  /** The proxy of all connections; undefined for direct ones. */
  readonly proxy: Proxy | undefined

  /** Sockets with a listener for their end. */
  readonly #watched = new WeakSet<Duplex>()

  /** `most` is the number of idle connections that are kept. */
  constructor({ most = IDLE, proxy }: { readonly most?: number; readonly proxy?: Proxy | undefined } = {}) {
    // A resumed TLS session would skip the verification of the certificate.
    super({ keepAlive: true, maxCachedSessions: 0 })
    this.#most = most
    this.proxy = proxy
  }

  override getName(options?: https.RequestOptions): string {
    return nameOf(routeOf(options))
  }

  override createConnection(
    options: https.RequestOptions,
    callback?: (error: Error | null, stream: Duplex) => void
  ): Duplex | null | undefined {
    if (this.proxy !== undefined) return this.#throughProxy(this.proxy, pooled(options), callback)
    const socket = super.createConnection(options, callback)
    if (socket) this.#routes.set(socket, routeOf(options))
    return socket
  }

  #throughProxy(proxy: Proxy, options: PooledOptions, callback?: (error: Error | null, stream: Duplex) => void): undefined {
    const { dialing, rejectUnauthorized = true, route, secureContext, servername = "" } = options
    openTunnel(proxy, route, dialing, (error, socket) => {
      // Node ignores the stream of a failure.
      if (socket === undefined) return callback?.(error, undefined as never)
      const secured = tls.connect({ socket, host: route.host, servername, rejectUnauthorized, secureContext })
      // From here on, the request handles its errors; until the request has a listener, they must not crash the process.
      secured.on("error", () => {})
      this.#routes.set(secured, route)
      callback?.(null, secured)
    })
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const route = this.#routes.get(socket)
    // Typed as void; Node documents false for a connection that the server wants closed.
    if (route === undefined || (super.keepSocketAlive(socket) as unknown) === false) return false
    const timer = setTimeout(() => socket.destroy(), IDLE_MS)
    timer.unref()
    this.#idle.set(socket, timer)
    const others = this.#ofWebhook.get(route.webhookId)
    if (others === undefined) this.#ofWebhook.set(route.webhookId, new Set([socket]))
    else others.add(socket)
    // Once per socket, however often it is reused.
    if (!this.#watched.has(socket)) {
      this.#watched.add(socket)
      socket.once("close", () => this.#forget(socket))
    }
    const [oldest] = this.#idle.keys()
    if (oldest !== undefined && this.#idle.size > this.#most) this.#close(oldest)
    return true
  }

  override reuseSocket(socket: Duplex, request: Parameters<https.Agent["reuseSocket"]>[1]): void {
    this.#forget(socket)
    super.reuseSocket(socket, request)
  }

  #forget(socket: Duplex): void {
    clearTimeout(this.#idle.get(socket))
    this.#idle.delete(socket)
    const webhookId = this.#routes.get(socket)?.webhookId ?? ""
    const others = this.#ofWebhook.get(webhookId)
    others?.delete(socket)
    if (others?.size === 0) this.#ofWebhook.delete(webhookId)
  }

  #close(socket: Duplex): void {
    this.#forget(socket)
    socket.destroy()
  }

  /** Closes a webhook's idle connections, except to addresses that are still allowed. */
  retain(webhookId: string, allowed: (route: Route) => boolean = () => false): void {
    for (const socket of [...(this.#ofWebhook.get(webhookId) ?? [])]) {
      const route = this.#routes.get(socket)
      if (route === undefined || !allowed(route)) this.#close(socket)
    }
  }
}
