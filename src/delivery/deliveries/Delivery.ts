/** Deliveries and attempts in API responses. Spec: Delivery. Decisions D-21, D-22. */
import { Schema } from "effect"
import { Timestamp, timestamp } from "../../values/Timestamp.ts"

/** Every status of a delivery. */
export const statuses = ["PENDING", "RETRYING", "HELD", "DELIVERED", "FAILED", "CANCELED"] as const
export const DeliveryStatus = Schema.Literal(...statuses).annotations({
  identifier: "DeliveryStatus",
  title: "DeliveryStatus",
  description:
    "PENDING: no attempt yet; RETRYING: an attempt failed and another is scheduled; HELD: it waits in the queue of its webhook, see heldBecause; DELIVERED: the endpoint returned 2xx; FAILED: the retry schedule is exhausted; CANCELED: canceled while waiting",
  examples: ["DELIVERED"]
})
export type DeliveryStatus = typeof DeliveryStatus.Type

/** Every result of an attempt. */
export const results = [
  "2xx",
  "3xx",
  "4xx",
  "5xx",
  "timeout",
  "dns_error",
  "connection_refused",
  "connection_reset",
  "tls_error",
  "blocked_address",
  "network_error",
  "interrupted",
  "proxy_error",
  "auth_error"
] as const
/** The result of an attempt. */
export type Result = (typeof results)[number]

/** One attempt: one request to an endpoint. */
export const Attempt = Schema.Struct({
  at: timestamp("When the attempt began"),
  result: Schema.Literal(...results).annotations({
    identifier: "AttemptResult",
    description:
      "2xx is a success; every other result is retried. interrupted: the worker was killed before it recorded the outcome. proxy_error: the service's egress proxy failed. auth_error: there is no access token, see `detail`. Values may be added."
  }),
  httpStatus: Schema.Int.annotations({ description: "HTTP status of the response; 0 without a response", examples: [200] }),
  latencyMs: Schema.Int.annotations({
    description: "Milliseconds until the response headers arrived or the attempt failed",
    examples: [87]
  }),
  bodySnippet: Schema.NullOr(Schema.String).annotations({ description: "Beginning of the response body, at most 1024 bytes" }),
  detail: Schema.NullOr(Schema.String).annotations({
    description:
      "Why the response could not be read as HTTP, in the parser's words, what is wrong with the certificate, or why there is no access token; null for every other outcome",
    examples: ["Invalid character in Content-Length"]
  })
}).annotations({ identifier: "Attempt" })
export type Attempt = typeof Attempt.Type

/** A delivery of an event to a webhook. */
export const Delivery = Schema.Struct({
  id: Schema.String.annotations({ description: "Opaque, prefixed del_", examples: ["del_01jz0000000000000000000000"] }),
  eventId: Schema.String.annotations({ examples: ["evt_01jz0000000000000000000000"] }),
  webhookId: Schema.String.annotations({ examples: ["whs_01jz0000000000000000000000"] }),
  sequence: Schema.Int.annotations({
    description: "Number of the delivery within its webhook: 1, 2, 3 and so on without gaps, in the order of dispatch",
    jsonSchema: { type: "integer", minimum: 1 }
  }),
  kind: Schema.String.annotations({ description: "Kind of the event", examples: ["transaction.confirmed"] }),
  status: DeliveryStatus,
  attempts: Schema.Array(Attempt).annotations({ description: "Attempts so far, oldest first" }),
  nextAttemptAt: Schema.NullOr(Timestamp).annotations({ description: "When the next attempt is due; null if there is none" }),
  heldBecause: Schema.NullOr(Schema.Literal("PAUSED", "DOWN", "TURN")).annotations({
    description:
      "Why a HELD delivery waits; null otherwise. PAUSED: its webhook or its recovery is paused; DOWN: its endpoint is down and is probed; TURN: it is sent in its turn"
  }),
  failureReason: Schema.NullOr(Schema.Literal("EXHAUSTED", "WEBHOOK_DISABLED", "WEBHOOK_DELETED", "MANUAL", "EXPIRED")).annotations({
    description: "Why it ended without a 2xx response; null otherwise. EXPIRED: it was held for 31 days, or its event left the log"
  }),
  replayedFromDeliveryId: Schema.NullOr(Schema.String).annotations({
    description: "The delivery that this one redelivers; null otherwise"
  }),
  recoveryId: Schema.NullOr(Schema.String).annotations({ description: "The recovery that created it; null otherwise" }),
  deliveredAt: Schema.NullOr(Timestamp).annotations({
    description: "When the endpoint returned 2xx; null before that",
    examples: ["2025-03-24T22:01:59.000Z"]
  }),
  createdAt: Timestamp
}).annotations({ identifier: "Delivery", title: "Delivery" })
export type Delivery = typeof Delivery.Type

/** Filters of a webhook's deliveries. */
export interface DeliveryFilter {
  readonly status?: ReadonlyArray<string> | undefined
  readonly kind?: string | undefined
  readonly eventId?: string | undefined
  readonly sequence?: number | undefined
  readonly createdAfter?: string | undefined
  readonly createdBefore?: string | undefined
}
