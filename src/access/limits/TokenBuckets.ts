/**
 * Rate limits: a token bucket per caller, over all API processes. They use the monotonic clock: if the machine's clock were
 * set back, counts based on it would stop until the old time is reached again. The most recently used callers are kept.
 * Effect's RateLimiter counts in one process only and delays a call instead of rejecting it; the one of
 * `@effect/experimental` asks its store at each call. Decisions D-12, D-51.
 */

import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Schema } from "effect"
import { LRUCache } from "lru-cache"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { DirectRows } from "../../runtime/database/pgWorkarounds.ts"
import type { Rate } from "../../runtime/settings/Format.ts"
import { answerFor, SharedCounts, type Waiter } from "./SharedCounts.ts"
import { REMEMBERED } from "./SlidingWindows.ts"

interface Bucket {
  /** Tokens at {@link at}, as far as this process knows: others may have taken more. */
  tokens: number
  at: number
  /** Tokens taken since the last sync. */
  spent: number
  /** Requests that wait for the next one. */
  waiters: Array<Waiter>
}

/** The state of a caller's bucket after a request. */
export interface Taken {
  /** Whole tokens left; negative if there was none for the request. */
  readonly remaining: number
  /** Seconds until the next request may succeed, or until the bucket is full. */
  readonly seconds: number
}

const decode = decodeRows(Schema.Struct({ key: Schema.String, tokens: Schema.Number, granted: Schema.Number }))

/** Buckets that hold `burst` tokens and gain `tokens` per `period`. */
export const tokenBuckets = ({ burst, period, tokens }: Rate) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const direct = yield* DirectRows
    const shared = yield* SharedCounts
    const perMs = tokens / Duration.toMillis(period)
    const buckets = new LRUCache<string, Bucket>({
      max: REMEMBERED,
      memoMethod: () => ({ tokens: burst, at: performance.now(), spent: 0, waiters: [] })
    })
    /** Buckets with counts to share. */
    const due = new Map<string, Bucket>()

    const refill = (bucket: Bucket) => {
      const now = performance.now()
      bucket.tokens = Math.min(burst, bucket.tokens + (now - bucket.at) * perMs)
      bucket.at = now
    }

    const statement = (batch: ReadonlyArray<{ readonly key: string; readonly spent: number; readonly waiters: ReadonlyArray<Waiter> }>) =>
      decode(
        direct.query(sql`
          INSERT INTO rate_buckets AS b (key, tokens, granted, at)
          SELECT a.key, ${burst}::float8 - a.spent - g.granted, g.granted, clock_timestamp()
          FROM unnest(${batch.map(({ key }) => key)}::text[], ${batch.map(({ spent }) => spent)}::float8[], ${batch.map(({ waiters }) => waiters.length)}::int[])
            AS a (key, spent, asked), LATERAL (SELECT least(a.asked, greatest(0, floor(${burst}::float8 - a.spent)))::int AS granted) g
          ON CONFLICT (key) DO UPDATE SET (tokens, granted, at) = (
            -- The time since the last sync is 0 if Postgres' clock was set back since.
            SELECT t.tokens - g.granted, g.granted, n.now
            FROM (SELECT clock_timestamp() AS now) n,
              LATERAL (SELECT least(${burst}::float8, b.tokens + ${perMs * 1_000}::float8 * greatest(0, extract(epoch FROM n.now - b.at)))
                - (${burst}::float8 - excluded.tokens - excluded.granted) AS tokens) t,
              LATERAL (SELECT least(excluded.granted, greatest(0, floor(t.tokens)))::int AS granted) g)
          RETURNING key, tokens, granted`)
      )

    const sync: Effect.Effect<void, SqlError.SqlError> = Effect.suspend(() => {
      const batch = [...due]
        .map(([key, bucket]) => ({ key, bucket, spent: bucket.spent, waiters: bucket.waiters }))
        .sort((one, other) => (one.key < other.key ? -1 : 1))
      due.clear()
      for (const { bucket } of batch) Object.assign(bucket, { spent: 0, waiters: [] })
      return Effect.matchEffect(statement(batch), {
        onSuccess: (rows) =>
          Effect.sync(() => {
            const byKey = new Map(rows.map((row) => [row.key, row]))
            for (const { waiters, bucket, key } of batch) {
              const row = byKey.get(key)
              if (row !== undefined) {
                // Tokens granted to requests that no longer wait are returned with the next sync.
                bucket.spent -= waiters.slice(0, row.granted).filter(({ gone }) => gone).length
                bucket.tokens = row.tokens - bucket.spent
                bucket.at = performance.now()
                if (bucket.spent !== 0) due.set(key, bucket)
              }
              for (const [index, { answer }] of waiters.entries()) answer(row === undefined ? undefined : index < row.granted)
            }
          }),
        onFailure: (error) =>
          Effect.suspend(() => {
            for (const { waiters, bucket, key, spent } of batch) {
              bucket.spent += spent
              due.set(key, bucket)
              for (const { answer } of waiters) answer(undefined)
            }
            return Effect.fail(error)
          })
      })
    })

    shared.add({
      isDue: () => due.size > 0,
      sync,
      joined: () => {
        for (const [key, bucket] of buckets.entries()) {
          refill(bucket)
          bucket.spent = burst - bucket.tokens
          if (bucket.spent > 0) due.set(key, bucket)
        }
      }
    })

    // The bucket of a granted request may be overdrawn by others, which were admitted between two syncs.
    const result = (bucket: Bucket, taken: boolean): Taken =>
      taken
        ? { remaining: Math.max(0, Math.floor(bucket.tokens)), seconds: Math.ceil((burst - Math.floor(bucket.tokens)) / perMs / 1_000) }
        : { remaining: -1, seconds: Math.max(1, Math.ceil((1 - bucket.tokens) / perMs / 1_000)) }

    const spend = (key: string, bucket: Bucket, maxUnshared: number): Taken => {
      bucket.tokens--
      if (maxUnshared !== Number.POSITIVE_INFINITY) {
        bucket.spent++
        due.set(key, bucket)
      }
      return result(bucket, true)
    }

    /** Lets the next sync decide. */
    const ask = (key: string, bucket: Bucket) =>
      Effect.map(
        answerFor(bucket, true, () => {
          due.set(key, bucket)
          shared.syncSoon()
        }),
        (granted) => {
          refill(bucket)
          const unsynced = granted === undefined && bucket.tokens >= 1
          return unsynced ? spend(key, bucket, shared.maxUnshared(burst)) : result(bucket, granted === true)
        }
      )

    return {
      /** Takes a token of the caller. Waits for other processes only if the caller uses most of its limit. */
      take: (key: string): Effect.Effect<Taken> =>
        Effect.suspend(() => {
          const bucket = buckets.memo(key)
          refill(bucket)
          if (bucket.tokens < 1) return Effect.succeed(result(bucket, false))
          const maxUnshared = shared.maxUnshared(burst)
          if (bucket.spent + 1 > maxUnshared) return ask(key, bucket)
          const taken = spend(key, bucket, maxUnshared)
          if (bucket.spent * 2 > maxUnshared) shared.syncSoon()
          return Effect.succeed(taken)
        })
    }
  })
