/**
 * The composition root: which servers, pools, services and listeners a process has, and the order in which they start;
 * they stop in reverse. roles/ composes the layers of each role, Server.ts and portal/Portal.ts those of the API and the
 * portal.
 */

import type { HttpApp } from "@effect/platform"
import * as Etag from "@effect/platform/Etag"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as BunContext from "@effect/platform-bun/BunContext"
import * as BunHttpPlatform from "@effect/platform-bun/BunHttpPlatform"
import { Effect, ExecutionStrategy, Exit, Layer, type Redacted, Schedule, Scope } from "effect"
import { EventChains } from "../events/log/EventChains.ts"
import { accessLog } from "../http/accessLog.ts"
import { ListenError, listen } from "../http/listener.ts"
import * as Portal from "../portal/server/origin.ts"
import { masterKeyLayer } from "../runtime/crypto/MasterKey.ts"
import * as SigningKeys from "../runtime/crypto/SigningKeys.ts"
import * as Database from "../runtime/database/Database.ts"
import * as Migrations from "../runtime/database/Migrations.ts"
import * as Notifications from "../runtime/database/Notifications.ts"
import * as Partitions from "../runtime/database/Partitions.ts"
import { ReadReplica } from "../runtime/database/replica/ReadReplica.ts"
import { isUnavailable, whileUnavailable } from "../runtime/database/unavailable.ts"
import { DataDir } from "../runtime/embedded/DataDir.ts"
import { EmbeddedServerError, portInUse } from "../runtime/embedded/Process.ts"
import * as EmbeddedTemporal from "../runtime/embedded/Temporal.ts"
import type { Role } from "../runtime/settings/roles.ts"
import { InvalidSettings, isClearText, Settings } from "../runtime/settings/Settings.ts"
import { unknownSettings } from "../runtime/settings/unknownSettings.ts"
import { TemporalAddress, TemporalConnection } from "../runtime/temporal/Connection.ts"
import { databaseUrl } from "./Base.ts"
import { MAX_BYTES, platformApp } from "./platform/platformApp.ts"
import { platformToken } from "./platform/platformToken.ts"
import { readiness } from "./platform/readiness.ts"

/** The Temporal server: the configured one, or the embedded one. */
export const temporal = Effect.flatMap(Settings, ({ temporalAddress, temporalUiUrl }) =>
  temporalAddress === undefined ? EmbeddedTemporal.acquire : Effect.succeed({ address: temporalAddress, ui: temporalUiUrl })
)

const http = Layer.mergeAll(BunHttpPlatform.layer, Etag.layerWeak, BunContext.layer)

/** Loads only the code of the process's roles: the rest would take half of the startup time, and memory. */
const codeOf = (has: (role: Role) => boolean) =>
  Effect.promise(async () => ({
    api: has("api") ? await import("./roles/api.ts") : undefined,
    dispatcher: has("dispatcher") ? await import("./roles/dispatcher.ts") : undefined,
    worker: has("worker") ? await import("./roles/worker.ts") : undefined
  }))

/** The platform listener. If a process with the API already uses its port, a process without the API continues without it. */
const listenPlatform = <E, R>(app: HttpApp.Default<E, R>, required: boolean) =>
  Effect.gen(function* () {
    const settings = yield* Settings
    const log = accessLog(false, yield* Effect.runtime<never>())
    const listening = listen(
      {
        name: "platform listener",
        portSetting: "PLATFORM_PORT",
        host: settings.platformHost,
        port: settings.platformPort,
        trustedProxies: settings.trustedProxies,
        maxBody: MAX_BYTES + 64 * 1024,
        // Orchestrators and scrapers send a GET every few seconds; logging each would add nothing.
        onResponse: (request, state, status) => (request.method === "GET" ? undefined : log(request, state, status))
      },
      app
    )
    return yield* required
      ? listening
      : Effect.catchAll(listening, ({ message }) =>
          Effect.as(Effect.logWarning(`${message} This process continues without health and metrics.`), { port: 0 })
        )
  })

/** Options of a start. */
export interface StartOptions {
  readonly migrate: boolean
  /** Called when everything is available, with the addresses. */
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

    const [url, servers, code] = yield* Effect.all([databaseUrl, temporal, codeOf(has)], { concurrency: 3 })
    yield* retryWhileUnavailable(prepare(url, options.migrate))

    // Acquired first, released last: everything that depends on these stops in reverse order, the listeners first.
    const connection = yield* Layer.build(
      Layer.mergeAll(
        Layer.provide(TemporalConnection.layer, Layer.succeed(TemporalAddress, servers)),
        Notifications.layer(url),
        has("api") && settings.databaseReadUrl !== undefined ? ReadReplica.layer(url, settings.databaseReadUrl) : ReadReplica.none
      )
    )
    const workerPool = yield* Layer.build(Database.layer(url, Database.pools.worker))
    const common = Layer.merge(Layer.succeedContext(connection), Layer.succeedContext(workerPool))
    yield* Effect.provide(Partitions.keep, workerPool)
    yield* Effect.provide(
      Effect.flatMap(EventChains, ({ keep }) => keep),
      Layer.provide(EventChains.layer, Layer.succeedContext(workerPool))
    )
    const worker = code.worker && { ...code.worker, services: yield* Layer.build(Layer.provideMerge(code.worker.layer, common)) }
    const dispatcher = code.dispatcher && { ...code.dispatcher, services: yield* Layer.build(Layer.provide(code.dispatcher.layer, common)) }
    const api = code.api && { ...code.api, services: yield* Layer.build(code.api.layer(url, connection)) }

