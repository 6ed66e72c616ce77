/**
 * The one composition root: which servers, pools, rooms and listeners make up a process, in which order they come
 * up and, in reverse, go down. The layers of the API and of the portal are put together in Server.ts and portal/Portal.ts.
 */

import { Etag, type HttpApp, HttpRouter } from "@effect/platform"
import { BunContext, BunHttpPlatform } from "@effect/platform-bun"
import { type Context, Effect, ExecutionStrategy, Exit, Layer, Redacted, Schedule, Scope } from "effect"
import { Authentication } from "./credentials/Authentication.ts"
import * as Database from "./database/Database.ts"
import * as Migrations from "./database/Migrations.ts"
import * as Partitions from "./database/Partitions.ts"
import { Attempts } from "./deliveries/Attempts.ts"
import { activities } from "./deliveries/activities.ts"
import { Dispatcher } from "./deliveries/Dispatcher.ts"
import { Failures } from "./deliveries/Failures.ts"
import { Notices } from "./deliveries/Notices.ts"
import { PingSender } from "./deliveries/Pings.ts"
import * as Retention from "./deliveries/Retention.ts"
import { Sender } from "./deliveries/Sender.ts"
import { Starter } from "./deliveries/Starter.ts"
import { Stepper } from "./deliveries/Stepper.ts"
import { Sweeper } from "./deliveries/Sweeper.ts"
import { Teller } from "./deliveries/Teller.ts"
import { DataDir, generateKey } from "./embedded/DataDir.ts"
import * as EmbeddedPostgres from "./embedded/Postgres.ts"
import { EmbeddedServerError, portInUse } from "./embedded/Process.ts"
import * as EmbeddedTemporal from "./embedded/Temporal.ts"
import { answerLog } from "./http/answerLog.ts"
import { ListenError, listen } from "./http/listen.ts"
import { MasterKey, sealing } from "./http/MasterKey.ts"
import { Ledger } from "./ledger/Ledger.ts"
import { feedRoutes, MAX_BYTES, platformApp } from "./ledger/platformApp.ts"
import * as Portal from "./portal/origin.ts"
import * as PortalPool from "./portal/pool.ts"
import { readiness } from "./readiness.ts"
import * as Server from "./Server.ts"
import { InvalidSettings, isClearText, Settings } from "./settings/Settings.ts"
import * as Log from "./telemetry/Log.ts"
import * as Otel from "./telemetry/Otel.ts"
import { bundle } from "./temporal/bundle.ts"
import { TemporalAddress, TemporalConnection } from "./temporal/Connection.ts"
import { register } from "./temporal/searchAttributes.ts"
import { runWorkers } from "./temporal/Worker.ts"

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
export const masterKey = Layer.effect(
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

/** The token of the record feed: as set, or generated into the data directory beside the embedded Postgres. */
export const platformToken = Effect.gen(function* () {
  const { databaseUrl, platformToken } = yield* Settings
  const dataDir = yield* DataDir
  if (platformToken === undefined && databaseUrl !== undefined) {
    return yield* new InvalidSettings({ faults: ["PLATFORM_TOKEN: not set, expected at least 16 characters because DATABASE_URL is set."] })
  }
  return platformToken ?? dataDir.secret("platform-token", generateKey)
})

/** A database for a command: migrated, with a small pool. */
export const commandDatabase = Layer.unwrapScoped(
  Effect.map(databaseUrl, (url) => {
    const pool = Database.layer(url, Database.pools.command)
    return Layer.effectDiscard(Effect.zipRight(Migrations.migrate, Partitions.ensure)).pipe(Layer.provideMerge(pool))
  })
)

const http = Layer.mergeAll(BunHttpPlatform.layer, Etag.layerWeak, BunContext.layer)

/** Attempts, pings, notices and retention, carried out by Temporal workers. Nothing else sends to endpoints. */
const work = Effect.gen(function* () {
  const connection = yield* TemporalConnection
  const dataDir = yield* DataDir
  const connected = yield* connection.ready
  // Again and again: a Temporal server that lost its state has neither.
  const setUp = Effect.zipRight(
    Effect.catchAll(register(connected, connection.namespace), (error) =>
      Effect.logWarning("the search attributes could not be registered; see docs/temporal.md", error)
    ),
    Effect.catchAll(Retention.schedule, (error) => Effect.logWarning("the retention schedule could not be made", error))
  )
  yield* setUp
  yield* Effect.forkScoped(Effect.schedule(setUp, Schedule.spaced("5 minutes")))
  const code = yield* bundle(dataDir.at("cache"))
  yield* Effect.logInfo("the worker runs").pipe(Effect.annotateLogs({ taskQueue: connection.taskQueue }))
  const { namespace, noticeQueue, retryQueue, slowQueue, taskQueue } = connection
  yield* runWorkers({
    connection: connected.connection,
    namespace,
    taskQueue,
    slowQueue,
    retryQueue,
    noticeQueue,
    bundle: code,
    activities: yield* activities
  })
}).pipe(Effect.scoped)

const workLayer = Layer.mergeAll(Stepper.layer, PingSender.layer).pipe(
  Layer.provide([Attempts.layer, Failures.layer, Sender.layer]),
  Layer.merge(Layer.mergeAll(Notices.layer, Retention.Retention.layer))
)

const dispatchLayer = Dispatcher.layer.pipe(Layer.provide([Sweeper.layer, Teller.layer]), Layer.provide([Starter.layer, Notices.layer]))

/** What the public API and the record feed stand on, each with connections of its own. */
const apiLayer = (url: Redacted.Redacted, connection: Context.Context<TemporalConnection>) =>
  Layer.merge(
    Layer.provideMerge(
      Authentication.layer,
      Layer.mergeAll(Layer.succeedContext(connection), Database.layer(url, Database.pools.api), PortalPool.layer(url))
    ),
    Layer.provide(Ledger.layer, Database.layer(url, Database.pools.ledger))
  )

/** Listens where platform and operators ask; a process without the API goes on when the port is taken by one that has it. */
const listenPlatform = <E, R>(app: HttpApp.Default<E, R>, required: boolean) =>
  Effect.gen(function* () {
    const settings = yield* Settings
    const log = answerLog(false, yield* Effect.runtime<never>())
    const listening = listen(
      {
        name: "platform listener",
        portSetting: "PLATFORM_PORT",
        host: settings.platformHost,
        port: settings.platformPort,
        trustedProxies: settings.trustedProxies,
        maxBody: MAX_BYTES + 64 * 1024,
        // Orchestrators and scrapers ask every few seconds; what they are told is in the answer.
        onAnswer: (request, state, status) => (request.method === "GET" ? undefined : log(request, state, status))
      },
      app
    )
    return yield* required
      ? listening
      : Effect.catchAll(listening, ({ message }) =>
          Effect.as(Effect.logWarning(`${message} This process goes on without health and metrics.`), { port: 0 })
        )
  })

/** How to start. */
export interface StartOptions {
  readonly migrate: boolean
  /** Runs once everything answers, with where it is. */
  readonly onReady?: (addresses: Addresses) => Effect.Effect<void>
}

/** Runs the service with these roles until it is interrupted. */
export const start = (wanted: ReadonlyArray<Role>, options: StartOptions) =>
  Effect.gen(function* () {
    const settings = yield* Settings
    const dataDir = yield* DataDir
    const has = (role: Role) => wanted.includes(role)
    yield* warnings(settings)
    if (has("api")) yield* portsFree
    const token = has("api") ? yield* platformToken : undefined
    for (const role of wanted) yield* dataDir.pidFile(role)

    const [url, servers] = yield* Effect.all([databaseUrl, temporal], { concurrency: 2 })
    yield* patiently(prepare(url, options.migrate))

    // Built first, released last: what is built on them ends in the reverse order, the listeners first of all.
    const connection = yield* Layer.build(Layer.provide(TemporalConnection.layer, Layer.succeed(TemporalAddress, servers)))
    const workerPool = yield* Layer.build(Database.layer(url, Database.pools.worker))
    const common = Layer.merge(Layer.succeedContext(connection), Layer.succeedContext(workerPool))
    yield* Effect.provide(Partitions.keep, workerPool)
    const worker = has("worker") ? yield* Layer.build(Layer.provideMerge(workLayer, common)) : undefined
    const dispatcher = has("dispatcher") ? yield* Layer.build(Layer.provide(dispatchLayer, common)) : undefined
    const api = has("api") ? yield* Layer.build(apiLayer(url, connection)) : undefined

    // Everything that has work in flight ends at the same time, so that the longest of them is what a stop takes.
    const roles = yield* Effect.acquireRelease(Scope.make(ExecutionStrategy.parallel), (scope) => Scope.close(scope, Exit.void))
    if (worker !== undefined) yield* Effect.forkIn(Effect.provide(surviving("the worker", work), worker), roles)
    if (dispatcher !== undefined) {
      const running = Effect.flatMap(Dispatcher, ({ run }) => run)
      yield* Effect.forkIn(Effect.provide(running, dispatcher), roles)
    }
    const ready = Effect.provide(readiness(has("api")), common)
    if (api === undefined || token === undefined) {
      const { port } = yield* Scope.extend(listenPlatform(platformApp(HttpRouter.empty, ready), false), roles)
      yield* announce(wanted, addresses(settings, { platformPort: port, temporalUi: servers.ui }), options)
      return yield* Effect.never
    }
    const { port } = yield* Scope.extend(Effect.provide(Server.serve, api), roles)
    const feed = platformApp(feedRoutes(token), ready)
    const platform = yield* Scope.extend(Effect.provide(listenPlatform(feed, true), api), roles)
    yield* announce(wanted, addresses(settings, { port, platformPort: platform.port, temporalUi: servers.ui }), options)
    return yield* Effect.never
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(masterKey, http)))

/** Starts work again that ended, whatever ended it, a defect included: the process would go on without it and say that it is ready. */
export const surviving = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>) =>
  effect.pipe(
    Effect.tapErrorCause((cause) => Effect.logError(`${what} ended and is started again`, cause)),
    Effect.sandbox,
    Effect.retry(Schedule.spaced("3 seconds"))
  )

