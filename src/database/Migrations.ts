/** The schema as numbered migrations, applied once and in order. An advisory lock serializes processes that start together. */

import * as Migrator from "@effect/sql/Migrator"
import * as SqlClient from "@effect/sql/SqlClient"
import { Cause, Effect, Schedule, Schema } from "effect"
import { MIGRATIONS } from "./advisoryLocks.ts"
import { decodeRows } from "./decodeRows.ts"
import { DEADLOCK, hasSqlState, LOCK_NOT_AVAILABLE, postgresErrorOf } from "./hasSqlState.ts"
import custody from "./migrations/0001_custody.ts"
import credentials from "./migrations/0002_credentials.ts"
import events from "./migrations/0003_events.ts"
import webhooks from "./migrations/0004_webhooks.ts"
import lists from "./migrations/0005_lists.ts"
import portal from "./migrations/0006_portal.ts"
import lanes from "./migrations/0007_lanes.ts"
import statuses from "./migrations/0008_statuses.ts"
import due from "./migrations/0009_due.ts"
import pipeline from "./migrations/0010_pipeline.ts"
import security from "./migrations/0011_security.ts"
import reads from "./migrations/0012_reads.ts"
import sending from "./migrations/0013_sending.ts"
import balanceHistory from "./migrations/0014_balance_history.ts"
import feed from "./migrations/0015_feed.ts"
import outboxOrder from "./migrations/0018_outbox_order.ts"
import eventsOfEntity from "./migrations/0021_events_of_entity.ts"
import lanesOfEntities from "./migrations/0022_lanes_of_entities.ts"
import holds from "./migrations/0023_holds.ts"
import moved from "./migrations/0024_moved.ts"
import waiting from "./migrations/0025_waiting.ts"
import keyHints from "./migrations/0026_key_hints.ts"
import attemptsOfOrganizations from "./migrations/0027_attempts_of_organizations.ts"
import deletingOrganizations from "./migrations/0028_deleting_organizations.ts"
import sharedLimits from "./migrations/0032_shared_limits.ts"
import endpointPermits from "./migrations/0033_endpoint_permits.ts"
import transactionsByVault from "./migrations/0034_transactions_by_vault.ts"

/** The migrations by number and name; add new ones at the end, never edit old ones. */
export const steps = {
  "0001_custody": custody,
  "0002_credentials": credentials,
  "0003_events": events,
  "0004_webhooks": webhooks,
  "0005_lists": lists,
  "0006_portal": portal,
  "0007_lanes": lanes,
  "0008_statuses": statuses,
  "0009_due": due,
  "0010_pipeline": pipeline,
  "0011_security": security,
  "0012_reads": reads,
  "0013_sending": sending,
  "0014_balance_history": balanceHistory,
  "0015_feed": feed,
  "0018_outbox_order": outboxOrder,
  "0021_events_of_entity": eventsOfEntity,
  "0022_lanes_of_entities": lanesOfEntities,
  "0023_holds": holds,
  "0024_moved": moved,
  "0025_waiting": waiting,
  "0026_key_hints": keyHints,
  "0027_attempts_of_organizations": attemptsOfOrganizations,
  "0028_deleting_organizations": deletingOrganizations,
  "0032_shared_limits": sharedLimits,
  "0033_endpoint_permits": endpointPermits,
  "0034_transactions_by_vault": transactionsByVault
}

const decodeFound = decodeRows(Schema.Struct({ found: Schema.Boolean })),
  decodeIds = decodeRows(Schema.Struct({ id: Schema.Number }))

/** Names of pending migrations; empty if the schema is up to date. */
export const pending = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* decodeFound(sql`SELECT to_regclass('effect_sql_migrations') IS NOT NULL AS found`)
  const rows = tables[0]?.found === true ? yield* decodeIds(sql`SELECT migration_id AS id FROM effect_sql_migrations`) : []
  const applied = new Set(rows.map((row) => row.id))
  return Object.keys(steps).filter((name) => !applied.has(Number(name.slice(0, 4))))
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
 * Applies pending migrations, each in its own transaction, so that none keeps a table locked during the next one; returns
 * their numbers and names.
 */
export const migrate = Effect.gen(function* () {
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
        const until = Object.fromEntries(Object.entries(steps).filter(([name]) => name <= last))
        return yield* Migrator.make({})({ loader: Migrator.fromRecord(until) })
      })
    )
  const applied = yield* Effect.forEach(yield* pending, (name) =>
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
