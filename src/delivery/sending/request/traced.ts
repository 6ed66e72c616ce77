/** The trace context of requests to endpoints. C-12. */
import * as HttpTraceContext from "@effect/platform/HttpTraceContext"
import { Effect, FiberRef } from "effect"

/** What a span says about an attempt. */
interface Traced {
  readonly webhookId: string
  readonly deliveryId: string
  readonly attempt: number
}

/**
 * Sends a request; if traces are exported, in a span of its own, which the header `traceparent` (W3C Trace Context) names.
 * `send` gets that header, or nothing.
 */
export const traced = <A, E, R>(
  { attempt, deliveryId, webhookId }: Traced,
  send: (headers: { readonly traceparent?: string }) => Effect.Effect<A, E, R>
) =>
  Effect.flatMap(FiberRef.get(FiberRef.currentTracerEnabled), (isTraced) =>
    isTraced
      ? Effect.orDie(Effect.currentSpan).pipe(
          Effect.flatMap((span) => send({ traceparent: HttpTraceContext.toHeaders(span)["traceparent"] ?? "" })),
          Effect.withSpan("webhookRequest", { kind: "client", attributes: { attempt, deliveryId, webhookId } })
        )
      : send({})
  )
