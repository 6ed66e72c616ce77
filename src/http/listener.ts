/**
 * An HTTP listener: Bun's server in front of an Effect app. Effect's own Bun server aborts requests in flight as soon as
 * its scope closes, and meanwhile answers 404, which in this API means "no such vault". This listener stops accepting,
 * lets requests in flight finish for up to 15 s, and then closes. It also determines the client's address, which Effect's
 * proxy middleware gets wrong.
 */

import * as fs from "node:fs"
import type { HttpApp } from "@effect/platform"
import * as HttpServerError from "@effect/platform/HttpServerError"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import type { Server } from "bun"
import { Cause, Context, Data, Duration, Effect, Exit, Runtime, Scope, type Types } from "effect"
import { CurrentReading } from "../runtime/database/replica/Reading.ts"
import type { Cidr } from "../runtime/settings/Format.ts"
import { clientAddress, unnamedProxy } from "./ClientAddress.ts"
import * as requestContext from "./RequestContext.ts"
import { RequestContext, type RequestState } from "./RequestContext.ts"

/** A listener could not start; `message` names the port and the setting. */
export class ListenError extends Data.TaggedError("ListenError")<{ readonly message: string }> {}

/** Where and how to listen. */
export interface Listener {
  /** Name of the listener, and the setting of its port, for messages. */
  readonly name: string
  readonly portSetting: string
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
  readonly tls?: { readonly certFile: string; readonly keyFile: string } | undefined
  readonly trustedProxies: ReadonlyArray<Cidr>
  /**
   * Most bytes that are ever read of a request body; slightly more than the app's own limit, which responds with the
   * envelope.
   */
  readonly maxBody: number
  /** How long a client may take to send a body; default: as long as an idle connection is kept. */
  readonly bodySeconds?: number
  /** Called when the listener stops, before it waits for requests in flight: ends responses that would not end on their own. */
  readonly onDrain?: () => void
  /** Called once per response; not an Effect, for speed. */
  readonly onResponse?: (request: Request, state: RequestState, status: number) => void
}

/** The part of Bun's server that a request needs. */
type Peer = Pick<Server<undefined>, "requestIP" | "timeout">
/** Answers a request of the peer. */
export type Handler = (request: Request, peer: Peer) => Promise<Response>

/** What serves a listener's requests: Bun's server on a port, if not given otherwise. Tests call the handler itself. */
export class Serving extends Context.Reference<Serving>()("Serving", {
  defaultValue: () => ({
    /** Serves while the scope is open; returns the port. */
    serve: (listener: Listener, handle: Handler): Effect.Effect<number, ListenError, Scope.Scope> =>
      Effect.map(
        Effect.acquireRelease(start(listener, handle), (server) =>
          Effect.zipRight(
            Effect.sync(() => listener.onDrain?.()),
            drain(server)
          )
        ),
        ({ port }) => port ?? listener.port
      )
  })
}) {}

/** How long requests in flight may take to finish when the listener stops. */
const DRAIN = Duration.seconds(15)

const IDLE_SECONDS = 30

/** Serves the app until the scope closes. Returns the port in use. */
export const listen = <E, R>(listener: Listener, app: HttpApp.Default<E, R>) =>
  Effect.gen(function* () {
    type Services = Exclude<R, HttpServerRequest.HttpServerRequest | RequestContext | Scope.Scope>
    const runtime: Types.Mutable<Runtime.Runtime<Services>> = Runtime.make(yield* Effect.runtime<Services>())
    const base = Context.add(runtime.context, Scope.Scope, yield* Effect.scope)
    const run = Runtime.runFork(runtime)
    const log = Runtime.runFork(yield* Effect.runtime<never>())

    let warned = false
    const warnOfProxy = (peer: string | undefined) => {
      warned = true
      log(
        Effect.logWarning(
          `X-Forwarded-For was received from ${peer}, which is not in TRUSTED_PROXIES: all clients behind it share one address for rate limits and IP allowlists`
        )
      )
    }

    const handle: Handler = (request, server) =>
      new Promise((resolve) => {
        const socket = server.requestIP(request) ?? undefined,
          peer = socket?.address,
          forwardedFor = request.headers.get("x-forwarded-for")
        if (!warned && unnamedProxy(peer, forwardedFor, listener.trustedProxies)) warnOfProxy(peer)
        const state = requestContext.make(request.headers.get("x-request-id"), clientAddress(peer, forwardedFor, listener.trustedProxies))
        if (listener.bodySeconds !== undefined && hasBody(request)) {
          server.timeout(request, listener.bodySeconds)
          state.bodyRead = () => server.timeout(request, IDLE_SECONDS)
        }
        state.peer = socket
        state.allowIdle = (seconds) => server.timeout(request, seconds)
        // The fiber starts with its services in its context instead of being provided with them, which costs a third as
        // much.
        const services = new Map(base.unsafeMap)
        services.set(HttpServerRequest.HttpServerRequest.key, HttpServerRequest.fromWeb(bounded(request, listener.maxBody)))
        services.set(RequestContext.key, state)
        services.set(CurrentReading.key, state.reading)
        runtime.context = Context.unsafeMake(services)
        // So the app needs no other services, which the type checker cannot see.
        const fiber = run(app as Effect.Effect<HttpServerResponse.HttpServerResponse, E, Services>)
        const abort = () => fiber.unsafeInterruptAsFork(HttpServerError.clientAbortFiberId)
        request.signal.addEventListener("abort", abort, { once: true })
        fiber.addObserver((exit) => {
          request.signal.removeEventListener("abort", abort)
          const headers = { ...state.headers, "x-request-id": state.requestId }
          // An exception thrown here is caught nowhere else: it would end the process instead of the request.
          try {
            const response = Exit.isSuccess(exit)
              ? webResponse(exit.value, headers, request.method === "HEAD", runtime)
              : new Response(null, { status: Cause.isInterruptedOnly(exit.cause) ? 503 : 500, headers })
            resolve(response)
            listener.onResponse?.(request, state, response.status)
          } catch (defect) {
            resolve(new Response(null, { status: 500, headers: { "x-request-id": state.requestId } }))
            log(Effect.logError("a response could not be sent or logged", Cause.die(defect)))
          }
        })
      })

    return { port: yield* (yield* Serving).serve(listener, handle) }
  })

