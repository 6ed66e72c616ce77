/**
 * The real servers that tests run against: one Postgres and one Temporal for the whole run, on free ports and in a
 * data folder of their own. `bun run test` starts them and names them in the environment; a single test file run by
 * itself starts its own on first use. Each test file gets a separate database, copied from a migrated template.
 */

import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { ConfigProvider, Effect, Exit, Layer, Logger, LogLevel, Redacted, Scope } from "effect"
import pg from "pg"
import * as Database from "../../src/runtime/database/Database.ts"
import * as Migrations from "../../src/runtime/database/Migrations.ts"
import * as Partitions from "../../src/runtime/database/Partitions.ts"
import { DataDir } from "../../src/runtime/embedded/DataDir.ts"
import * as EmbeddedPostgres from "../../src/runtime/embedded/Postgres.ts"
import * as Process from "../../src/runtime/embedded/Process.ts"
import * as EmbeddedTemporal from "../../src/runtime/embedded/Temporal.ts"
import { Settings } from "../../src/runtime/settings/Settings.ts"

/** Names in the environment under which the runner hands its servers to the test process. */
export const POSTGRES = "CUSTODY_TEST_POSTGRES",
  TEMPORAL = "CUSTODY_TEST_TEMPORAL",
  TEMPORAL_UI = "CUSTODY_TEST_TEMPORAL_UI"

/** Where fetched and built things are kept between runs. */
export const cache = path.resolve(import.meta.dir, "../../.cache")

export interface Servers {
  /** URL of the Postgres server's maintenance database. */
  readonly postgres: string
  readonly temporal: string
  readonly temporalUi: string
}

/** Servers that this process started. */
interface OwnServers extends Servers {
  readonly close: () => Promise<void>
  /** Of each server that has ended by itself, its name and what its log says of it. */
  readonly lost: () => ReadonlyArray<string>
}

/** Settings of embedded servers in a folder, on free ports by default. */
export const settingsOf = (folder: string, more: ReadonlyArray<readonly [string, string]> = []) =>
  Layer.provide(
    Settings.layer,
    Layer.setConfigProvider(
      ConfigProvider.fromMap(
        new Map([
          ["DATA_DIR", folder],
          ["EMBEDDED_POSTGRES_PORT", "0"],
          ["EMBEDDED_TEMPORAL_PORT", "0"],
          ["EMBEDDED_TEMPORAL_UI_PORT", "0"],
          ...more
        ])
      )
    )
  )

/** The Temporal server is built once and kept for later runs; one that the demo fetched or built before serves as well. */
const kept = path.join(cache, "bin", "temporal")
const known = [kept, path.resolve(cache, "../.data/bin/temporal")]

/** The Temporal server's program: on the PATH, or kept by an earlier start. */
export const keptTemporal = (): string => Bun.which("temporal") ?? known.find((file) => fs.existsSync(file)) ?? "temporal"

/** A fresh data folder that has the kept Temporal server where the program looks for it. */
export const serverFolder = (): string => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-test-"))
  fs.mkdirSync(path.join(folder, "bin"))
  const found = known.find((file) => fs.existsSync(file))
  if (found !== undefined) fs.symlinkSync(found, path.join(folder, "bin", "temporal"))
  return folder
}

/**
 * Gives up safety from a crash of the machine: commits survive a killed process, and tests do not write what only such a crash
 * needs. Servers that tests crash, and the program's own, keep these settings.
 */
const withoutCrashSafety = async (postgres: string): Promise<void> => {
  const client = new pg.Client({ connectionString: postgres })
  await client.connect()
  try {
    await client.query("ALTER SYSTEM SET fsync = off")
    await client.query("ALTER SYSTEM SET full_page_writes = off")
    await client.query("SELECT pg_reload_conf()")
  } finally {
    await client.end()
  }
}

/**
 * For a server of hundreds of task queues, most of whose workers have ended: it would forward their tasks between the
 * partitions of a queue all the time, and report metrics of each.
 */
const manyTaskQueues = {
  "matching.numTaskqueueReadPartitions": 1,
  "matching.numTaskqueueWritePartitions": 1,
  "metrics.breakdownByTaskQueue": false
}

