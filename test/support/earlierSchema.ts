/** The schema of an earlier version, for tests of upgrades. */
import * as Migrator from "@effect/sql/Migrator"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { steps } from "../../src/database/Migrations.ts"

/** Applies the migrations of an empty database up to this one, and records them like that version. */
export const migrateTo = (last: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql.unsafe(`CREATE TABLE effect_sql_migrations (
      migration_id integer PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), name text NOT NULL)`)
    yield* Migrator.make({})({
      loader: Migrator.fromRecord(Object.fromEntries(Object.entries(steps).filter(([name]) => Number(name.slice(0, 4)) <= last)))
    })
  })
