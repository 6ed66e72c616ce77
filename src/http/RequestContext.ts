/**
 * State of one request beside the HTTP message: the request id, the client's address, and the headers that middlewares
 * add to the response. Created by the listener, read by the error boundary, authentication and logs.
 */
import { Context, Effect, type Fiber } from "effect"
import type { IPv4, IPv6 } from "ipaddr.js"
import { newReading, type Reading } from "../runtime/database/replica/Reading.ts"
import * as Id from "../values/Id.ts"
import type { Peer } from "./connectionTable.ts"

/** One request in flight. Mutable on purpose: it lives as long as its request. */
export interface RequestState {
  /** `X-Request-Id`: the client's own if it is valid, otherwise generated. Decision D-4. */
  readonly requestId: string
  /** The client: the socket's peer, or the address from a trusted proxy. Decision D-11. */
  readonly client: IPv4 | IPv6 | undefined
  /** Milliseconds since an arbitrary point, for the duration in the log. */
  readonly startedAt: number
  /** How long the request has waited because it asked to, in ms. */
  waitedMs: number
  /** Headers of the response, success or not. */
  readonly headers: Record<string, string>
  /**
   * Whether the handler has begun: from then on a value that does not match its schema is the service's fault, not the
   * client's.
   */
  inHandler: boolean
  /** The key that authenticated, for the log. */
  keyId: string | undefined
  /** The organization of the key or session that authenticated, for limits. */
  organizationId: string | undefined
  /** The user of the portal's session that authenticated, for limits. */
  userId: string | undefined
  /** Whether a session of the portal or the platform token authenticated, for the log. */
  isKnown: boolean
  /** What its reads need: whether they may use a read replica. */
  readonly reading: Reading
  /** Called when the whole body has been read: from then on the response's time counts, not the client's. */
  bodyRead: () => void
  /** The other end of the connection; undefined without a socket. */
  peer: Peer | undefined
  /** Sets the idle timeout of the connection in seconds, for responses that take long. */
  allowIdle: (seconds: number) => void
}

export class RequestContext extends Context.Tag("custody/RequestContext")<RequestContext, RequestState>() {}

/** The context of a fiber's request; the listener provides one for every request. */
export const current = (fiber: Fiber.RuntimeFiber<unknown, unknown>): RequestState =>
  Context.unsafeGet(fiber.currentContext, RequestContext)

/** The context of the running request, for code that cannot require it in its type: the framework's middlewares. */
export const currentRequest: Effect.Effect<RequestState> = Effect.withFiberRuntime((fiber) => Effect.succeed(current(fiber)))

/** Headers of responses that are for their caller only: no cache keeps them, and no browser guesses another type. */
export const unshared = { "cache-control": "no-store", "x-content-type-options": "nosniff" } as const

const own = /^[A-Za-z0-9_-]{8,64}$/

/** A new context with the request id header and the client. */
export const make = (given: string | null, client: IPv4 | IPv6 | undefined): RequestState => ({
  requestId: given !== null && own.test(given) ? given : Id.make("req"),
  client,
  startedAt: performance.now(),
  waitedMs: 0,
  headers: {},
  inHandler: false,
  keyId: undefined,
  organizationId: undefined,
  userId: undefined,
  isKnown: false,
  reading: newReading(),
  bodyRead: () => {},
  allowIdle: () => {},
  peer: undefined
})
