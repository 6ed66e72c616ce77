/**
 * One HTTPS request of a delivery, to one address that was judged before. `node:https` and not `fetch`: Bun's fetch
 * ignores a pinned look-up, follows redirects, obeys proxy variables, and holds at most 256 requests at once.
 *
 * The answer's status line and headers decide, within 10 s of the dial. A 2xx is a success whatever its body does; of
 * the body a little is read within one second more, nothing is decompressed, and then the connection is destroyed.
 * Nothing is written before the connection stands, its certificate and its peer are verified, and the request is
 * still wanted. Spec: Delivery contract 4. Decision D-21.
 */

import * as https from "node:https"
import { createSecureContext, rootCertificates, type SecureContext, type TLSSocket } from "node:tls"
import { Data, Effect, Exit, type Fiber, FiberId, Runtime } from "effect"
import * as Format from "../settings/Format.ts"
import type { Result } from "./Delivery.ts"

/** What an endpoint answered, or how the request failed. */
export interface Answer {
  readonly result: Result
  /** 0 without an answer. */
  readonly httpStatus: number
  /** Milliseconds until the answer's headers, or until the failure. */
  readonly latencyMs: number
  readonly bodySnippet: string | null
  /** Seconds that a `Retry-After` asks for; undefined without one. */
  readonly retryAfterSeconds: number | undefined
}

/** Nothing was sent, because the request was not wanted any more when the connection stood. */
export class Withdrawn extends Data.TaggedError("Withdrawn") {}

/** A request. */
export interface Post {
  readonly url: URL
  /** The judged address. */
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** When the attempt began, on the clock of `performance.now`: resolving the name is part of its time. */
  readonly startedAt: number
  /** Asked when the connection stands and before anything is written: whether to go on. Its failure counts as a no. */
  readonly wanted: Effect.Effect<boolean>
  /** What certificates are checked against, made once: reading the roots for each request costs more than the request. */
  readonly trust: SecureContext
}

const DEADLINE_MS = 10_000,
  CONNECT_MS = 5_000,
  BODY_MS = 1_000
const BODY_BYTES = 16 * 1_024,
  SNIPPET_BYTES = 1_024,
  HEADER_BYTES = 16 * 1_024
/** Informational answers before the endpoint is given up: an endless flood of them costs CPU and says nothing. */
const MAX_INFORMATIONAL = 10

const tlsCodes =
  /^(CERT_|ERR_TLS_|ERR_SSL_|ERR_BORINGSSL|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH|EPROTO|UNKNOWN_CERTIFICATE)/

const resultOfError = (error: Error & { readonly code?: string }): Result => {
  const code = error.code ?? ""
  if (code === "ECONNREFUSED") return "connection_refused"
  if (code === "ETIMEDOUT") return "timeout"
  if (tlsCodes.test(code) || /certificate|handshake|self.signed|altname|TLS|SSL/i.test(error.message)) return "tls_error"
  if (["ECONNRESET", "EPIPE", "ECONNABORTED", "ConnectionClosed"].includes(code) || /socket hang up|closed/i.test(error.message))
    return "connection_reset"
  return "network_error"
}

const resultOfStatus = (status: number): Result =>
  status >= 200 && status < 300
    ? "2xx"
    : status >= 300 && status < 400
      ? "3xx"
      : status >= 400 && status < 500
        ? "4xx"
        : status >= 500 && status < 600
          ? "5xx"
          : "network_error"

/** `Retry-After` in seconds, from either of its forms. */
export const retryAfter = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined) return undefined
  if (/^\d{1,9}$/.test(header.trim())) return Number(header.trim())
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.round((at - now) / 1_000))
}

/** The beginning of a body as clean UTF-8: control characters escaped, broken bytes replaced, at most 1,024 bytes. */
export const snippet = (bytes: Uint8Array): string | null => {
  if (bytes.length === 0) return null
  // A character that the cut goes through is left out; one that is broken in the answer itself is replaced.
  const text = new TextDecoder().decode(bytes.subarray(0, SNIPPET_BYTES), { stream: bytes.length >= SNIPPET_BYTES })
  let out = "",
    size = 0
  for (const char of text) {
    const clean = /[\p{Cc}\p{Cs}]/u.test(char) ? `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}` : char
    size += Buffer.byteLength(clean)
    if (size > SNIPPET_BYTES) break
    out += clean
  }
  return out
}

/** Trust in the roots that the program brings (Mozilla's), and in an extra PEM file's. TLS 1.2 at the least. */
export const trustIn = (extra: string | undefined): SecureContext =>
  createSecureContext({ minVersion: "TLSv1.2", ...(extra === undefined ? {} : { ca: [...rootCertificates, extra] }) })

