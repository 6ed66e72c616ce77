/**
 * The base of every command: settings, data directory, logs, and a database. It is separate from App.ts, so that a
 * command that only uses the database does not load the Temporal SDK and the portal.
 */
import { Effect, Layer } from "effect"
import * as Database from "../runtime/database/Database.ts"
import * as Migrations from "../runtime/database/Migrations.ts"
import * as Partitions from "../runtime/database/Partitions.ts"
import { DataDir } from "../runtime/embedded/DataDir.ts"
import * as EmbeddedPostgres from "../runtime/embedded/Postgres.ts"
import { Settings } from "../runtime/settings/Settings.ts"
import * as Log from "../runtime/telemetry/Log.ts"
import * as Otel from "../runtime/telemetry/Otel.ts"

/** Settings, data directory and logs. */
export const base = Layer.mergeAll(DataDir.layer, Log.layer, Otel.layer).pipe(Layer.provideMerge(Settings.layer))

/** The Postgres: the configured one, or the embedded one, started if it is not running. */
export const databaseUrl = Effect.flatMap(Settings, ({ databaseUrl }) =>
  databaseUrl === undefined ? EmbeddedPostgres.acquire : Effect.succeed(databaseUrl)
)

/** A database for a command: migrated, with a small pool. */
export const commandDatabase = Layer.unwrapScoped(
  Effect.map(databaseUrl, (url) => {
    const pool = Database.layer(url, Database.pools.command)
    return Layer.effectDiscard(Effect.zipRight(Migrations.migrate, Partitions.ensure)).pipe(Layer.provideMerge(pool))
  })
)
