/**
 * The base of every command: settings, data directory, logs, and a database. It is separate from App.ts, so that a
 * command that only uses the database does not load the Temporal SDK and the portal.
 */
import { Effect, Layer } from "effect"
import * as Database from "./database/Database.ts"
import * as Migrations from "./database/Migrations.ts"
import * as Partitions from "./database/Partitions.ts"
import { DataDir } from "./embedded/DataDir.ts"
import * as EmbeddedPostgres from "./embedded/Postgres.ts"
import { Settings } from "./settings/Settings.ts"
import * as Log from "./telemetry/Log.ts"
import * as Otel from "./telemetry/Otel.ts"

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
