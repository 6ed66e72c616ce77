/** Deliveries and attempts, as the API answers them. Spec: Delivery. Decisions D-21, D-22. */
import { Schema } from "effect"
import { Timestamp } from "../values/Timestamp.ts"

/** Every status of a delivery. */
export const statuses = ["PENDING", "RETRYING", "DELIVERED", "FAILED", "CANCELED"] as const
export const DeliveryStatus = Schema.Literal(...statuses).annotations({
  identifier: "DeliveryStatus",
  description:
    "PENDING: no attempt yet; RETRYING: attempts failed, more follow; DELIVERED: a 2xx; FAILED: the schedule is used up; CANCELED: ended while waiting"
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
  "interrupted"
] as const
/** How an attempt ended. */
export type Result = (typeof results)[number]

/** One attempt: one request that an endpoint was sent. */
export const Attempt = Schema.Struct({
  at: Timestamp.annotations({ description: "When it began" }),
  result: Schema.Literal(...results).annotations({
    identifier: "AttemptResult",
    description:
      "2xx is a success, all else is tried again. interrupted: its sender was killed before it could record the outcome. More may come."
  }),
  httpStatus: Schema.Int.annotations({ description: "Status of the answer, 0 without one" }),
  latencyMs: Schema.Int.annotations({ description: "Milliseconds until the answer's headers, or until it failed" }),
  bodySnippet: Schema.NullOr(Schema.String).annotations({ description: "Beginning of the answer's body, at most 1024 bytes" })
}).annotations({ identifier: "Attempt" })
export type Attempt = typeof Attempt.Type

/** A delivery of an event to a webhook. */
export const Delivery = Schema.Struct({
  id: Schema.String.annotations({ description: "Opaque, prefixed del_", examples: ["del_01jz0000000000000000000000"] }),
  eventId: Schema.String.annotations({ examples: ["evt_01jz0000000000000000000000"] }),
  webhookId: Schema.String.annotations({ examples: ["whs_01jz0000000000000000000000"] }),
  kind: Schema.String.annotations({ description: "Kind of the event", examples: ["transaction.confirmed"] }),
  status: DeliveryStatus,
  attempts: Schema.Array(Attempt).annotations({ description: "Attempts so far, in order" }),
  nextAttemptAt: Schema.NullOr(Timestamp).annotations({ description: "When the next attempt is due; null when there is none" }),
  failureReason: Schema.NullOr(Schema.Literal("EXHAUSTED", "WEBHOOK_DISABLED", "WEBHOOK_DELETED", "MANUAL")).annotations({
    description: "Why it ended without a 2xx; null otherwise"
  }),
  replayedFromDeliveryId: Schema.NullOr(Schema.String).annotations({
    description: "The delivery that this one sends again, otherwise null"
  }),
  deliveredAt: Schema.NullOr(Timestamp),
  createdAt: Timestamp
}).annotations({ identifier: "Delivery", title: "Delivery" })
export type Delivery = typeof Delivery.Type