/** Starts both servers in a fresh folder. `close` stops them and removes it, as does `signal` before they are there. */
export const startServers = async (signal?: AbortSignal): Promise<OwnServers> => {
  // Otherwise Temporal spends a quarter of its CPU time on garbage collection; a run has memory to spare.
  process.env["GOGC"] ??= "400"
  const folder = serverFolder()
  const scope = await Effect.runPromise(Scope.make())
  const close = async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    fs.rmSync(folder, { recursive: true, force: true })
  }
  try {
    const [postgres, temporal] = await Effect.runPromise(
      Effect.all([EmbeddedPostgres.acquire, EmbeddedTemporal.acquireWith(manyTaskQueues)], { concurrency: 2 }).pipe(
        Effect.provide(Layer.provideMerge(DataDir.layer, settingsOf(folder))),
        Scope.extend(scope)
      ),
      signal === undefined ? {} : { signal }
    )
    const built = path.join(folder, "bin", "temporal")
    if (fs.existsSync(built) && !fs.existsSync(kept)) {
      fs.mkdirSync(path.dirname(kept), { recursive: true })
      fs.copyFileSync(built, `${kept}.${process.pid}`)
      fs.renameSync(`${kept}.${process.pid}`, kept)
    }
    await withoutCrashSafety(Redacted.value(postgres))
    const lost = () =>
      ["postgres", "temporal"]
        .filter((name) => Process.livePid(path.join(folder, "run", `${name}.pid`)) === undefined)
        .map((name) => `The tests' ${name} ended. Its log:\n${Process.reasonIn(path.join(folder, "log", `${name}.log`), 0, 30)}`)
    return { postgres: Redacted.value(postgres), temporal: temporal.address, temporalUi: temporal.ui, close, lost }
  } catch (error) {
    await close()
    throw error
  }
}

let started: Promise<Servers> | undefined
const closers: Array<() => Promise<void>> = []

/** The servers of this run. */
export const servers = (): Promise<Servers> => {
  started ??= (async () => {
    const [postgres, temporal, temporalUi] = [process.env[POSTGRES], process.env[TEMPORAL], process.env[TEMPORAL_UI]]
    if (postgres !== undefined && temporal !== undefined && temporalUi !== undefined) return { postgres, temporal, temporalUi }
    const own = await startServers()
    closers.push(own.close)
    return own
  })()
  return started
}

/** Stops the servers that this process started. */
export const closeAll = async (): Promise<void> => {
  for (const close of closers.splice(0).reverse()) await close().catch((error) => console.error(error))
}

const admin = async <A>(use: (client: pg.Client) => Promise<A>): Promise<A> => {
  const client = new pg.Client({ connectionString: (await servers()).postgres })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

export const urlOf = (server: string, database: string): string => {
  const url = new URL(server)
  url.pathname = `/${database}`
  return url.toString()
}

const TEMPLATE = "custody_template"

/** Makes the migrated template that test databases are copied from, unless it is there. */
export const prepareTemplate = async (postgres: string): Promise<void> => {
  const client = new pg.Client({ connectionString: postgres })
  await client.connect()
  try {
    const { rows } = await client.query("SELECT 1 FROM pg_database WHERE datname = $1", [TEMPLATE])
    if (rows.length > 0) return
    await client.query(`CREATE DATABASE ${TEMPLATE}`)
  } finally {
    await client.end()
  }
  await Effect.runPromise(
    Effect.zipRight(Migrations.migrate, Partitions.ensure).pipe(
      Effect.provide(Database.layer(Redacted.make(urlOf(postgres, TEMPLATE)), Database.pools.command)),
      Effect.provide(settingsOf(os.tmpdir())),
      Effect.provide(Logger.minimumLogLevel(LogLevel.Warning)),
      Effect.scoped
    )
  )
}

let templated: Promise<void> | undefined
let counter = 0

/** A fresh database with the schema, and its URL. */
export const freshDatabase = async (): Promise<string> => {
  templated ??= servers().then(({ postgres }) => prepareTemplate(postgres))
  await templated
  const name = `test_${process.pid}_${++counter}`
  // A copy of the files takes a seventh of the time of one through the log, with a server that does not wait for the disk.
  await admin((client) => client.query(`CREATE DATABASE ${name} TEMPLATE ${TEMPLATE} STRATEGY file_copy`))
  return urlOf((await servers()).postgres, name)
}

/** Replaces a database by a copy of another, or makes it; nothing but a test may use either. */
export const copyDatabase = (from: string, to: string): Promise<void> =>
  admin(async (client) => {
    const [source, target] = [from, to].map((url) => new URL(url).pathname.slice(1))
    await client.query(`DROP DATABASE IF EXISTS ${target} WITH (FORCE)`)
    await client.query("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1", [source])
    await client.query(`CREATE DATABASE ${target} TEMPLATE ${source} STRATEGY file_copy`)
  })

/**
 * Drops a database that `freshDatabase` made, unless a test still uses it itself: the server's autovacuum costs CPU for each
 * that is left.
 */
export const dropDatabase = (url: string): Promise<void> =>
  admin(async (client) => {
    const name = new URL(url).pathname.slice(1)
    const { rows } = await client.query("SELECT 1 FROM pg_stat_activity WHERE datname = $1 AND application_name NOT LIKE 'custody-%'", [
      name
    ])
    if (rows.length === 0) await client.query(`DROP DATABASE ${name} WITH (FORCE)`)
  })
