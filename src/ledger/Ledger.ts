/**
 * The ledger: the only writer of custody data. It takes records in batches; a batch is one transaction, all of it
 * or nothing, and what it changes and the events that this causes commit together. Writers take turns under one
 * lock, so that records apply in the order in which they came and the same record fed twice at once is one row
 * and one event. What can go wrong: a record that does not fit, which is told by line and field; Postgres away,
 * which loses nothing because nothing was answered; a circle of locks with another writer, after which the
 * batch is applied anew. Source: custody records.
 */
import { SqlClient } from "@effect/sql"
import { Data, Effect, Either } from "effect"
import { transaction } from "../database/sql.ts"
import * as EventLog from "../events/EventLog.ts"
import * as Idempotency from "../http/Idempotency.ts"
import { fold, type Numbered } from "./fold.ts"
import type { Fault, Record } from "./Record.ts"
import { load } from "./State.ts"
import { write } from "./write.ts"

/** Records of one request at the most. */
export const MAX_RECORDS = 1_000

/** What a batch did. `events` counts the events recorded. */
export interface Applied {
  readonly received: number
  readonly changed: number
  readonly unchanged: number
  readonly events: number
}

/** Some records do not fit; nothing of the batch was applied. */
export class InvalidRecords extends Data.TaggedError("InvalidRecords")<{ readonly faults: ReadonlyArray<Fault> }> {
  override get message() {
    return this.faults.map(({ field, line, reason }) => `line ${line}: ${field === "" ? "" : `${field} `}${reason}`).join("\n")
  }
}

/** A line of a feed as it was read: a record, or what is wrong with it. */
export interface Line {
  readonly line: number
  readonly read: Either.Either<Record, ReadonlyArray<Fault>>
  /** The id or name that the line gives, even when it could not be read otherwise. */
  readonly id?: string | undefined
}

const LOCK = 7_249_013
/** How far ahead of the clock dates may be, in ms; what is further ahead is a clock that was set back. */
const AHEAD_MS = 10_000

export class Ledger extends Effect.Service<Ledger>()("custody/Ledger", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => {
    /** Latest dates, in ms, of what changed last: of an object that changed more often than once a millisecond they are ahead. */
    let ahead: ReadonlyMap<string, number> = new Map()

    /** Applies a batch within a transaction. */
    const apply = Effect.fn("Ledger.apply")(function* (lines: ReadonlyArray<Line>, { events }: { readonly events: boolean }) {
      const records: Array<Numbered> = []
      const faults: Array<Fault> = []
      const broken = new Set<string>()
      for (const { id, line, read } of lines) {
        if (Either.isRight(read)) records.push({ line, record: read.right })
        else {
          faults.push(...read.left)
          if (id !== undefined) broken.add(id)
        }
      }
      yield* sql`SELECT pg_advisory_xact_lock(${LOCK}::bigint)`
      const state = yield* load(
        sql,
        records.map(({ record }) => record)
      )
      const now = Date.now()
      const earlier = new Map([...ahead].filter(([, date]) => date >= now && date < now + AHEAD_MS))
      const folded = fold(state, records, broken, new Date(now).toISOString(), earlier)
      ahead = folded.dates
      if (faults.length + folded.faults.length > 0) {
        return yield* new InvalidRecords({ faults: [...faults, ...folded.faults].sort((a, b) => a.line - b.line) })
      }
      yield* write(sql, state)
      if (events) yield* EventLog.record(sql, folded.occurrences)
      // failpoint: feed-written
      return {
        received: lines.length,
        changed: folded.changed,
        unchanged: folded.unchanged,
        events: events ? folded.occurrences.length : 0
      } satisfies Applied
    })

    return {
      /**
       * Applies a batch in one transaction. `events: false` records no events, for history that predates the service.
       * Fails with {@link InvalidRecords}; then nothing changed.
       */
      apply: (lines: ReadonlyArray<Line>, how: { readonly events: boolean }) =>
        apply(lines, how).pipe(transaction(sql), Effect.uninterruptible),

      /**
       * The same for the request at hand, once for each of its `Idempotency-Key`s: an answer that was lost is asked for
       * again without telling events twice. `sent` is what was sent. Returns the answer, and what was applied for it:
       * nothing where it was kept. Decision D-13.
       */
      feed: (sent: string, lines: ReadonlyArray<Line>, how: { readonly events: boolean }) =>
        Effect.gen(function* () {
          let applied: Applied | undefined
          const applying = Effect.map(apply(lines, how), (body) => {
            applied = body
            return { status: 200, body }
          })
          const answer = yield* Idempotency.once(sql, "platform", [how.events, sent], applying)
          return { answer, applied }
        }).pipe(Effect.uninterruptible)
    }
  })
}) {
  static readonly layer = this.Default
}
