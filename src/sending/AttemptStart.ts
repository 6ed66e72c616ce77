/** The beginning of an attempt: the step's input, and the delivery as it reads it. */
import { Schema } from "effect"
import { Bytes } from "../database/decodeRows.ts"
import { results } from "../deliveries/Delivery.ts"

/** Input of a new attempt. */
export interface AttemptStartInput {
  readonly id: string
  /** Attempts of the schedule; others are not counted. */
  readonly limit: number
  /** The last attempt whose wait is over; if a later one has a result, its wait comes first. */
  readonly after: number
  /** Whether the step runs on the quarantine queue. */
  readonly inQuarantine: boolean
  /** Whether it is the turn of a held delivery; no other attempt begins while its webhook is on hold. */
  readonly held: boolean
}

export const AttemptStart = Schema.Struct({
  id: Schema.String,
  status: Schema.String,
  webhookId: Schema.String,
  eventId: Schema.String,
  kind: Schema.String,
  /** The delivery's number within its webhook. C-2. */
  sequence: Schema.Number,
  url: Schema.String,
  /** Why it is canceled instead of sent; null if it is to be sent. */
  cancelAs: Schema.NullOr(Schema.Literal("WEBHOOK_DISABLED", "WEBHOOK_DELETED", "MANUAL")),
  /** Whether its webhook is paused, or its endpoint down, and whether the delivery may have a workflow. */
  holding: Schema.Boolean,
  started: Schema.Boolean,
  /** The envelope's text; null if the event no longer exists. */
  payload: Schema.NullOr(Schema.String),
  /** Ciphertexts of the valid secrets, newest first. */
  secrets: Schema.Array(Bytes),
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