const hasBody = ({ headers, method }: Request): boolean =>
  method !== "GET" && method !== "HEAD" && (Number(headers.get("content-length") ?? 0) > 0 || headers.has("transfer-encoding"))

/** Bun would reject a larger body without the envelope, so its own limit is set out of reach. */
const NO_LIMIT = 2 ** 40

/**
 * The request with at most `maxBody` bytes of a body of unknown length. The app detects that a body exceeds its limit and
 * responds with 413; a body whose Content-Length exceeds it is never read.
 */
const bounded = (request: Request, maxBody: number): Request => {
  if (request.method === "GET" || request.method === "HEAD") return request
  if (request.body === null || request.headers.has("content-length")) return request
  let left = maxBody
  const body = request.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        controller.enqueue(chunk.subarray(0, left))
        left -= chunk.byteLength
        if (left <= 0) controller.terminate()
      }
    })
  )
  return URL.canParse(request.url)
    ? new Request(request, { body })
    : new Request(`http://localhost${targetOf(request.url)}`, {
        method: request.method,
        headers: request.headers,
        signal: request.signal,
        body
      })
}

/**
 * Path and query of a request. Its `url` is not always valid: with an invalid `Host` it does not parse, and without
 * `Host` it is the path only.
 */
export const targetOf = (url: string): string => {
  const scheme = url.indexOf("://")
  if (url.startsWith("/") || scheme < 0) return url
  const path = url.indexOf("/", scheme + 3)
  return path < 0 ? "/" : url.slice(path)
}

/** The response with the headers that every response to the request has. */
const webResponse = (
  response: HttpServerResponse.HttpServerResponse,
  extra: Readonly<Record<string, string>>,
  isHead: boolean,
  runtime: Runtime.Runtime<never>
) => {
  const { body } = response
  if (body._tag !== "Raw" || typeof body.body !== "string") {
    // Otherwise Bun would state the length 0 for a stream.
    const unknownLength = isHead && (body._tag === "Stream" || (body._tag === "Raw" && body.body instanceof ReadableStream))
    const headers = unknownLength ? { ...extra, "transfer-encoding": "chunked" } : extra
    return HttpServerResponse.toWeb(HttpServerResponse.setHeaders(response, headers), { withoutBody: isHead, runtime })
  }
  // Text that is sent unchanged needs no copy into bytes first.
  const headers = { ...response.headers, ...extra }
  return isHead
    ? new Response(null, { status: response.status, headers: { ...headers, "content-length": String(Buffer.byteLength(body.body)) } })
    : new Response(body.body, { status: response.status, headers })
}

const start = (listener: Listener, handle: Handler) =>
  Effect.try({
    try: () =>
      Bun.serve({
        hostname: listener.host,
        port: listener.port,
        maxRequestBodySize: NO_LIMIT,
        idleTimeout: IDLE_SECONDS,
        development: false,
        fetch: handle,
        ...(listener.tls === undefined
          ? {}
          : {
              tls: { cert: fs.readFileSync(listener.tls.certFile), key: fs.readFileSync(listener.tls.keyFile) }
            })
      }),
    catch: (error) =>
      new ListenError({
        message:
          error instanceof Error && "code" in error && error.code === "EADDRINUSE"
            ? `Port ${listener.port} on ${listener.host} is in use by another program, so the ${listener.name} cannot start. ` +
              `Free it, or set ${listener.portSetting} to another port.`
            : `The ${listener.name} cannot listen on ${listener.host}:${listener.port}: ${error instanceof Error ? error.message : String(error)}.`
      })
  })

/** Idle connections close immediately, requests in flight finish, new connections are refused. */
const drain = (server: Server<undefined>) =>
  Effect.promise(() => server.stop()).pipe(
    Effect.interruptible,
    Effect.timeoutTo({ duration: DRAIN, onSuccess: () => true, onTimeout: () => false }),
    Effect.flatMap((drained) => (drained ? Effect.void : Effect.promise(() => server.stop(true))))
  )
