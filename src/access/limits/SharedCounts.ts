/**
 * Rate limit counts that all API processes share. Each process counts in memory and decides most requests by its own
 * counts; every quarter of a second it syncs: it adds its counts to shared rows and reads those of the others, in one
 * statement for all callers. Between two syncs, a process is ahead of the shared count by at most a tenth of a limit, divided
 * by the number of processes; a request beyond that waits for the next sync, together with all others that do. So all
 * processes together, with the requests that they admit during a sync, exceed no limit by more than a fifth, and no caller
 * is rejected below it.
 *
 * The only process of a service syncs nothing. While Postgres is unavailable, each process continues with its own counts,
 * and no request fails because of a failed sync. Decision D-51.
 */

import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Queue, Schedule } from "effect"
import { type Peers, presence } from "../../runtime/processes/Presence.ts"
import { Settings } from "../../runtime/settings/Settings.ts"

/**
 * The share of a limit by which all processes together may be ahead of the shared count: half of the excess that is allowed,
 * because they admit some more while they sync.
 */
const AHEAD = 0.1
/** Time between syncs while there are counts to share, and between two that requests wait for. */
const EVERY = "250 millis",
  GAP = "20 millis"
/** Longest wait of a request for a sync, in ms; then the process decides by its own counts. */
const PATIENCE_MS = 1_000
/** How long unchanged rows are kept: longer than any window, and than a bucket takes to fill. */
const KEPT = { recent_attempts: "2 hours", rate_buckets: "2 days" } as const
/** Most rows removed at a time. */
const REMOVED = 10_000

/** The counts of one limit. */
export interface Counts {
  /** Whether there are counts to share. */
  readonly isDue: () => boolean
  /** Shares the counts and applies the result. If it fails, the next sync shares them. */
  readonly sync: Effect.Effect<void, SqlError.SqlError>
  /** Called when another process joins the only one: everything that it has counted must be shared. */
  readonly joined: () => void
  /** Reads, once a second, the results of other processes. */
  readonly learn?: Effect.Effect<void, SqlError.SqlError>
}

export class SharedCounts extends Context.Tag("custody/limits/SharedCounts")<
  SharedCounts,
  {
    /** How many requests of a caller a process may admit before it shares their count; infinite for the only process. */
    readonly maxUnshared: (limit: number) => number
    /** Adds the counts of a limit. */
    readonly add: (counts: Counts) => void
    /** Begins a sync as soon as possible. */
    readonly syncSoon: () => void
  }
>() {}

/** A request that waits for a sync. */
export interface Waiter {
  /** Whether it counts; otherwise it only waits for the counts of others. */
  readonly counts: boolean
  /** Whether it has its answer, or has given up waiting. */
  gone: boolean
  /** Whether the sync granted it; undefined if there was none. */
  readonly answer: (granted: boolean | undefined) => void
}

/**
 * Adds a request to those that the next sync decides, calls `begin`, and waits. Undefined if there was no sync within
 * {@link PATIENCE_MS}.
 */
export const answerFor = (entry: { waiters: Array<Waiter> }, counts: boolean, begin: () => void) =>
  Effect.async<boolean | undefined>((resume) => {
    const waiter: Waiter = {
      counts,
      gone: false,
      answer: (granted) => {
        if (waiter.gone) return
        waiter.gone = true
        clearTimeout(timer)
        resume(Effect.succeed(granted))
      }
    }
    const timer = setTimeout(() => {
      entry.waiters = entry.waiters.filter((other) => other !== waiter)
      waiter.answer(undefined)
    }, PATIENCE_MS)
    entry.waiters.push(waiter)
    begin()
  })

/** The counts of a process that is always the only one: nothing is shared. */
export const singleProcess = Layer.succeed(SharedCounts, {
  maxUnshared: () => Number.POSITIVE_INFINITY,
  add: () => {},
  syncSoon: () => {}
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { keep } = yield* presence("api")
  const all: Array<Counts> = []
  const requested = yield* Queue.sliding<void>(1)
  let others = 0
  /** Open while there are other processes. */
  const hasOthers = yield* Effect.makeLatch()

  const sync = Effect.suspend(() =>
    Effect.forEach(
      all.filter(({ isDue }) => isDue()),
      (counts) =>
        Effect.catchAll(counts.sync, (error) => Effect.logDebug("rate limit counts could not be shared with other processes", error)),
      { concurrency: "unbounded", discard: true }
    )
  )

  const seen = ({ others: { length: count } }: Peers) =>
    Effect.gen(function* () {
      const before = others
      others = count
      if (others === 0) return yield* hasOthers.close
      if (before === 0) for (const { joined } of all) joined()
      yield* hasOthers.open
      yield* Effect.forEach(all, ({ learn }) => learn ?? Effect.void, { concurrency: "unbounded", discard: true })
    })
  const tidy = Effect.gen(function* () {
    for (const table of ["rate_buckets", "recent_attempts"] as const)
      yield* sql`
        DELETE FROM ${sql(table)} WHERE key IN (
          SELECT key FROM ${sql(table)} WHERE at < clock_timestamp() - ${KEPT[table]}::interval ORDER BY at LIMIT ${REMOVED} FOR UPDATE SKIP LOCKED)`
  })

  yield* keep({ seen })
  const tidied = Effect.catchAllCause(tidy, (cause) => Effect.logDebug("old rate limit counts could not be removed", cause))
  yield* Effect.forkScoped(Effect.schedule(tidied, Schedule.spaced("1 minute")))
  yield* Effect.forkScoped(Effect.forever(Effect.zipRight(Queue.take(requested), Effect.zipRight(sync, Effect.sleep(GAP)))))
  const syncSoon = () => void Queue.unsafeOffer(requested, undefined)
  const due = Effect.sync(() => {
    if (all.some(({ isDue }) => isDue())) syncSoon()
  })
  yield* Effect.forkScoped(Effect.schedule(hasOthers.whenOpen(due), Schedule.spaced(EVERY)))

  return SharedCounts.of({
    maxUnshared: (limit) => (others === 0 ? Number.POSITIVE_INFINITY : Math.floor((AHEAD * limit) / (others + 1))),
    add: (counts) => void all.push(counts),
    syncSoon
  })
})

/** The shared counts of this process; without rate limits, nothing is shared. */
export const layer = Layer.unwrapEffect(
  Effect.map(Settings, ({ rateLimit }) => (rateLimit === null ? singleProcess : Layer.scoped(SharedCounts, make)))
)
