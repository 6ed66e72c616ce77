/**
 * A tunnel to an endpoint through the proxy of WEBHOOK_PROXY_URL. CONNECT names the checked address, never a host name,
 * so the proxy resolves nothing; TLS goes through the tunnel end to end. 502, 503 and 504 mean that the endpoint is
 * unreachable; any other status except 2xx is a failure of the proxy. C-8.
 */
import * as net from "node:net"
import * as tls from "node:tls"

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

/** Most bytes of the proxy's response head. */
const HEAD_BYTES = 16 * 1_024
const GATEWAY = new Set(["502", "503", "504"])

const headOf = ({ url }: Proxy, target: string): string => {
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  const authorization = credentials === ":" ? "" : `Proxy-Authorization: Basic ${Buffer.from(credentials).toString("base64")}\r\n`
  return `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n`
}

const dial = ({ trust, url }: Proxy): net.Socket => {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1")
  if (url.protocol === "http:") return net.connect({ host, port: Number(url.port || 80) })
  const named = net.isIP(host) === 0 ? { servername: host } : {}
  return tls.connect({ host, port: Number(url.port || 443), secureContext: trust, rejectUnauthorized: true, ...named })
}

/**
 * Opens a tunnel to an address and calls back once, with the socket or with a {@link TunnelError}. Never calls back after
 * an abort.
 */
export const openTunnel = (
  proxy: Proxy,
  { address, port }: { readonly address: string; readonly port: number },
  signal: AbortSignal,
  done: (error: TunnelError | null, socket: net.Socket) => void
): void => {
  const socket = dial(proxy)
  let head = Buffer.alloc(0)
  const abort = () => socket.destroy()
  const stop = () => {
    signal.removeEventListener("abort", abort)
    socket.off("data", read).off("error", broken).off("close", closed)
  }
  const fail = (code: TunnelError["code"], message: string) => {
    stop()
    // Later errors of the socket are irrelevant.
    socket.on("error", () => {})
    socket.destroy()
    if (!signal.aborted) done(new TunnelError(code, message), socket)
  }
  const broken = (error: Error) => fail("PROXY_ERROR", error.message)
  const closed = () => fail("PROXY_ERROR", "the proxy closed the connection")
  const read = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk])
    const end = head.indexOf("\r\n\r\n")
    if (end < 0) {
      if (head.length > HEAD_BYTES) fail("PROXY_ERROR", "the proxy's answer is too long")
      return
    }
    const [, status = ""] = /^HTTP\/1\.[01] (\d{3})[ \r]/.exec(head.toString("latin1", 0, end + 2)) ?? []
    if (GATEWAY.has(status)) return fail("PROXY_GATEWAY", `the proxy answered ${status}`)
    // The endpoint sends nothing before the first byte of the handshake.
    if (!status.startsWith("2") || head.length > end + 4) return fail("PROXY_ERROR", `the proxy answered ${status || "without a status"}`)
    stop()
    socket.pause()
    done(null, socket)
  }
  signal.addEventListener("abort", abort, { once: true })
  socket.on("data", read).on("error", broken).on("close", closed)
  const target = `${address.includes(":") ? `[${address}]` : address}:${port}`
  socket.once(proxy.url.protocol === "http:" ? "connect" : "secureConnect", () => socket.write(headOf(proxy, target)))
}
