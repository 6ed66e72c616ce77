/**
 * One HTTPS request of a delivery to one checked address. It uses `node:https` instead of `fetch`: Bun's fetch ignores a
 * pinned lookup, follows redirects, obeys proxy variables, and has a limit of 256 concurrent requests.
 *
 * The status line and headers decide, within 10 s of the start of the attempt, including DNS. A 2xx is a success whatever its body does; a part of the
 * body is read within one more second, without decompression. A response is read as leniently as RFC 9112 lets a recipient:
 * with bare LF as line ends, with folded headers, with a repeated `Content-Length`. Nothing is written before the connection is open, its
 * certificate and peer are verified, and the request is confirmed.
 *
 * The connection may be kept from an earlier request. If it closes or sends anything before the request is written, a new
 * one replaces it, because nothing was sent. If it closes afterwards, the attempt ends, because the endpoint may have the
 * request. A connection is kept only after a complete response within these limits, and destroyed otherwise. Spec:
 * Delivery contract 4. Decision D-21.
 */

import type { ClientRequest, IncomingMessage } from "node:http"
import * as https from "node:https"
import type { SecureContext, TLSSocket } from "node:tls"
import { Data, Effect, Exit, type Fiber, FiberId, Runtime } from "effect"
import { failpoint } from "../../../runtime/failpoint.ts"
import { egressProxyFailed } from "../../../runtime/processes/egressProxy.ts"
import * as Format from "../../../runtime/settings/Format.ts"
import type { Result } from "../../deliveries/Delivery.ts"
import { type Answer, detailOfError, mergeLengths, resultOfError, resultOfStatus, retryAfter, snippet } from "./Answer.ts"
import type { ConnectionPool, PooledOptions, Route } from "./ConnectionPool.ts"
import { hide } from "./hide.ts"

/** The request was withdrawn when the connection was open; nothing was sent. */
export class Withdrawn extends Data.TaggedError("Withdrawn") {}

/** A request. */
export interface Post {
  readonly url: URL
  /** Where to connect: the checked address in canonical form, and whose connections may be reused. */
  readonly route: Route
  readonly pool: ConnectionPool
  /** Whether to open a new connection although one may be kept. */
  readonly fresh: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Secret values of headers, which the answer must not show. */
  readonly hidden: ReadonlyArray<string>
  /** Time until the headers of the response, in ms; default 10 s. */
  readonly deadlineMs?: number
  /** Called with the complete body, or with undefined if it was cut off. */
  readonly onBody?: (body: Buffer | undefined) => void
  /** When the attempt began, on the clock of `performance.now`: DNS time is included. */
  readonly startedAt: number
  /** Called when the connection is open and before anything is written: whether to continue. A failure counts as no. */
  readonly wanted: Effect.Effect<boolean>
  /** Trusted roots, created once: reading them for each request costs more than the request. */
  readonly trust: SecureContext
}

const DEADLINE_MS = 10_000,
  CONNECT_MS = 5_000,
  BODY_MS = 1_000
const BODY_BYTES = 16 * 1_024,
  HEADER_BYTES = 64 * 1_024,
  /** Of everything that is received, also of what is neither header nor body, such as empty lines before the status. */
  ALL_BYTES = 1_048_576
/** Most informational responses: an endless flood of them only costs CPU. */
const MAX_INFORMATIONAL = 10
/** With this status a server closes a connection on which it waited too long for a request. */
const REQUEST_TIMEOUT = 408

/** Whether the connection's peer is the checked address; an unknown peer is not. */
const samePeer = (peer: string | undefined, address: string): boolean =>
  peer !== undefined && (peer === address || Format.address(peer)?.toString() === address)

const optionsOf = ({ body, headers, pool, route, trust, url }: Post, dialing: AbortSignal): PooledOptions => ({
  method: "POST",
  host: route.host,
  port: route.port,
  path: `${url.pathname}${url.search}`,
  headers: { ...headers, host: url.host, "content-length": Buffer.byteLength(body) },
  agent: pool,
  route,
  dialing,
  // The name is never resolved again: the lookup always returns the checked address.
  lookup: (_name, options, callback) => {
    const { address } = route
    const family = address.includes(":") ? 6 : 4
    if (typeof options === "object" && options.all === true) callback(null, [{ address, family }])
    else callback(null, address, family)
  },
  // An IP address has no server name; the certificate is then verified for the address.
  ...(Format.address(route.host) === undefined ? { servername: route.host } : {}),
  rejectUnauthorized: true,
  secureContext: trust,
  maxHeaderSize: HEADER_BYTES,
  insecureHTTPParser: true
})

