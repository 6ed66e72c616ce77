/**
 * The schema as numbered migrations, applied once and in order. The first one is the baseline of version 0.1. An advisory lock
 * serializes processes that start together.
 */

import * as path from "node:path"
import * as Migrator from "@effect/sql/Migrator"
import * as SqlClient from "@effect/sql/SqlClient"
import { Cause, Data, Effect, Schedule, Schema } from "effect"
import { InvalidSettings, Settings } from "../settings/Settings.ts"
import { MIGRATIONS } from "./advisoryLocks.ts"
import { decodeRows } from "./decodeRows.ts"
import { DEADLOCK, hasSqlState, LOCK_NOT_AVAILABLE, postgresErrorOf } from "./hasSqlState.ts"
import baseline from "./migrations/0001_baseline.ts"
import { LOST_SETTINGS, rejectedSettings } from "./pooler.ts"

/** Migrations by number and name, such as `0001_baseline`, in order. */
export type Steps = Parameters<typeof Migrator.fromRecord>[0]

/** The migrations of this version; add new ones at the end, never edit old ones. */
export const steps: Steps = {
  "0001_baseline": baseline
}

/** The database was created by a version before 0.1. */
export class OutdatedDatabase extends Data.TaggedError("OutdatedDatabase")<{
  /** The data directory with the embedded database; undefined if `DATABASE_URL` names one. */
  readonly dataDir: string | undefined
}> {
  readonly problem = "The database was created by a version before 0.1. It cannot be used or upgraded."
  get remedy() {
    return this.dataDir === undefined
      ? "Drop and recreate the database that DATABASE_URL names, or name an empty one."
      : `Remove the folder ${this.dataDir}; the next start creates it again.`
  }
  override get message() {
    return `${this.problem} ${this.remedy}`
  }
}

/** `DATABASE_URL` leads through a pooler. */
const pooler = new InvalidSettings({
  faults: [
    "DATABASE_URL: read the address of a connection pooler, expected that of Postgres itself: the service has pools of its own, and depends on settings, prepared statements and notifications of its connections."
  ]
})

const decodeFound = decodeRows(Schema.Struct({ found: Schema.Boolean, pooled: Schema.Boolean })),
  decodeApplied = decodeRows(Schema.Struct({ id: Schema.Number, name: Schema.String }))

/**
 * The names of migrations that are missing, and of those that a newer version has applied. Both are empty if the database has the
 * schema of this version. A process also runs on the schema of a newer version, during an upgrade and after a rollback, because
 * migrations are additive. Fails with {@link OutdatedDatabase}, and if a pooler is in between.
 */
export const compare = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { databaseUrl, dataDir } = yield* Settings
  const [database] = yield* Effect.catchIf(
    decodeFound(sql`SELECT to_regclass('effect_sql_migrations') IS NOT NULL AS found, ${sql.literal(LOST_SETTINGS)} AS pooled`),
    rejectedSettings,
    () => pooler
  )
  if (database?.pooled === true) return yield* pooler
  const rows =
    database?.found === true
      ? yield* decodeApplied(sql`SELECT migration_id AS id, name FROM effect_sql_migrations ORDER BY migration_id`)
      : []
  const applied = rows.map(({ id, name }) => `${String(id).padStart(4, "0")}_${name}`)
  const known = Object.keys(steps)
  const last = known.at(-1) ?? ""
  const unknown = applied.filter((name) => !known.includes(name))
  if (unknown.some((name) => name.slice(0, 4) <= last.slice(0, 4)))
    return yield* new OutdatedDatabase({ dataDir: databaseUrl === undefined ? path.resolve(dataDir) : undefined })
  return { missing: known.filter((name) => !applied.includes(name)), newer: unknown }
})

/**
 * How long a migration waits for a table's lock, because statements of running processes queue behind it. It is then
 * retried, as after a deadlock with one of them.
 */
const LOCK_TIMEOUT = "1s",
  AGAIN = "500 millis",
  TRIES = 60
const isBusy = (cause: Cause.Cause<unknown>): boolean =>
  [...Cause.failures(cause), ...Cause.defects(cause)].some((error) => hasSqlState(error, DEADLOCK, LOCK_NOT_AVAILABLE))

/**
 * Applies the named migrations, each in its own transaction, so that none keeps a table locked during the next one; returns the
 * numbers and names of those that no other process has applied.
 */
export const apply = Effect.fnUntraced(function* (all: Steps, missing: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const upTo = (last: string) =>
    sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`SELECT pg_advisory_xact_lock(${MIGRATIONS}::bigint)`
        yield* sql`SELECT set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`
        // The migrator's own CREATE TABLE fails inside a transaction, so the table is created here.
        yield* sql`
        CREATE TABLE IF NOT EXISTS effect_sql_migrations (
          migration_id integer PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), name text NOT NULL)`
        const until = Object.fromEntries(Object.entries(all).filter(([name]) => name <= last))
        return yield* Migrator.make({})({ loader: Migrator.fromRecord(until) })
      })
    )
  const applied = yield* Effect.forEach(missing, (name) =>
    upTo(name).pipe(
      Effect.sandbox,
      Effect.retry({ while: isBusy, times: TRIES, schedule: Schedule.spaced(AGAIN) }),
      Effect.unsandbox,
      Effect.catchAllDefect((defect) => {
        const said = postgresErrorOf(defect)
        return Effect.die(said === undefined ? defect : new Error(`the migration ${name} failed: ${said.message}`, { cause: defect }))
      })
    )
  )
  return applied.flat()
})

/** Applies the missing migrations of this version; returns their numbers and names. Fails with {@link OutdatedDatabase}. */
export const migrate = Effect.flatMap(compare, ({ missing }) => apply(steps, missing))
