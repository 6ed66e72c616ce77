/**
 * One HTTPS request of a delivery, to one address that was judged before. `node:https` and not `fetch`: Bun's fetch
 * ignores a pinned look-up, follows redirects, obeys proxy variables, and holds at most 256 requests at once.
 *
 * The answer's status line and headers decide, within 10 s of the dial. A 2xx is a success whatever its body does; of
 * the body a little is read within one second more, and nothing is decompressed. Nothing is written before the
 * connection is open, its certificate and its peer are verified, and the request is still wanted.
 *
 * The connection may be one that was kept from an earlier request. One that closes, or says anything, before the request
 * is written is replaced by a new one: nothing was sent. One that closes afterwards ends the attempt, because the endpoint
 * may have the request. A connection is kept only when its answer was read to the end within these bounds, and destroyed
 * otherwise. Spec: Delivery contract 4. Decision D-21.
 */

import type { ClientRequest, IncomingMessage } from "node:http"
import * as https from "node:https"
import type { SecureContext, TLSSocket } from "node:tls"
import { Data, Effect, Exit, type Fiber, FiberId, Runtime } from "effect"
import type { Result } from "../deliveries/Delivery.ts"
import * as Format from "../settings/Format.ts"
import { type Answer, isLocal, resultOfError, resultOfStatus, retryAfter, snippet } from "./Answer.ts"
import type { ConnectionPool, PooledOptions, Route } from "./ConnectionPool.ts"

/** Nothing was sent, because the request was not wanted any more when the connection was open. */
export class Withdrawn extends Data.TaggedError("Withdrawn") {}

/** A request. */
export interface Post {
  readonly url: URL
  /** Where to connect: the judged address in its canonical form, and whose connections may be used. */
  readonly route: Route
  readonly pool: ConnectionPool
  /** Whether to open a new connection although one may be kept. */
  readonly fresh: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** When the attempt began, on the clock of `performance.now`: resolving the name is part of its time. */
  readonly startedAt: number
  /** Asked when the connection is open and before anything is written: whether to go on. Its failure counts as a no. */
  readonly wanted: Effect.Effect<boolean>
  /** What certificates are checked against, made once: reading the roots for each request costs more than the request. */
  readonly trust: SecureContext
}

const DEADLINE_MS = 10_000,
  CONNECT_MS = 5_000,
  BODY_MS = 1_000
const BODY_BYTES = 16 * 1_024,
  HEADER_BYTES = 16 * 1_024
/** Informational answers before the endpoint is given up: an endless flood of them costs CPU and says nothing. */
const MAX_INFORMATIONAL = 10
/** By this status a server ends a connection on which it waited for a request for too long. */
const REQUEST_TIMEOUT = 408

/** Whether the connection leads to the judged address; a peer that the system cannot name is none. */
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
  // The name is never resolved a second time: whatever is asked, the judged address is the answer.
  lookup: (_name, options, callback) => {
    const { address } = route
    const family = address.includes(":") ? 6 : 4
    if (typeof options === "object" && options.all === true) callback(null, [{ address, family }])
    else callback(null, address, family)
  },
  // An address has no server name; the certificate is then checked against the address.
  ...(Format.address(route.host) === undefined ? { servername: route.host } : {}),
  rejectUnauthorized: true,
  secureContext: trust,
  maxHeaderSize: HEADER_BYTES
})

/** Sends the request. Whatever happens is an answer; only {@link Withdrawn} is none. Interruption destroys the connection. */
export const post = (asked: Post): Effect.Effect<Answer, Withdrawn> =>
  Effect.flatMap(Effect.runtime<never>(), (runtime) =>
    Effect.async((resume) => {
      const { body, fresh, pool, route, startedAt, wanted } = asked
      const dialing = new AbortController()
      const options = optionsOf(asked, dialing.signal)
      const latency = () => Math.max(0, Math.round(performance.now() - startedAt))
      let done = false,
        informational = 0
      let request: ClientRequest
      /** Asks whether the request is still wanted; the connection is open meanwhile. */
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
      const failed = (result: Result, { httpStatus = 0, stale = false, local = false } = {}) =>
        end(Effect.succeed({ result, httpStatus, latencyMs: latency(), bodySnippet: null, retryAfterSeconds: undefined, stale, local }))

      /** Reads the beginning of the body, and hands the connection back where that was all of it. */
      const read = (response: IncomingMessage, kept: boolean) => {
        const httpStatus = response.statusCode ?? 0
        const latencyMs = latency()
        const chunks: Array<Uint8Array> = []
        let size = 0
        // From here on nothing turns the answer into a failure.
        for (const timer of timers.splice(0)) clearTimeout(timer)
        const finish = (whole: boolean) => {
          if (done) return
          if (whole) settle()
          else destroy()
          const answer = {
            result: resultOfStatus(httpStatus),
            httpStatus,
            latencyMs,
            bodySnippet: snippet(Buffer.concat(chunks)),
            retryAfterSeconds: retryAfter(response.headers["retry-after"], Date.now()),
            stale: kept && httpStatus === REQUEST_TIMEOUT
          }
          resume(Effect.succeed(answer))
        }
        const cut = () => finish(false)
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
        /** Whether nothing was sent yet, over a connection that was kept: another one then takes its place. */
        const replace = () => {
          if (!mine.reusedSocket || sent) return false
          const question = asking
          asking = undefined
          open(true)
          question?.unsafeInterruptAsFork(FiberId.none)
          mine.destroy()
          return true
        }
        const died = (result: Result, local = false) => {
          if (current() && !replace()) failed(result, { stale: mine.reusedSocket && !heard, local })
        }
        // Until there is a socket, it is the proxy that has not answered.
        const connecting = after(CONNECT_MS, () => current() && failed(pool.proxy === undefined || reached ? "timeout" : "proxy_error"))
        const ready = (socket: TLSSocket) => {
          if (!current()) return
          clearTimeout(connecting)
          // Through a proxy the peer is the proxy, which was told the address.
          if (pool.proxy === undefined && !samePeer(socket.remoteAddress, route.address)) return failed("blocked_address")
          socket.prependOnceListener("data", () => {
            heard = true
          })
          asking = Runtime.runFork(runtime)(wanted)
          asking.addObserver((exit) => {
            if (!current()) return
            asking = undefined
            if (!Exit.isSuccess(exit) || !exit.value) return end(new Withdrawn())
            if ((heard || socket.destroyed) && replace()) return
            sent = true
            mine.end(body)
            // failpoint: sent
          })
        }
        mine.on("socket", (socket: TLSSocket) => {
          reached = true
          if (mine.reusedSocket) ready(socket)
          else socket.once("secureConnect", () => ready(socket))
        })
        mine.on("information", () => {
          if (current() && ++informational > MAX_INFORMATIONAL) failed("network_error")
        })
        mine.on("upgrade", () => current() && failed("network_error", { httpStatus: 101 }))
        mine.on("error", (error) => died(resultOfError(error), !sent && isLocal(error)))
        mine.on("close", () => died("connection_reset"))
        mine.on("response", (response) => {
          if (!current() || replace()) return
          // An answer to nothing that was asked.
          if (!sent) return failed("network_error")
          read(response, mine.reusedSocket)
        })
      }

      // Time that was spent on asking is not the endpoint's.
      after(DEADLINE_MS - latency(), () => (asking === undefined ? failed("timeout") : end(new Withdrawn())))
      open(fresh)
      return Effect.sync(destroy)
    })
  )
