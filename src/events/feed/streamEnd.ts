/** The end of an organization's stream of events, from its row. */
import { Schema } from "effect"
import type { Place } from "./cursor.ts"

/** The end of an organization's stream. */
export interface End extends Place {
  /** A time in ms: no event up to this position was recorded later. */
  readonly latest: number
}

/** Longest time that a writer can hold a stream, in ms, generously: no event gets an earlier time. */
export const LONGEST_WRITE = 3_600_000

/** The row: the last event and its clock, and Postgres' clock, in ms. */
export const StreamRow = Schema.Struct({
  position: Schema.Number,
  id: Schema.NullOr(Schema.String),
  clock: Schema.Number,
  now: Schema.Number
})

/** The end of a stream; an organization without one has no events. */
export const endOf = ({ clock, id, now, position }: typeof StreamRow.Type = { position: 0, id: null, clock: 0, now: Date.now() }): End => ({
  position,
  id,
  at: Math.max(clock, Math.min(now, Date.now()) - LONGEST_WRITE),
  latest: Math.max(clock, now)
})