/** Waits a quarter of a minute for a Postgres that is still coming up: the order in which servers and processes start is free. */
const patiently = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  effect.pipe(
    Effect.tapError((error) => (Database.isUnavailable(error) ? Effect.logWarning("Postgres cannot be reached yet") : Effect.void)),
    Effect.retry({ while: Database.isUnavailable, schedule: Schedule.spaced("1 second").pipe(Schedule.upTo("15 seconds")) })
  )

/** Where a process answers; what it does not have is absent. */
export interface Addresses {
  readonly api?: string
  readonly docs?: string
  readonly portal?: string
  readonly platform?: string
  readonly temporalUi: string
}

interface Ports {
  readonly port?: number
  /** 0 when the platform listener is not there. */
  readonly platformPort: number
  readonly temporalUi: string
}

const addresses = (settings: typeof Settings.Service, { platformPort, port, temporalUi }: Ports): Addresses => {
  const base = `${settings.tlsCertFile === undefined ? "http" : "https"}://${settings.host}:${port}`
  return {
    ...(port === undefined ? {} : { api: base, docs: `${base}/v1/docs`, portal: Portal.addressOf(settings, port) }),
    ...(platformPort === 0 ? {} : { platform: `http://${settings.platformHost}:${platformPort}` }),
    temporalUi
  }
}

/** One line that says where everything is. Scripts wait for it. */
const announce = (roles: ReadonlyArray<Role>, where: Addresses, { onReady }: StartOptions) =>
  Effect.logInfo("ready").pipe(Effect.annotateLogs({ roles: roles.join(","), ...where }), Effect.zipRight(onReady?.(where) ?? Effect.void))

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

const warnings = (settings: typeof Settings.Service) =>
  isClearText(settings)
    ? Effect.logWarning("HOST is not a loopback address and neither TLS nor TRUSTED_PROXIES is set: API keys would travel in clear text")
    : Effect.void

/** Tells of a port in use before anything is started for it; what else is wrong with an address, listening tells. */
const portsFree = Effect.flatMap(Settings, (settings) =>
  Effect.gen(function* () {
    for (const [name, setting, host, port] of [
      ["public API", "PORT", settings.host, settings.port],
      ["platform listener", "PLATFORM_PORT", settings.platformHost, settings.platformPort]
    ] as const) {
      if (port !== 0 && (yield* portInUse(port, host))) {
        return yield* new ListenError({
          message: `Port ${port} is in use by another program, so the ${name} cannot start. Free it, or set ${setting} to another port.`
        })
      }
    }
  })
)