/** Sends the request. Every outcome is an answer except {@link Withdrawn}. Interruption destroys the connection. */
export const post = (asked: Post): Effect.Effect<Answer, Withdrawn> =>
  Effect.flatMap(Effect.runtime<never>(), (runtime) =>
    Effect.async((resume) => {
      const { body, deadlineMs = DEADLINE_MS, fresh, hidden, onBody, pool, route, startedAt, wanted } = asked
      const dialing = new AbortController()
      const options = optionsOf(asked, dialing.signal)
      const latency = () => Math.max(0, Math.round(performance.now() - startedAt))
      let done = false,
        informational = 0
      let request: ClientRequest
      /** Ends an attempt that receives too much. */
      let tooMuch = () => failed("network_error", { detail: "Response too large" })
      let received = 0
      const count = ({ length }: Uint8Array) => {
        received += length
        if (received > ALL_BYTES) tooMuch()
      }
      /** Checks whether the request is still wanted; the connection stays open meanwhile. */
      let asking: Fiber.RuntimeFiber<boolean> | undefined
      const timers: Array<NodeJS.Timeout> = []
      const after = (millis: number, run: () => void) => {
        const timer = setTimeout(run, Math.max(0, millis))
        timers.push(timer)
        return timer
      }

      const settle = () => {
        done = true
        for (const timer of timers) clearTimeout(timer)
        request.socket?.off("data", count)
        asking?.unsafeInterruptAsFork(FiberId.none)
      }
      const destroy = () => {
        settle()
        dialing.abort()
        request.destroy()
      }
      const end = (outcome: Effect.Effect<Answer, Withdrawn>) => {
        if (done) return
        destroy()
        resume(outcome)
      }
      const failed = (result: Result, { detail = null, httpStatus = 0, stale = false }: Partial<Answer> = {}) =>
        end(Effect.succeed({ result, httpStatus, latencyMs: latency(), bodySnippet: null, detail, retryAfterSeconds: undefined, stale }))

      /** Reads the beginning of the body, and returns the connection to the pool if that was all. */
      const read = (response: IncomingMessage, kept: boolean) => {
        const httpStatus = response.statusCode ?? 0
        const latencyMs = latency()
        const chunks: Array<Uint8Array> = []
        let size = 0
        // From here on, nothing can turn the response into a failure.
        for (const timer of timers.splice(0)) clearTimeout(timer)
        const finish = (whole: boolean) => {
          if (done) return
          if (whole) settle()
          else destroy()
          onBody?.(whole ? Buffer.concat(chunks) : undefined)
          const answer = {
            result: resultOfStatus(httpStatus),
            httpStatus,
            latencyMs,
            bodySnippet: snippet(hide(Buffer.concat(chunks), hidden)),
            detail: null,
            retryAfterSeconds: retryAfter(response.headers["retry-after"], Date.now()),
            stale: kept && httpStatus === REQUEST_TIMEOUT
          }
          resume(Effect.succeed(answer))
        }
        const cut = () => finish(false)
        tooMuch = cut
        after(BODY_MS, cut)
        response.on("data", (chunk: Uint8Array) => {
          chunks.push(chunk)
          size += chunk.length
          if (size >= BODY_BYTES) cut()
        })
        response.on("end", () => finish(response.complete))
        response.on("error", cut)
        response.on("close", cut)
        request.removeAllListeners("close")
        request.removeAllListeners("error")
        request.on("error", cut)
      }

      const open = (anew: boolean) => {
        if (anew) pool.retain(route.webhookId)
        const mine = https.request(options)
        request = mine
        let sent = false,
          heard = false,
          reached = false
        const current = () => request === mine && !done
        /** Whether nothing was sent yet on a kept connection: a new one then replaces it. */
        const replace = () => {
          if (!mine.reusedSocket || sent) return false
          const question = asking
          asking = undefined
          open(true)
          question?.unsafeInterruptAsFork(FiberId.none)
          mine.destroy()
          return true
        }
        const died = (result: Result, detail: string | null = null) => {
          if (current() && !replace()) failed(result, { detail, stale: mine.reusedSocket && !heard })
        }
        const connecting = after(CONNECT_MS, () => {
          if (!current()) return
          if (pool.proxy === undefined || reached) return failed("timeout")
          // Until there is a socket, the proxy has not responded.
          egressProxyFailed("the proxy did not answer within 5 seconds")
          failed("proxy_error")
        })
        const ready = (socket: TLSSocket) => {
          if (!current()) return
          clearTimeout(connecting)
          // Behind a proxy the peer is the proxy, which was given the address.
          if (pool.proxy === undefined && !samePeer(socket.remoteAddress, route.address)) return failed("blocked_address")
          socket.prependOnceListener("data", (bytes: Buffer) => {
            heard = true
            mergeLengths(bytes)
          })
          socket.on("data", count)
          asking = Runtime.runFork(runtime)(wanted)
          asking.addObserver((exit) => {
            if (!current()) return
            asking = undefined
            if (!Exit.isSuccess(exit) || !exit.value) return end(new Withdrawn())
            if ((heard || socket.destroyed) && replace()) return
            sent = true
            mine.end(body)
            failpoint("sent")
          })
        }
        mine.on("socket", (socket: TLSSocket) => {
          reached = true
          if (mine.reusedSocket) ready(socket)
          else socket.once("secureConnect", () => ready(socket))
        })
        mine.on("information", () => {
          if (current() && ++informational > MAX_INFORMATIONAL) failed("network_error", { detail: "Too many informational responses" })
        })
        mine.on("upgrade", () => current() && failed("network_error", { httpStatus: 101, detail: "Unexpected upgrade" }))
        mine.on("error", (error) => died(resultOfError(error), detailOfError(error)))
        mine.on("close", () => died("connection_reset"))
        mine.on("response", (response) => {
          if (!current() || replace()) return
          // The endpoint responded before the request was sent.
          if (!sent) return failed("network_error", { detail: "Response before the request" })
          read(response, mine.reusedSocket)
        })
      }

      // Time spent on the check is not the endpoint's.
      after(deadlineMs - latency(), () => (asking === undefined ? failed("timeout") : end(new Withdrawn())))
      open(fresh)
      return Effect.sync(destroy)
    })
  )