const samePeer = (peer: string | undefined, address: string): boolean =>
  peer === undefined || peer === address || Format.address(peer)?.toString() === Format.address(address)?.toString()

/** Sends the request. Whatever happens is an answer; only {@link Withdrawn} is none. Interruption destroys the connection. */
export const post = ({ address, body, headers, startedAt, trust, url, wanted }: Post): Effect.Effect<Answer, Withdrawn> =>
  Effect.flatMap(Effect.runtime<never>(), (runtime) =>
    Effect.async((resume) => {
      const latency = () => Math.max(0, Math.round(performance.now() - startedAt))
      let done = false,
        informational = 0
      /** Asks whether the request is still wanted; the connection stands meanwhile. */
      let asking: Fiber.RuntimeFiber<boolean> | undefined
      const timers: Array<NodeJS.Timeout> = []
      const after = (millis: number, run: () => void) => timers.push(setTimeout(run, Math.max(0, millis)))

      const destroy = () => {
        done = true
        for (const timer of timers) clearTimeout(timer)
        asking?.unsafeInterruptAsFork(FiberId.none)
        request.destroy()
      }
      const end = (outcome: Effect.Effect<Answer, Withdrawn>) => {
        if (done) return
        destroy()
        resume(outcome)
      }
      const failed = (result: Result, httpStatus = 0) =>
        end(Effect.succeed({ result, httpStatus, latencyMs: latency(), bodySnippet: null, retryAfterSeconds: undefined }))

      const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1")
      const options: https.RequestOptions & { readonly secureContext: SecureContext } = {
        method: "POST",
        host: hostname,
        port: url.port === "" ? 443 : Number(url.port),
        path: `${url.pathname}${url.search}`,
        headers: { ...headers, host: url.host, "content-length": Buffer.byteLength(body) },
        agent: false,
        // The name is never resolved a second time: whatever is asked, the judged address is the answer.
        lookup: (_name, options, callback) => {
          const family = address.includes(":") ? 6 : 4
          if (typeof options === "object" && options.all === true) callback(null, [{ address, family }])
          else callback(null, address, family)
        },
        // An address has no server name; the certificate is then checked against the address.
        ...(Format.address(hostname) === undefined ? { servername: hostname } : {}),
        rejectUnauthorized: true,
        secureContext: trust,
        maxHeaderSize: HEADER_BYTES
      }
      const request = https.request(options)

      // Time that was spent on asking is not the endpoint's.
      after(DEADLINE_MS - latency(), () => (asking === undefined ? failed("timeout") : end(new Withdrawn())))
      const connecting = setTimeout(() => failed("timeout"), CONNECT_MS)
      timers.push(connecting)
      request.on("socket", (socket: TLSSocket) => {
        socket.once("secureConnect", () => {
          clearTimeout(connecting)
          if (!samePeer(socket.remoteAddress, address)) return failed("blocked_address")
          asking = Runtime.runFork(runtime)(wanted)
          asking.addObserver((exit) => {
            asking = undefined
            if (done) return
            if (!Exit.isSuccess(exit) || !exit.value) return end(new Withdrawn())
            request.end(body)
            // failpoint: sent
          })
        })
      })
      request.on("information", () => {
        if (++informational > MAX_INFORMATIONAL) failed("network_error")
      })
      request.on("upgrade", () => failed("network_error", 101))
      request.on("error", (error) => failed(resultOfError(error)))
      request.on("close", () => failed("connection_reset"))
      request.on("response", (response) => {
        const httpStatus = response.statusCode ?? 0
        const latencyMs = latency()
        const chunks: Array<Uint8Array> = []
        let size = 0
        // From here on nothing turns the answer into a failure.
        for (const timer of timers.splice(0)) clearTimeout(timer)
        const finish = () =>
          end(
            Effect.succeed({
              result: resultOfStatus(httpStatus),
              httpStatus,
              latencyMs,
              bodySnippet: snippet(Buffer.concat(chunks)),
              retryAfterSeconds: retryAfter(response.headers["retry-after"], Date.now())
            })
          )
        after(BODY_MS, finish)
        response.on("data", (chunk: Uint8Array) => {
          chunks.push(chunk)
          size += chunk.length
          if (size >= BODY_BYTES) finish()
        })
        response.on("end", finish)
        response.on("error", finish)
        response.on("close", finish)
        request.removeAllListeners("close")
        request.removeAllListeners("error")
        request.on("error", finish)
      })
      return Effect.sync(destroy)
    })
  )
