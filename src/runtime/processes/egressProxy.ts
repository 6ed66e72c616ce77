/**
 * The egress proxy of WEBHOOK_PROXY_URL: a tunnel through it to an endpoint, and whether it fails in this process. CONNECT
 * names the checked address, never a host name, so the proxy resolves nothing; TLS goes through the tunnel end to end. 502,
 * 503 and 504 mean that the endpoint is unreachable; any other status except 2xx is a failure of the proxy. It is here and not
 * in sending/ because readiness and the doctor need it, and nothing but the worker may import sending/. C-8.
 */
import * as http from "node:http"
import * as https from "node:https"
import * as net from "node:net"
import type { Duplex } from "node:stream"
import type * as tls from "node:tls"
import { Effect } from "effect"

/** The proxy, and the roots for its certificate if it uses TLS. */
export interface Proxy {
  readonly url: URL
  readonly trust: tls.SecureContext
}

/** Why there is no tunnel: `PROXY_ERROR` is the proxy's failure, `PROXY_GATEWAY` the endpoint's. */
export class TunnelError extends Error {
  readonly code: "PROXY_ERROR" | "PROXY_GATEWAY"
  constructor(code: "PROXY_ERROR" | "PROXY_GATEWAY", message: string) {
    super(message)
    this.code = code
  }
}

/** Why the proxy failed last, and when; undefined once it has worked again. */
let failure: { readonly reason: string; readonly at: number } | undefined
let loggedAt = Number.NEGATIVE_INFINITY
/** How long a failure counts, in ms: deliveries that wait for the proxy try it twice as often. */
const RECENT_MS = 60_000
/** Shortest time between two log lines about it, in ms. */
const LOG_MS = 60_000

/** Why the egress proxy of this process fails; undefined if it does not, as far as is known. */
export const egressProxyFault = (): string | undefined =>
  failure === undefined || performance.now() - failure.at > RECENT_MS ? undefined : failure.reason

/** Records that the proxy failed. */
export const egressProxyFailed = (reason: string): void => {
  failure = { reason, at: performance.now() }
}

/** Logs why the proxy fails, at most once a minute. */
export const logEgressProxy = Effect.suspend(() => {
  const fault = egressProxyFault()
  if (fault === undefined || performance.now() - loggedAt < LOG_MS) return Effect.void
  loggedAt = performance.now()
  return Effect.logError(`The proxy of WEBHOOK_PROXY_URL fails: ${fault}. Deliveries wait for it.`)
})

/** Most bytes of the proxy's response head. */
const HEAD_BYTES = 16 * 1_024
const GATEWAY = new Set([502, 503, 504])

/**
 * Opens a tunnel to an address and calls back once, with the socket or with a {@link TunnelError}. Never calls back after
 * an abort.
 */
export const openTunnel = (
  { trust, url }: Proxy,
  { address, port }: { readonly address: string; readonly port: number },
  signal: AbortSignal,
  done: (error: TunnelError | null, socket?: Duplex) => void
): void => {
  const [host, target] = [url.hostname.replace(/^\[(.*)\]$/, "$1"), `${address.includes(":") ? `[${address}]` : address}:${port}`]
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  const options = {
    method: "CONNECT",
    host,
    port: url.port,
    path: target,
    headers: {
      host: target,
      ...(credentials === ":" ? {} : { "proxy-authorization": `Basic ${Buffer.from(credentials).toString("base64")}` })
    },
    maxHeaderSize: HEAD_BYTES,
    agent: false,
    signal,
    secureContext: trust,
    rejectUnauthorized: true,
    ...(net.isIP(host) === 0 ? { servername: host } : {})
  }
  const request = (url.protocol === "http:" ? http : https).request(options)
  let over = false
  const end = (error: TunnelError | null, socket?: Duplex) => {
    if (over) return
    over = true
    if (error !== null) request.destroy()
    if (signal.aborted) return
    if (error?.code === "PROXY_ERROR") egressProxyFailed(error.message)
    else failure = undefined
    done(error, socket)
  }
  const fail = (code: TunnelError["code"], message: string) => end(new TunnelError(code, message))
  request.on("error", ({ message }) => fail("PROXY_ERROR", message))
  request.on("close", () => fail("PROXY_ERROR", "the proxy closed the connection"))
  request.on("connect", ({ statusCode = 0 }, socket, head) => {
    const opened = statusCode >= 200 && statusCode < 300
    if (opened && head.length === 0) return end(null, socket)
    socket.destroy()
    // An endpoint that sends anything before the first byte of the handshake has no TLS.
    fail(opened || GATEWAY.has(statusCode) ? "PROXY_GATEWAY" : "PROXY_ERROR", `the proxy answered ${statusCode}`)
  })
  request.end()
}
