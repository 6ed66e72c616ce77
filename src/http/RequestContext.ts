/**
 * What one request and its answer carry beside the HTTP message itself: the request id, the caller's
 * address, and the headers that middlewares add to whatever answer comes. Made by the listener, read by
 * the error boundary, credentials and logs.
 */
import { Context, Effect, type Fiber } from "effect"
import type { IPv4, IPv6 } from "ipaddr.js"
import * as Id from "../values/Id.ts"

/** One request in flight. Mutable on purpose: it lives exactly as long as its request. */
export interface RequestState {
  /** `X-Request-Id`: the client's own when it has the form, otherwise ours. Decision D-4. */
  readonly requestId: string
  /** The caller: the socket's peer, or the address that a trusted proxy vouches for. Decision D-11. */
  readonly client: IPv4 | IPv6 | undefined
  /** Milliseconds since an arbitrary point, for the duration in the log. */
  readonly startedAt: number
  /** Headers for the answer, success or not. */
  readonly headers: Record<string, string>
  /** Whether the handler has begun: what fails to fit its schema from here on is our fault, not the caller's. */
  inHandler: boolean
  /** The key that authenticated, for the log. */
  keyId: string | undefined
  /** Called once the whole body was read: from then on the time is the answer's, and no longer the caller's. */
  bodyRead: () => void
  /** Lets the connection be idle for so many seconds before it is closed, for answers that take their time. */
  allowIdle: (seconds: number) => void
}

export class RequestContext extends Context.Tag("custody/RequestContext")<RequestContext, RequestState>() {}

/** The context of a fiber's request; the listener gives one to every request. */
export const current = (fiber: Fiber.RuntimeFiber<unknown, unknown>): RequestState =>
  Context.unsafeGet(fiber.currentContext, RequestContext)

/** The context of the running request, for code whose type cannot name it: the framework's middlewares. */
export const currentRequest: Effect.Effect<RequestState> = Effect.withFiberRuntime((fiber) => Effect.succeed(current(fiber)))

const own = /^[A-Za-z0-9_-]{8,64}$/

/** A new context for the request id header and the caller. */
export const make = (given: string | null, client: IPv4 | IPv6 | undefined): RequestState => ({
  requestId: given !== null && own.test(given) ? given : Id.make("req"),
  client,
  startedAt: performance.now(),
  headers: {},
  inHandler: false,
  keyId: undefined,
  bodyRead: () => {},
  allowIdle: () => {}
})
