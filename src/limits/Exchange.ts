/**
 * Limits that hold over all API processes. Each process counts in memory and decides most requests alone; every quarter of
 * a second, processes add their counts to shared rows and read the others', one statement for all callers. Without an
 * exchange, a process is ahead of the shared count by at most a tenth of a limit, divided by the number of processes; a
 * request beyond that waits for the next exchange, together with all others that do. So all processes together, with the
 * requests that they admit during an exchange, exceed no limit by more than a fifth, and no caller is rejected below it.
 *
 * A process that is alone exchanges nothing. While Postgres is unavailable, each process continues with its own counts, and
 * no request fails because of the exchange. Decision D-51.
 */

import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Queue, Schedule } from "effect"
import { presence } from "../processes/Presence.ts"
import { Settings } from "../settings/Settings.ts"

/**
 * The share of a limit by which all processes together may be ahead of the shared count: half of the excess that is allowed,
 * because they admit some more while they exchange.
 */
const AHEAD = 0.1
/** Time between exchanges while there are counts to share, and between two that requests wait for. */
const EVERY = "250 millis",
  GAP = "20 millis"
/** Longest wait of a request for an exchange, in ms; then the process decides alone. */
const PATIENCE_MS = 1_000
/** How long unchanged rows are kept: longer than any window, and than a bucket takes to fill. */
const KEPT = { recent_attempts: "2 hours", rate_buckets: "2 days" } as const
/** Most rows removed at a time. */
const REMOVED = 10_000

/** One kind of limit in the exchange. */
export interface Part {
  /** Whether there are counts to share. */
  readonly isDue: () => boolean
  /** Shares the counts and applies the result. If it fails, the next exchange shares them. */
  readonly exchange: Effect.Effect<void, SqlError.SqlError>
  /** Called when the process is no longer alone: everything that it has counted must be shared. */
  readonly joined: () => void
  /** Reads, once a second, the results of other processes. */
  readonly learn?: Effect.Effect<void, SqlError.SqlError>
}

export class Exchange extends Context.Tag("custody/limits/Exchange")<
  Exchange,
  {
    /** How many requests of a caller a process may admit before it shares their count; infinite if it is alone. */
    readonly ahead: (limit: number) => number
    /** Adds a kind of limit. */
    readonly add: (part: Part) => void
    /** Begins an exchange as soon as possible. */
    readonly soon: () => void
  }
>() {}

/** A request that waits for an exchange. */
export interface Waiter {
  /** Whether it counts; otherwise it only waits for the counts of others. */
  readonly counts: boolean
  /** Whether it has its answer, or has given up waiting. */
  gone: boolean
  /** Whether the exchange granted it; undefined if there was none. */
  readonly answer: (granted: boolean | undefined) => void
}

/**
 * Adds a request to those that the next exchange decides, calls `begin`, and waits. Undefined if there was no exchange within
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

/** An exchange of a process that is always alone. */
export const alone = Layer.succeed(Exchange, { ahead: () => Number.POSITIVE_INFINITY, add: () => {}, soon: () => {} })

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { keep } = yield* presence("api")
  const parts: Array<Part> = []
  const asked = yield* Queue.sliding<void>(1)
  let others = 0
  /** Open while there are other processes. */
  const shared = yield* Effect.makeLatch()

  const tell = Effect.suspend(() =>
    Effect.forEach(
      parts.filter(({ isDue }) => isDue()),
      ({ exchange }) => Effect.catchAll(exchange, (error) => Effect.logDebug("counts of limits could not be exchanged", error)),
      { concurrency: "unbounded", discard: true }
    )
  )

  const seen = (count: number) =>
    Effect.gen(function* () {
      const before = others
      others = count
      if (others === 0) return yield* shared.close
      if (before === 0) for (const { joined } of parts) joined()
      yield* shared.open
      yield* Effect.forEach(parts, ({ learn }) => learn ?? Effect.void, { concurrency: "unbounded", discard: true })
    })
  const tidy = Effect.gen(function* () {
    for (const table of ["rate_buckets", "recent_attempts"] as const)
      yield* sql`
        DELETE FROM ${sql(table)} WHERE key IN (
          SELECT key FROM ${sql(table)} WHERE at < clock_timestamp() - ${KEPT[table]}::interval ORDER BY at LIMIT ${REMOVED} FOR UPDATE SKIP LOCKED)`
  })

  yield* keep({ seen })
  const tidied = Effect.catchAllCause(tidy, (cause) => Effect.logDebug("counts of limits could not be removed", cause))
  yield* Effect.forkScoped(Effect.schedule(tidied, Schedule.spaced("1 minute")))
  yield* Effect.forkScoped(Effect.forever(Effect.zipRight(Queue.take(asked), Effect.zipRight(tell, Effect.sleep(GAP)))))
  const soon = () => void Queue.unsafeOffer(asked, undefined)
  const due = Effect.sync(() => {
    if (parts.some(({ isDue }) => isDue())) soon()
  })
  yield* Effect.forkScoped(Effect.schedule(shared.whenOpen(due), Schedule.spaced(EVERY)))

  return Exchange.of({
    ahead: (limit) => (others === 0 ? Number.POSITIVE_INFINITY : Math.floor((AHEAD * limit) / (others + 1))),
    add: (part) => void parts.push(part),
    soon
  })
})

/** The exchange of this process; without rate limits there is none. */
export const layer = Layer.unwrapEffect(
  Effect.map(Settings, ({ rateLimit }) => (rateLimit === null ? alone : Layer.scoped(Exchange, make)))
)
