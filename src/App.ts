/**
 * The one composition root: which servers, pools, rooms and listeners make up a process, in which order they come
 * up and, in reverse, go down. Nothing else provides layers across rooms.
 */

import { Etag } from "@effect/platform"
import { BunContext, BunHttpPlatform } from "@effect/platform-bun"
import { SqlClient } from "@effect/sql"
import { Effect, Layer, Redacted } from "effect"
import { Authentication } from "./credentials/Authentication.ts"
import * as Database from "./database/Database.ts"
import * as Migrations from "./database/Migrations.ts"
import * as Partitions from "./database/Partitions.ts"
import { DataDir, generateKey } from "./embedded/DataDir.ts"
import * as EmbeddedPostgres from "./embedded/Postgres.ts"
import { EmbeddedServerError, portInUse } from "./embedded/Process.ts"
import * as EmbeddedTemporal from "./embedded/Temporal.ts"
import { ListenError, listen } from "./http/listen.ts"
import { MasterKey, sealing } from "./http/MasterKey.ts"
import { Ledger } from "./ledger/Ledger.ts"
import { MAX_BYTES, platformApp, type Readiness } from "./ledger/platformApp.ts"
import * as Server from "./Server.ts"
import { InvalidSettings, Settings } from "./settings/Settings.ts"
import * as Log from "./telemetry/Log.ts"
import * as Otel from "./telemetry/Otel.ts"

/** What a process does. */
export const roles = ["api", "worker", "dispatcher"] as const
export type Role = (typeof roles)[number]

/** Settings, data directory and logs: what every command stands on. */
export const base = Layer.mergeAll(DataDir.layer, Log.layer, Otel.layer).pipe(Layer.provideMerge(Settings.layer))

/** The Postgres to use: the configured one, or the embedded one, started when it is not running. */
export const databaseUrl = Effect.flatMap(Settings, ({ databaseUrl }) =>
  databaseUrl === undefined ? EmbeddedPostgres.acquire : Effect.succeed(databaseUrl)
)

/** The Temporal server to use: the configured one, or the embedded one. */
export const temporal = Effect.flatMap(Settings, ({ temporalAddress, temporalUiUrl }) =>
  temporalAddress === undefined ? EmbeddedTemporal.acquire : Effect.succeed({ address: temporalAddress, ui: temporalUiUrl })
)

/** The master key: as set, or generated into the data directory beside the embedded Postgres. */
const masterKey = Layer.effect(
  MasterKey,
  Effect.gen(function* () {
    const settings = yield* Settings
    const dataDir = yield* DataDir
    if (settings.masterKey === undefined && settings.databaseUrl !== undefined) {
      return yield* new InvalidSettings({ faults: ["MASTER_KEY: not set, expected 32 bytes in base64 because DATABASE_URL is set."] })
    }
    const current =
      settings.masterKey === undefined
        ? Buffer.from(Redacted.value(dataDir.secret("master-key", generateKey)), "base64")
        : Redacted.value(settings.masterKey)
    return sealing(current, settings.masterKeyPrevious === undefined ? undefined : Redacted.value(settings.masterKeyPrevious))
  })
)

/** A database for a command: migrated, with a small pool. */
export const commandDatabase = Layer.unwrapScoped(
  Effect.map(databaseUrl, (url) => {
    const pool = Database.layer(url, Database.pools.command)
    return Layer.effectDiscard(Effect.zipRight(Migrations.migrate, Partitions.ensure)).pipe(Layer.provideMerge(pool))
  })
)

/** What is wrong with a dependency, null when nothing is. */
const readiness = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const oldest = yield* sql<{ age: number | null }>`
    SELECT extract(epoch FROM clock_timestamp() - min(created_at))::float8 AS age FROM (
      SELECT created_at FROM events WHERE dispatched_at IS NULL ORDER BY id LIMIT 1) e`.pipe(Effect.timeout("2 seconds"), Effect.either)
  const state: Readiness =
    oldest._tag === "Right"
      ? {
          ready: true,
          dependencies: { postgres: null },
          oldestUndispatchedSeconds: Math.max(0, Math.round((oldest.right[0]?.age ?? 0) * 1000) / 1000)
        }
      : { ready: false, dependencies: { postgres: "Postgres does not answer" }, oldestUndispatchedSeconds: null }
  return state
})

