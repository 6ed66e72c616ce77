/**
 * Sliding windows in bounded memory, over all API processes: how often something happened recently, per key. Anyone can make
 * up addresses and names, so the least recently used keys are forgotten first. Times are on the monotonic clock, which cannot
 * be set back; times from other processes arrive as ages by Postgres's clock. Decision D-51.
 */

import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { LRUCache } from "lru-cache"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { DirectRows } from "../../runtime/database/pgWorkarounds.ts"
import { answerFor, SharedCounts, type Waiter } from "./SharedCounts.ts"

/** Most keys that are remembered. */
export const REMEMBERED = 50_000
/** How far back a process reads the blocks that others found, in seconds. */
const LEARN_S = 3

/** What a window allows. */
export interface WindowShape {
  /** The prefix of its keys in the shared rows. */
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  /** How long a key is blocked once it reached the limit; it starts anew afterwards. By default, until the window has room. */
  readonly blockMs?: number
}

interface Entry {
  /** Times of occurrences within the window, oldest first. */
  times: Array<number>
  /** How many of the last ones have not been shared yet. */
  unshared: number
  /** Requests that wait for the next sync: to be counted if there is room, or only for the counts of others. */
  waiters: Array<Waiter>
}

const Row = Schema.Struct({ key: Schema.String, granted: Schema.Number, ages: Schema.Array(Schema.Number) })
const decodeSynced = decodeRows(Row),
  decodeLearned = decodeRows(Row.omit("granted"))

