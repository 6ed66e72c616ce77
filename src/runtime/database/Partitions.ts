/**
 * Daily partitions of events, deliveries and attempts. A partition is a range of ids: an id begins with its creation
 * time, so the key contains the day, and a lookup by id reads one partition only. Every writing process creates
 * partitions ahead of time; retention drops them. Decision D-31.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schedule, Schema } from "effect"
import * as Id from "../../values/Id.ts"
import { PARTITIONS } from "./advisoryLocks.ts"
import { databaseTime } from "./databaseTime.ts"
import { decodeRows } from "./decodeRows.ts"

/** The partitioned tables, and the prefix of the ids in their ranges. */
export const tables = [
  ["events", "evt"],
  ["event_dispatches", "evt"],
  ["deliveries", "del"],
  ["delivery_attempts", "del"]
] as const

/**
 * How partitions are stored. Each delivery and each attempt is updated at least once. Pages of attempts have space for that,
 * so their index is not written again, and dead rows are vacuumed before they slow the frequent queries for waiting deliveries.
 */
const storage: Partial<Record<(typeof tables)[number][0], string>> = {
  deliveries: "WITH (autovacuum_vacuum_scale_factor = 0.05)",
  delivery_attempts: "WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05)"
}

const DAY = 86_400_000
/** Days created ahead of today. */
const AHEAD = 7

/** The name of a table's partition of a day, such as `events_20260131`. */
export const nameOf = (table: string, day: number): string =>
  `${table}_${new Date(day * DAY).toISOString().slice(0, 10).replaceAll("-", "")}`

/** The day of a time, in days since the epoch. */
export const dayOf = (millis: number): number => Math.floor(millis / DAY)

/** Whether ids of the form `prefix` were all created on a day. Ids sort by their time. */
const areOf = (prefix: Id.Prefix, day: number, ids: ReadonlyArray<string>): boolean => {
  const from = Id.floor(prefix, day * DAY),
    to = Id.floor(prefix, (day + 1) * DAY)
  return ids.every((id) => id >= from && id < to)
}

/**
 * The tables for a frequent statement on deliveries with these ids: the partitions of one day, if all are of today or of
 * yesterday, otherwise the tables of all days. A cached plan on the latter locks and opens every partition at each execution
 * before it prunes those that it does not need.
 */
export const partitionsOf = (sql: SqlClient.SqlClient, deliveryIds: ReadonlyArray<string>) => {
  const today = dayOf(Date.now())
  const day = [today, today - 1].find((day) => areOf("del", day, deliveryIds))
  const of = (table: (typeof tables)[number][0]) => sql.literal(day === undefined ? table : nameOf(table, day))
  return { attempts: of("delivery_attempts"), deliveries: of("deliveries"), events: of("events"), oneDay: day !== undefined }
}

const decodeNames = decodeRows(Schema.Struct({ name: Schema.String })),
  decodeDefinitions = decodeRows(Schema.Struct({ definition: Schema.String }))

/**
 * Statements that create a partition's indexes: those of its table, with each column in ascending order. Rows arrive in that
 * order, so index pages are filled completely. In the tables' own, descending order, every page would be split at the
 * newest rows and stay half empty. Postgres attaches indexes whatever the order of their columns, and lists read them
 * backward.
 */
const indexesOf = (sql: SqlClient.SqlClient, table: string, partition: string) =>
  Effect.map(
    decodeDefinitions(sql`
      SELECT pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i
      WHERE i.indrelid = ${table}::regclass AND NOT i.indisunique ORDER BY i.indexrelid`),
    (rows) => rows.map(({ definition }) => definition.replaceAll(" DESC", "").replace(/ INDEX \S+ ON ONLY \S+ /, ` INDEX ON ${partition} `))
  )

/**
 * Creates missing partitions from yesterday to a week ahead, by the clocks of the process and of Postgres, unless these differ by more
 * than two weeks. Safe to run twice or concurrently.
 */
export const ensure = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const today = dayOf(Date.now())
  const days = new Set(
    [today, dayOf(yield* databaseTime(sql))]
      .flatMap((day) => Array.from({ length: AHEAD + 2 }, (_, index) => day - 1 + index))
      .filter((day) => Math.abs(day - today) <= 2 * AHEAD)
  )
  const wanted = tables.flatMap(([table, prefix]) => [...days].map((day) => ({ table, prefix, day, name: nameOf(table, day) })))
  const found = yield* decodeNames(sql`
    SELECT c.relname AS name FROM pg_class c WHERE c.relkind = 'r' AND pg_table_is_visible(c.oid) AND c.relname = ANY(${wanted.map(({ name }) => name)})`)
  const there = new Set(found.map(({ name }) => name))
  const missing = wanted.filter(({ name }) => !there.has(name))
  if (missing.length === 0) return
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`SELECT pg_advisory_xact_lock(${PARTITIONS}::bigint)`
      for (const { day, name, prefix, table } of missing) {
        const already = yield* sql`SELECT 1 WHERE to_regclass(${name}) IS NOT NULL`
        if (already.length > 0) continue
        // Attached instead of created in place: attaching does not block readers and writers of other days.
        yield* sql.unsafe(`CREATE TABLE ${name} (LIKE ${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) ${storage[table] ?? ""}`)
        for (const statement of yield* indexesOf(sql, table, name)) yield* sql.unsafe(statement)
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