const http = Layer.mergeAll(BunHttpPlatform.layer, Etag.layerWeak, BunContext.layer)

/** Runs the service with these roles until it is interrupted. */
export const start = (wanted: ReadonlyArray<Role>, options: { readonly migrate: boolean }) =>
  Effect.gen(function* () {
    const settings = yield* Settings
    const dataDir = yield* DataDir
    const has = (role: Role) => wanted.includes(role)
    yield* warnings(settings)
    if (has("api")) yield* portsFree(settings)
    for (const role of wanted) yield* dataDir.pidFile(role)

    const [url, servers] = yield* Effect.all([databaseUrl, temporal], { concurrency: 2 })
    yield* prepare(url, options.migrate)

    const platformToken = settings.platformToken ?? dataDir.secret("platform-token", () => Redacted.value(Redacted.make(generateKey())))
    if (has("api")) {
      const api = yield* Layer.build(Layer.provideMerge(Authentication.layer, Database.layer(url, Database.pools.api)))
      const ledger = yield* Layer.build(Layer.provide(Ledger.layer, Database.layer(url, Database.pools.ledger)))
      const { port } = yield* Effect.provide(Server.serve, api)
      const platform = yield* listen(
        {
          name: "platform listener",
          portSetting: "PLATFORM_PORT",
          host: settings.platformHost,
          port: settings.platformPort,
          trustedProxies: settings.trustedProxies,
          maxBody: MAX_BYTES + 64 * 1024
        },
        platformApp(platformToken, Effect.provide(readiness(), api))
      ).pipe(Effect.provide(ledger))
      const scheme = settings.tlsCertFile === undefined ? "http" : "https"
      yield* Effect.logInfo("ready").pipe(
        Effect.annotateLogs({
          api: `${scheme}://${settings.host}:${port}`,
          docs: `${scheme}://${settings.host}:${port}/v1/docs`,
          platform: `http://${settings.platformHost}:${platform.port}`,
          temporalUi: servers.ui
        })
      )
    }
    return yield* Effect.never
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(masterKey, http)))

/** Migrates when asked to, and refuses to run on a schema that is not the program's. */
const prepare = (url: Redacted.Redacted, migrate: boolean) =>
  Effect.gen(function* () {
    if (migrate) {
      const applied = yield* Migrations.migrate
      if (applied.length > 0) yield* Effect.logInfo(`migrated the database: ${applied.map(([id, name]) => `${id} ${name}`).join(", ")}`)
    }
    const missing = yield* Migrations.pending
    if (missing.length > 0) {
      return yield* new EmbeddedServerError({
        message: `The database lacks ${missing.join(", ")}. Run \`custody migrate\`, or start without --no-migrate.`
      })
    }
    yield* Partitions.ensure
  }).pipe(Effect.provide(Database.layer(url, Database.pools.command)))

const warnings = (settings: typeof Settings.Service) => {
  const loopback = /^(127\.|::1$|localhost$)/.test(settings.host)
  return !loopback && settings.tlsCertFile === undefined && settings.trustedProxies.length === 0
    ? Effect.logWarning("HOST is not a loopback address and neither TLS nor TRUSTED_PROXIES is set: API keys would travel in clear text")
    : Effect.void
}

/** Tells of a port in use before anything is started for it. */
const portsFree = (settings: typeof Settings.Service) =>
  Effect.gen(function* () {
    for (const [name, setting, port] of [
      ["public API", "PORT", settings.port],
      ["platform listener", "PLATFORM_PORT", settings.platformPort]
    ] as const) {
      if (port !== 0 && (yield* portInUse(port))) {
        return yield* new ListenError({
          message: `Port ${port} is in use by another program, so the ${name} cannot start. Free it, or set ${setting} to another port.`
        })
      }
    }
  })