/** Windows of this shape. */
export const slidingWindows = ({ blockMs, limit, name, windowMs }: WindowShape) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const direct = yield* DirectRows
    const shared = yield* SharedCounts
    const entries = new LRUCache<string, Entry>({ max: REMEMBERED, memoMethod: () => ({ times: [], unshared: 0, waiters: [] }) })
    /** Entries with counts to share. */
    const due = new Map<string, Entry>()
    const [windowSeconds, blockSeconds] = [windowMs / 1_000, blockMs === undefined ? null : blockMs / 1_000]

    /** Milliseconds until the key has room; 0 if it has. */
    const waitOf = (entry: Entry): number => {
      const now = performance.now()
      const kept = entry.times.findIndex((time) => time > now - windowMs)
      entry.times.splice(0, kept < 0 ? entry.times.length : kept)
      const leaving = entry.times.at(-limit)
      if (leaving === undefined) return 0
      if (blockMs === undefined) return leaving + windowMs - now
      const left = (entry.times.at(-1) ?? now) + blockMs - now
      if (left <= 0) entry.times = []
      return Math.max(0, left)
    }

    const note = (key: string, entry: Entry) => {
      entry.times.push(performance.now())
      if (shared.maxUnshared(limit) === Number.POSITIVE_INFINITY) return
      entry.unshared++
      due.set(key, entry)
    }

    const statement = (batch: ReadonlyArray<readonly [key: string, ages: ReadonlyArray<number>, asked: number]>) =>
      decodeSynced(
        direct.query(sql`
          INSERT INTO recent_attempts AS r (key, times, granted, at)
          SELECT a.key, ARRAY(SELECT clock_timestamp() - x::float8 * interval '1 millisecond' FROM jsonb_array_elements_text(a.ages::jsonb) x)
              || array_fill(clock_timestamp(), ARRAY[g.granted]), g.granted, clock_timestamp()
          FROM unnest(${batch.map(([key]) => key)}::text[], ${batch.map(([, ages]) => JSON.stringify(ages))}::text[], ${batch.map(([, , asked]) => asked)}::int[])
            AS a (key, ages, asked),
            LATERAL (SELECT greatest(0, least(a.asked, ${limit}::int - jsonb_array_length(a.ages::jsonb))) AS granted) g
          ON CONFLICT (key) DO UPDATE SET (times, granted, at) = (
            SELECT (ARRAY(SELECT x FROM unnest(k.times || excluded.times[1:n.spent]) x ORDER BY x DESC LIMIT ${limit}::int)
                || array_fill(excluded.at, ARRAY[g.granted])), g.granted, excluded.at
            FROM (SELECT CASE
                WHEN cardinality(r.times) >= ${limit}::int AND (SELECT max(x) FROM unnest(r.times) x) < excluded.at - make_interval(secs => ${blockSeconds}::float8)
                  THEN '{}'::timestamptz[]
                -- A time in the future is from before Postgres' clock was set back.
                ELSE ARRAY(SELECT least(x, excluded.at) FROM unnest(r.times) x WHERE x > excluded.at - make_interval(secs => ${windowSeconds}::float8)) END AS times) k,
              LATERAL (SELECT cardinality(excluded.times) - excluded.granted AS spent) n,
              LATERAL (SELECT greatest(0, least(excluded.granted, ${limit}::int - cardinality(k.times) - n.spent)) AS granted) g)
          RETURNING key, granted, ARRAY(SELECT (extract(epoch FROM clock_timestamp() - x) * 1000)::float8 FROM unnest(times) x ORDER BY x) AS ages`)
      )

    /** Replaces the entry of the key by the shared times of all processes; occurrences since then are added. */
    const apply = (entry: Entry, ages: ReadonlyArray<number>) => {
      const now = performance.now()
      const since = entry.unshared === 0 ? [] : entry.times.slice(-entry.unshared)
      entry.times = [...ages.map((age) => now - age), ...since]
    }

    const sync: Effect.Effect<void, SqlError.SqlError> = Effect.suspend(() => {
      const now = performance.now()
      const batch = [...due]
        .map(([key, entry]) => {
          const ages = entry.unshared === 0 ? [] : entry.times.slice(-entry.unshared).map((time) => now - time)
          return { key, entry, ages, waiters: entry.waiters, asked: entry.waiters.filter(({ counts }) => counts).length }
        })
        .sort((one, other) => (one.key < other.key ? -1 : 1))
      due.clear()
      for (const { entry } of batch) Object.assign(entry, { unshared: 0, waiters: [] })
      return Effect.matchEffect(statement(batch.map(({ ages, asked, key }) => [`${name}/${key}`, ages, asked])), {
        onSuccess: (rows) =>
          Effect.sync(() => {
            const byKey = new Map(rows.map((row) => [row.key, row]))
            for (const { waiters, entry, key } of batch) {
              const row = byKey.get(`${name}/${key}`)
              if (row !== undefined) apply(entry, row.ages)
              let left = row?.granted ?? 0
              for (const { answer, counts } of waiters) answer(row === undefined ? undefined : !counts || left-- > 0)
            }
          }),
        onFailure: (error) =>
          Effect.suspend(() => {
            for (const { ages, waiters, entry, key } of batch) {
              entry.unshared += ages.length
              due.set(key, entry)
              for (const { answer } of waiters) answer(undefined)
            }
            return Effect.fail(error)
          })
      })
    })

    /** Blocks that other processes found; the caller's next request may come to this one. */
    const learn = Effect.map(
      Effect.suspend(() =>
        decodeLearned(
          direct.query(sql`
            SELECT key, ARRAY(SELECT (extract(epoch FROM clock_timestamp() - x) * 1000)::float8 FROM unnest(times) x ORDER BY x) AS ages
            FROM recent_attempts WHERE at BETWEEN clock_timestamp() - make_interval(secs => ${LEARN_S}) AND clock_timestamp() AND key LIKE ${`${name}/%`}
              AND cardinality(times) >= ${limit}::int ORDER BY at DESC LIMIT 1000`)
        )
      ),
      (rows) => {
        for (const { ages, key } of rows) apply(entries.memo(key.slice(name.length + 1)), ages)
      }
    )

    shared.add({
      isDue: () => due.size > 0,
      sync,
      joined: () => {
        for (const [key, entry] of entries.entries()) {
          entry.unshared = entry.times.length
          if (entry.unshared > 0) due.set(key, entry)
        }
      },
      ...(blockMs === undefined ? {} : { learn })
    })

    /** Waits for the next sync. */
    const ask = (key: string, entry: Entry, counts: boolean) =>
      answerFor(entry, counts, () => {
        due.set(key, entry)
        shared.syncSoon()
      })

    const takeUnsynced = (key: string, entry: Entry): number => {
      const wait = waitOf(entry)
      if (wait === 0) note(key, entry)
      return wait
    }

    return {
      /** Notes an occurrence if the key has room. Returns 0, or the milliseconds until there is room. */
      take: (key: string): Effect.Effect<number> =>
        Effect.suspend(() => {
          const entry = entries.memo(key)
          const wait = waitOf(entry)
          if (wait > 0 || entry.unshared < shared.maxUnshared(limit)) return Effect.succeed(wait > 0 ? wait : takeUnsynced(key, entry))
          return Effect.map(ask(key, entry, true), (granted) =>
            granted === undefined ? takeUnsynced(key, entry) : granted ? 0 : Math.max(1, waitOf(entry))
          )
        }),

      /** Notes an occurrence that can no longer be refused. */
      note: (key: string): void => {
        const entry = entries.memo(key)
        // A key whose block has ended starts anew.
        waitOf(entry)
        note(key, entry)
        if (entry.unshared * 2 > shared.maxUnshared(limit)) shared.syncSoon()
      },

      /**
       * Milliseconds until the key has room; 0 if it has. Waits for the counts of other processes only if this one is as far
       * ahead of them as it may be.
       */
      waitFor: (key: string): Effect.Effect<number> =>
        Effect.suspend(() => {
          const entry = entries.peek(key)
          if (entry === undefined) return Effect.succeed(0)
          const wait = waitOf(entry)
          if (wait > 0 || entry.unshared === 0 || entry.unshared < shared.maxUnshared(limit)) return Effect.succeed(wait)
          return Effect.map(ask(key, entry, false), () => waitOf(entry))
        })
    }
  })
