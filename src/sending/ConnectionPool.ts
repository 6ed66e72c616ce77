/**
 * Connections to endpoints, kept between attempts for a few seconds: a TCP and TLS handshake costs more than the
 * request. A connection is shared by attempts of one webhook alone, to one judged address, under one server name and
 * one client certificate; the guard's judgement is made anew for every attempt, and closes the idle connections that
 * it no longer allows. How a kept connection can fail is the caller's to handle: see webhookRequest.ts.
 * Decision D-21; reliability, pitfalls of Bun.
 */
import * as https from "node:https"
import type { Duplex } from "node:stream"
import * as tls from "node:tls"
import { openTunnel, type Proxy } from "./proxyTunnel.ts"

/** Longest that a connection is kept without a request, in ms: shorter than the idle timeout of any usual server. */
const IDLE_MS = 4_000
/** Idle connections of one process, in all; past it the one that is idle for longest is closed. */
const IDLE = 1_024

/** Where a connection leads and how it was made. Two attempts share one only where all of it is equal. */
export interface Route {
  readonly webhookId: string
  /** The judged address. */
  readonly address: string
  readonly port: number
  /** The name that the certificate was verified against. */
  readonly host: string
  /** Which client certificate was presented; empty without one. */
  readonly certificate: string
}

/** Options of a request through the pool. */
export interface PooledOptions extends https.RequestOptions {
  readonly route: Route
  readonly secureContext: tls.SecureContext
  /** Ends the way through a proxy that is being opened for the request. */
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
  /** Idle connections with the timers that close them, the one that is idle for longest first. */
  readonly #idle = new Map<Duplex, NodeJS.Timeout>()
  readonly #ofWebhook = new Map<string, Set<Duplex>>()

  /** The proxy that all connections go through; undefined where they go straight to the endpoint. */
  readonly proxy: Proxy | undefined

  /** `most` idle connections are kept in all. */
  /** Sockets whose end is listened to. */
  readonly #watched = new WeakSet<Duplex>()

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
      if (error !== null) return callback?.(error, socket)
      const secured = tls.connect({ socket, host: route.host, servername, rejectUnauthorized, secureContext })
      // Its errors are the request's from here on; until that listens they must not end the process.
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
    // Once for each socket, however often it is kept.
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

  /** Closes the idle connections of a webhook, but for those to where it may still connect. */
  retain(webhookId: string, allowed: (route: Route) => boolean = () => false): void {
    for (const socket of [...(this.#ofWebhook.get(webhookId) ?? [])]) {
      const route = this.#routes.get(socket)
      if (route === undefined || !allowed(route)) this.#close(socket)
    }
  }
}
