/**
 * Daily partitions of events, deliveries and attempts. A partition is a range of ids: an id begins with its creation
 * time, so the key contains the day, and a lookup by id reads one partition only. Every writing process creates
 * partitions ahead of time; retention drops them. Decision D-31.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schedule, Schema } from "effect"
import * as Id from "../values/Id.ts"
import { decodeRows } from "./rows.ts"

/** The partitioned tables, and the prefix of the ids in their ranges. */
export const tables = [
  ["events", "evt"],
  ["event_dispatches", "evt"],
  ["deliveries", "del"],
  ["delivery_attempts", "del"]
] as const

const DAY = 86_400_000
/** Days created ahead of today. */
const AHEAD = 7

/** The name of a table's partition of a day, such as `events_20260131`. */
export const nameOf = (table: string, day: number): string =>
  `${table}_${new Date(day * DAY).toISOString().slice(0, 10).replaceAll("-", "")}`

/** The day of a time, in days since the epoch. */
export const dayOf = (millis: number): number => Math.floor(millis / DAY)

const LOCK = 7_249_012

const decodeNames = decodeRows(Schema.Struct({ name: Schema.String }))

/** Creates missing partitions from yesterday to a week ahead. Safe to run twice or concurrently. */
export const ensure = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const today = dayOf(Date.now())
  const wanted = tables.flatMap(([table, prefix]) =>
    Array.from({ length: AHEAD + 2 }, (_, index) => ({ table, prefix, day: today - 1 + index, name: nameOf(table, today - 1 + index) }))
  )
  const found = yield* decodeNames(sql`
    SELECT c.relname AS name FROM pg_class c WHERE c.relkind = 'r' AND c.relname = ANY(${wanted.map(({ name }) => name)})`)
  const there = new Set(found.map(({ name }) => name))
  const missing = wanted.filter(({ name }) => !there.has(name))
  if (missing.length === 0) return
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`SELECT pg_advisory_xact_lock(${LOCK}::bigint)`
      for (const { day, name, prefix, table } of missing) {
        const already = yield* sql`SELECT 1 FROM pg_class WHERE relname = ${name}`
        if (already.length > 0) continue
        // Attached instead of created in place: attaching does not block readers and writers of other days.
        yield* sql.unsafe(`CREATE TABLE ${name} (LIKE ${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)`)
        yield* sql.unsafe(`ALTER TABLE ${table} ATTACH PARTITION ${name}
        FOR VALUES FROM ('${Id.floor(prefix, day * DAY)}') TO ('${Id.floor(prefix, (day + 1) * DAY)}')`)
      }
    })
  )
})

/** Creates partitions ahead of time while the scope is open. */
export const keep = Effect.zipRight(
  ensure,
  Effect.forkScoped(
    ensure.pipe(
      Effect.catchAllCause((cause) => Effect.logWarning("the partitions of the coming days could not be created", cause)),
      Effect.schedule(Schedule.spaced("1 hour"))
    )
  )
)
