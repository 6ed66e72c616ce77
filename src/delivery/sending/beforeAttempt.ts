/**
 * The beginning of an attempt: what is asked, the delivery as the statement that begins it read it, and what that means. An
 * attempt is begun by its row; without one, `beforeAttempt` says why.
 */
import { Data, Schema } from "effect"
import { Bytes } from "../../runtime/database/decodeRows.ts"
import { results } from "../deliveries/Delivery.ts"
import type { CancelReason } from "../webhooks/cancelWaiting.ts"
import type { Via } from "./decide.ts"

/** Interruptions in a row after which the next attempt waits as after a failure. Decision D-21. */
export const INTERRUPTIONS = 2

/** An attempt that is to begin. */
export interface AttemptStartInput {
  readonly id: string
  /** The last attempt whose wait is over; if a later one has a result, its wait comes first. */
  readonly after: number
  readonly via: Via
  /** The key of the claim, whose row is removed, if this is its only delivery; otherwise null. */
  readonly claimKey: string | null
}

export const AttemptStart = Schema.Struct({
  id: Schema.String,
  status: Schema.Literal("PENDING", "RETRYING", "HELD", "DELIVERED", "FAILED", "CANCELED"),
  webhookId: Schema.String,
  eventId: Schema.String,
  kind: Schema.String,
  /** The delivery's number within its webhook. C-2. */
  sequence: Schema.Number,
  url: Schema.String,
  /** When its webhook was changed last: the attempt is withdrawn if that is another time when the request is sent. */
  changedAt: Schema.String,
  /** Why it is canceled instead of sent; null if it is to be sent. */
  cancelAs: Schema.NullOr(Schema.Literal("WEBHOOK_DISABLED", "WEBHOOK_DELETED", "MANUAL")),
  /** Whether its webhook, or the recovery that made it, is paused. */
  paused: Schema.Boolean,
  /** Whether the endpoint is down, and whether the delivery must wait in the webhook's queue. */
  down: Schema.Boolean,
  joins: Schema.Boolean,
  /** The running process that makes its last attempt; null if that has a result or its process is gone. */
  openBy: Schema.NullOr(Schema.String),
  /** Whether this process is registered, without which it may not begin attempts. */
  registered: Schema.Boolean,
  /** The envelope's text; null if the event no longer exists. */
  payload: Schema.NullOr(Schema.String),
  /** Ciphertexts of the valid secrets, newest first. */
  secrets: Schema.Array(Bytes),
  /** Ciphertext of what a gateway requires; null if nothing. */
  gatewayCredentials: Schema.NullOr(Bytes),
  /** The number of the new attempt; null if none was begun. */
  number: Schema.NullOr(Schema.Number),
  /** The highest number before that, and its result; null if it is open or there is none. */
  last: Schema.Number,
  lastResult: Schema.NullOr(Schema.Literal(...results)),
  /** Attempts so far that used up the schedule. */
  used: Schema.Number,
  /** Interrupted attempts in a row up to the last, and whether this beginning is the first to find the last one interrupted. */
  interruptions: Schema.Number,
  newlyInterrupted: Schema.Boolean,
  /** Milliseconds until the next attempt if it is not due yet; null if it is. */
  dueInMs: Schema.NullOr(Schema.Number)
})
/** A delivery at the beginning of an attempt. */
export type AttemptStart = typeof AttemptStart.Type

/** What the beginning of an attempt found. */
export type Before = Data.TaggedEnum<{
  /** The attempt has begun: the request is to be sent. */
  Go: { readonly number: number; readonly payload: string }
  /** The delivery has ended. */
  Ended: { readonly status: "DELIVERED" | "FAILED" | "CANCELED" }
  /** It is to be canceled. */
  Cancel: { readonly reason: CancelReason | "EXPIRED" }
  /** It must wait in the webhook's queue, where it may be already. */
  Queue: { readonly because: "PAUSED" | "DOWN" | "TURN"; readonly isThere: boolean }
  /** A running process makes its last attempt. */
  InFlight: { readonly by: string }
  /** It is not due yet. */
  NotDue: { readonly waitMs: number }
  /** Its last attempts were interrupted: it waits as after a failure. */
  Interrupted: object
  /** This process may not begin attempts now. */
  Later: object
}>
export const Before = Data.taggedEnum<Before>()

/** What the beginning of an attempt means. A delivery that waits is attempted, even if the schedule has become shorter meanwhile. */
export const beforeAttempt = (begun: AttemptStart | null, via: Via): Before => {
  if (begun === null) return Before.Ended({ status: "CANCELED" })
  const { cancelAs, dueInMs, interruptions, number, openBy, payload, status } = begun
  if (status === "DELIVERED" || status === "FAILED" || status === "CANCELED") return Before.Ended({ status })
  // A redelivery can outlast its event, which has left the log.
  if (number !== null) return payload === null ? Before.Cancel({ reason: "EXPIRED" }) : Before.Go({ number, payload })
  if (cancelAs !== null) return Before.Cancel({ reason: cancelAs })
  if (openBy !== null) return Before.InFlight({ by: openBy })
  const because = begun.paused ? "PAUSED" : begun.down ? "DOWN" : "TURN"
  if (dueInMs !== null) return Before.NotDue({ waitMs: dueInMs })
  if (via === "first" || via === "retry") {
    if (status === "HELD") return Before.Queue({ because, isThere: true })
    if (begun.joins) return Before.Queue({ because, isThere: false })
  } else if (status !== "HELD") return Before.Later()
  else if (begun.paused) return Before.Queue({ because, isThere: true })
  if (interruptions >= INTERRUPTIONS && begun.newlyInterrupted) return Before.Interrupted()
  return Before.Later()
}