    // Everything with work in flight stops concurrently, so a stop takes as long as the slowest part.
    const roles = yield* Effect.acquireRelease(Scope.make(ExecutionStrategy.parallel), (scope) => Scope.close(scope, Exit.void))
    if (worker !== undefined) yield* Effect.forkIn(Effect.provide(surviving("the worker", worker.run), worker.services), roles)
    if (dispatcher !== undefined) yield* Effect.forkIn(Effect.provide(dispatcher.run, dispatcher.services), roles)
    const ready = yield* Effect.provide(readiness({ api: has("api"), worker: has("worker") }), common)
    if (api === undefined || token === undefined) {
      const { port } = yield* Scope.extend(listenPlatform(platformApp(HttpRouter.empty, ready), false), roles)
      yield* announce(wanted, addresses(settings, { platformPort: port, temporalUi: servers.ui }), options)
      return yield* Effect.never
    }
    const { port } = yield* Scope.extend(Effect.provide(api.serve, api.services), roles)
    const feed = platformApp(api.recordFeedRoutes(token), ready)
    const platform = yield* Scope.extend(Effect.provide(listenPlatform(feed, true), api.services), roles)
    yield* announce(wanted, addresses(settings, { port, platformPort: platform.port, temporalUi: servers.ui }), options)
    return yield* Effect.never
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(masterKeyLayer, http)))

/**
 * Restarts a background task that fails for any reason, defects included: the process would otherwise continue without it
 * and report itself ready.
 */
export const surviving = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>) =>
  effect.pipe(
    Effect.tapErrorCause((cause) => Effect.logError(`${what} ended unexpectedly and will be restarted`, cause)),
    Effect.sandbox,
    Effect.retry(Schedule.spaced("3 seconds"))
  )

/** Waits up to 15 seconds for Postgres to start: servers and processes may start in any order. */
const retryWhileUnavailable = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  effect.pipe(
    Effect.tapError((error) => (isUnavailable(error) ? Effect.logWarning("Postgres cannot be used yet", error) : Effect.void)),
    whileUnavailable("1 second", "15 seconds")
  )

/** The addresses of a process; absent parts are undefined. */
export interface Addresses {
  readonly api?: string
  readonly docs?: string
  readonly portal?: string
  readonly platform?: string
  readonly temporalUi: string
}

interface Ports {
  readonly port?: number
  /** 0 without a platform listener. */
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

/** One log line with all addresses. Scripts wait for it. */
const announce = (roles: ReadonlyArray<Role>, where: Addresses, { onReady }: StartOptions) =>
  Effect.logInfo("ready").pipe(Effect.annotateLogs({ roles: roles.join(","), ...where }), Effect.zipRight(onReady?.(where) ?? Effect.void))

/** Applies migrations if enabled, and refuses to run on the schema of an earlier version or with another master key. */
const prepare = (url: Redacted.Redacted, migrate: boolean) =>
  Effect.gen(function* () {
    if (migrate) {
      const applied = yield* Migrations.migrate
      if (applied.length > 0) yield* Effect.logInfo(`migrated the database: ${applied.map(([id, name]) => `${id} ${name}`).join(", ")}`)
    }
    const { missing, newer } = yield* Migrations.compare
    if (newer.length > 0) yield* Effect.logWarning(`a newer version has migrated the database: ${newer.join(", ")}`)
    if (missing.length > 0) {
      return yield* new EmbeddedServerError({
        message: `The database lacks the migrations ${missing.join(", ")}. Run \`custody migrate\`, or start without --no-migrate.`
      })
    }
    yield* SigningKeys.publish()
    yield* Partitions.ensure
  }).pipe(Effect.provide(Database.layer(url, Database.pools.command)))

const warnings = (settings: typeof Settings.Service) =>
  Effect.gen(function* () {
    if (isClearText(settings))
      yield* Effect.logWarning(
        "HOST is not a loopback address and neither TLS nor TRUSTED_PROXIES is set: API keys would be sent in clear text"
      )
    for (const { name, nearest } of unknownSettings())
      yield* Effect.logWarning(`${name} is not a setting and has no effect. The nearest setting is ${nearest}.`)
  })

/** Reports a port in use, or used twice, before anything starts; other address errors appear when the listener starts. */
const portsFree = Effect.flatMap(Settings, (settings) =>
  Effect.gen(function* () {
    // The system would let them share it, and distribute connections at random.
    if (settings.port !== 0 && settings.port === settings.platformPort)
      return yield* new InvalidSettings({ faults: [`PLATFORM_PORT: read “${settings.platformPort}”, expected another port than PORT's.`] })
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
